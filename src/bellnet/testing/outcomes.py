"""What padding could change: outputs, gradients at the inputs, gradients at the parameters.

Each outcome is a pair of tensors, one from the padded batch and one from the graphs one by one.
"""

from collections.abc import Iterable, Iterator
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
    target = subject.spec.target
    apart = [_alone(subject, graphs, graph) for graph in range(len(graphs.apart))]
    given_back = subject(graphs.together, graphs.missing())
    together = _values(subject, graphs, given_back)
    zero_outside = zero_outside and isinstance(given_back, Padded)
    for graph, alone in enumerate(apart):
        yield Outcome(f"the output of graph {graph}", together[graphs.inside(target, graph)], alone)
    if zero_outside:
        yield _zero("the output outside the true sizes", together, graphs.outside(target, together))
    if gradients and together.requires_grad:
        yield from _gradients(subject, graphs, together, apart, zero_outside=zero_outside)


def _gradients(
    subject: Subject, graphs: Graphs, together: Tensor, apart: list[Tensor], *, zero_outside: bool
) -> Iterator[Outcome]:
    source, target = subject.spec.source, subject.spec.target
    arriving = subject.draw(tuple(together.shape), torch.Generator().manual_seed(subject.seed + 1))
    # An output that is always zero has no influence, so garbage that arrives there must not get any further.
    outside = graphs.outside(target, together)
    arriving = torch.where(outside, GARBAGE * arriving if zero_outside else 0.0, arriving)
    at_input, *at_parameters = _pull_back(together, arriving, (graphs.values, *subject.parameters.values()))
    sums = [torch.zeros_like(gradient) for gradient in at_parameters]
    for graph, (x, alone) in enumerate(zip(graphs.apart, apart, strict=True)):
        share = arriving[graphs.inside(target, graph)]
        at_graph, *shares = _pull_back(alone, share, (x, *subject.parameters.values()))
        yield Outcome(f"the gradient at graph {graph}", at_input[graphs.inside(source, graph)], at_graph)
        sums = [total + part for total, part in zip(sums, shares, strict=True)]
    yield _zero("the gradient outside the true sizes", at_input, graphs.outside(source, at_input))
    for name, found, total in zip(subject.parameters, at_parameters, sums, strict=True):
        yield Outcome(f"the gradient at parameter {name!r}, against the sum over the graphs", found, total)


def _alone(subject: Subject, graphs: Graphs, graph: int) -> Tensor:
    found = subject(graphs.apart[graph], graphs.missing(graph))
    sizes = tuple(graphs.sizes[name][graph] for name in subject.spec.target)
    if not isinstance(found, Tensor):
        raise _not_a_tensor(subject, found, "a tensor")
    if found.ndim != len(sizes) + 2 or tuple(found.shape[:-1]) != (1, *sizes):
        raise _wrong_shape(subject, found, (1, *map(str, sizes)))
    return found


def _values(subject: Subject, graphs: Graphs, found: Any) -> Tensor:
    if isinstance(found, Padded):
        _check_sizes(subject, graphs, found)
        found = found.values
    if not isinstance(found, Tensor):
        raise _not_a_tensor(subject, found, "a Padded")
    longest = tuple(max(graphs.sizes[name]) for name in subject.spec.target)
    fits = found.ndim == len(longest) + 2 and found.shape[0] == len(graphs.apart)
    if not fits or any(length < most for length, most in zip(found.shape[1:-1], longest, strict=True)):
        raise _wrong_shape(subject, found, (len(graphs.apart), *(f"{most} or more" for most in longest)))
    return found


def _check_sizes(subject: Subject, graphs: Graphs, found: Padded) -> None:
    for name in dict.fromkeys(subject.spec.target):
        sizes = found.sizes_of(name)
        if sizes is None or sizes.tolist() != graphs.sizes[name]:
            shown = "none" if sizes is None else str(sizes.tolist())
            raise SizesError(
                f"{name_of(subject.module)} returned a Padded whose sizes of node set {name!r} are {shown}, "
                f"but the graphs have {graphs.sizes[name]}."
            )


def _pull_back(output: Tensor, arriving: Tensor, inputs: Iterable[Tensor]) -> tuple[Tensor, ...]:
    inputs = tuple(inputs)
    if not output.requires_grad:
        return tuple(torch.zeros_like(tensor) for tensor in inputs)
    return torch.autograd.grad(output, inputs, arriving, retain_graph=True, allow_unused=True, materialize_grads=True)


def _zero(what: str, tensor: Tensor, outside: Tensor) -> Outcome:
    return Outcome(what, tensor.masked_fill(~outside, 0), torch.zeros_like(tensor), exact=True)


def _not_a_tensor(subject: Subject, found: object, given: str) -> TensorError:
    return TensorError(
        f"{name_of(subject.module)} returned a {type(found).__name__} for {given}, but the check compares tensors.\n"
        "Wrap the module in a function that returns the one tensor, or Padded, to check."
    )


def _wrong_shape(subject: Subject, found: Tensor, expected: tuple[object, ...]) -> ShapeError:
    return ShapeError(
        f'{name_of(subject.module)} does not return what "{subject.spec}" says.\n\n'
        f"    expected  ({', '.join([*map(str, expected), 'channels'])})\n    got       {tuple(found.shape)}"
    )
