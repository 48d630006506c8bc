"""What padding could change: outputs, gradients at the inputs, gradients at the parameters.

Each outcome is a pair of tensors, one from the padded batch and one from the graphs one by one.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from bellnet.errors import ShapeError, SizesError, TensorError
from bellnet.tensors import Padded
from bellnet.testing.graphs import GARBAGE, Graphs
from bellnet.testing.subject import Subject, name_of


@dataclass(frozen=True)
class Outcome:
    """Two tensors that must be the same, up to rounding or exactly."""

    what: str
    together: Tensor
    apart: Tensor
    exact: bool = False


def outcomes(subject: Subject, graphs: Graphs, *, zero_outside: bool, gradients: bool) -> Iterator[Outcome]:
    """Call the subject on the graphs one by one and together, and pair what comes out."""
    targets = subject.spec.targets
    apart = [_alone(subject, graphs, graph) for graph in range(len(graphs.apart))]
    given_back = _several(subject, subject(_handed(graphs.together), graphs.missing()), "a Padded")
    together = [_values(subject, graphs, one, shape) for one, shape in zip(given_back, targets, strict=True)]
    zero = [zero_outside and isinstance(one, Padded) for one in given_back]
    for graph, alone in enumerate(apart):
        for number, (one, other) in enumerate(zip(together, alone, strict=True)):
            what = f"{_name('the output', number, targets)} of graph {graph}"
            yield Outcome(what, one[graphs.inside(targets[number], graph)], other)
    for number, one in enumerate(together):
        if zero[number]:
            what = f"{_name('the output', number, targets)} outside the true sizes"
            yield _zero(what, one, graphs.outside(targets[number], one))
    if gradients and any(one.requires_grad for one in together):
        yield from _gradients(subject, graphs, together, apart, zero=zero)


def _gradients(
    subject: Subject, graphs: Graphs, together: list[Tensor], apart: list[list[Tensor]], *, zero: list[bool]
) -> Iterator[Outcome]:
    sources, targets, parameters = subject.spec.sources, subject.spec.targets, subject.parameters
    arriving = []
    for number, (one, shape) in enumerate(zip(together, targets, strict=True)):
        drawn = subject.draw(tuple(one.shape), torch.Generator().manual_seed(subject.seed + 1 + number))
        # An output that is always zero has no influence, so garbage that arrives there must not get any further.
        arriving.append(torch.where(graphs.outside(shape, one), GARBAGE * drawn if zero[number] else 0.0, drawn))
    found = _pull_back(together, arriving, (*graphs.values, *parameters.values()))
    at_inputs, at_parameters = found[: len(sources)], found[len(sources) :]
    sums = [torch.zeros_like(gradient) for gradient in at_parameters]
    for graph, (x, alone) in enumerate(zip(graphs.apart, apart, strict=True)):
        shares = [one[graphs.inside(shape, graph)] for one, shape in zip(arriving, targets, strict=True)]
        at_graph = _pull_back(alone, shares, (*x, *parameters.values()))
        for number, (one, shape) in enumerate(zip(at_inputs, sources, strict=True)):
            what = f"the gradient at {f'x[{number}] of ' * (len(sources) > 1)}graph {graph}"
            yield Outcome(what, one[graphs.inside(shape, graph)], at_graph[number])
        sums = [total + part for total, part in zip(sums, at_graph[len(sources) :], strict=True)]
    for number, (one, shape) in enumerate(zip(at_inputs, sources, strict=True)):
        what = f"the gradient {f'at x[{number}] ' * (len(sources) > 1)}outside the true sizes"
        yield _zero(what, one, graphs.outside(shape, one))
    for name, one, total in zip(parameters, at_parameters, sums, strict=True):
        yield Outcome(f"the gradient at parameter {name!r}, against the sum over the graphs", one, total)


def _handed(several: Sequence[Any]) -> Any:
    """What a module is given: one tensor, or a tuple of several."""
    return several[0] if len(several) == 1 else tuple(several)


def _name(what: str, number: int, of: Sequence[object]) -> str:
    return what if len(of) == 1 else f"{what}[{number}]"


def _several(subject: Subject, found: Any, given: str) -> Sequence[Any]:
    """What came back, for every target."""
    targets = subject.spec.targets
    if len(targets) == 1:
        return (found,)
    if not isinstance(found, tuple | list) or len(found) != len(targets):
        raise _not_a_tensor(subject, found, given)
    return found


def _alone(subject: Subject, graphs: Graphs, graph: int) -> list[Tensor]:
    found = _several(subject, subject(_handed(graphs.apart[graph]), graphs.missing(graph)), "a tensor")
    for one, shape in zip(found, subject.spec.targets, strict=True):
        sizes = tuple(graphs.sizes[name][graph] for name in shape)
        if not isinstance(one, Tensor):
            raise _not_a_tensor(subject, one, "a tensor")
        if one.ndim != len(sizes) + 2 or tuple(one.shape[:-1]) != (1, *sizes):
            raise _wrong_shape(subject, one, (1, *map(str, sizes)))
    return list(found)


def _values(subject: Subject, graphs: Graphs, found: Any, shape: tuple[str, ...]) -> Tensor:
    if isinstance(found, Padded):
        _check_sizes(subject, graphs, found, shape)
        found = found.values
    if not isinstance(found, Tensor):
        raise _not_a_tensor(subject, found, "a Padded")
    longest = tuple(max(graphs.sizes[name]) for name in shape)
    fits = found.ndim == len(longest) + 2 and found.shape[0] == len(graphs.apart)
    if not fits or any(length < most for length, most in zip(found.shape[1:-1], longest, strict=True)):
        raise _wrong_shape(subject, found, (len(graphs.apart), *(f"{most} or more" for most in longest)))
    return found


def _check_sizes(subject: Subject, graphs: Graphs, found: Padded, shape: tuple[str, ...]) -> None:
    for name in dict.fromkeys(shape):
        sizes = found.sizes_of(name)
        if sizes is None or sizes.tolist() != graphs.sizes[name]:
            shown = "none" if sizes is None else str(sizes.tolist())
            raise SizesError(
                f"{name_of(subject.module)} returned a Padded whose sizes of node set {name!r} are {shown}, "
                f"but the graphs have {graphs.sizes[name]}."
            )


def _pull_back(outputs: Sequence[Tensor], arriving: Sequence[Tensor], inputs: Sequence[Tensor]) -> tuple[Tensor, ...]:
    pairs = [pair for pair in zip(outputs, arriving, strict=True) if pair[0].requires_grad]
    if not pairs:
        return tuple(torch.zeros_like(tensor) for tensor in inputs)
    learned, shares = zip(*pairs, strict=True)
    return torch.autograd.grad(learned, inputs, shares, retain_graph=True, allow_unused=True, materialize_grads=True)


def _zero(what: str, tensor: Tensor, outside: Tensor) -> Outcome:
    return Outcome(what, tensor.masked_fill(~outside, 0), torch.zeros_like(tensor), exact=True)


def _not_a_tensor(subject: Subject, found: object, given: str) -> TensorError:
    return TensorError(
        f"{name_of(subject.module)} returned a {type(found).__name__} for {given}, but the check compares tensors.\n"
        f"Wrap the module in a function that returns the {_wanted(len(subject.spec.targets))}, to check."
    )


def _wanted(n_targets: int) -> str:
    return "one tensor, or Padded" if n_targets == 1 else f"{n_targets} tensors, or Padded, as a tuple"


def _wrong_shape(subject: Subject, found: Tensor, expected: tuple[object, ...]) -> ShapeError:
    return ShapeError(
        f'{name_of(subject.module)} does not return what "{subject.spec}" says.\n\n'
        f"    expected  ({', '.join([*map(str, expected), 'channels'])})\n    got       {tuple(found.shape)}"
    )
