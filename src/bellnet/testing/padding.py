"""Whether padding changes nothing: graphs one by one, and the same graphs as one padded batch with garbage outside.

Compared are outputs, gradients at the inputs and gradients at the parameters: each outcome is a pair of tensors, one
from the padded batch and one from the graphs one by one.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from bellnet.errors import ShapeError, SizesError, TensorError
from bellnet.spec import Spec, parse_spec
from bellnet.tensors import Padded
from bellnet.testing.subject import NO_ROUNDING, Module, Subject, Tolerance, difference, failure, name_of

GARBAGE = 5e3
"""How large garbage is: enough to be noticed, and finite even in half precision."""

_EXTRA = 2
"""By how much all graphs are padded, the largest too."""

_SIZES = ((4, 1, 3), (2, 5, 1), (3, 2, 4))
"""For one node set after the other: how many nodes each of three graphs has."""

_SHIFT = 2.0
"""How far from zero the entries of a graph lie on average."""

GivenSizes = Sequence[int] | Mapping[str, Sequence[int]] | None


def assert_padding_invariant(
    module: Module,
    spec: str | Spec,
    *,
    in_channels: int | tuple[int, ...] | None = None,
    sizes: GivenSizes = None,
    empty: bool = False,
    nan: bool = False,
    zero_outside: bool = True,
    gradients: bool = True,
    seed: int = 0,
    rtol: float | None = None,
    atol: float | None = None,
    dtype: torch.dtype | None = None,
    device: torch.device | str | None = None,
) -> None:
    """Raise an `EquivarianceError` if graphs in a padded batch are not treated as they are one by one.

    Graphs of different sizes, a single node among them, go through the module one by one, and then together as one
    `Padded` with garbage outside the true sizes. The outputs must agree, and so must the gradients: those of the
    inputs graph by graph, and those of the parameters with the sum over the graphs. A module whose graphs see each
    other (batch norm in training mode) cannot pass; check it after `module.eval()`.

    Args:
        module: Takes a tensor (batch, one axis for each source slot, channels) and a `Padded` of the same form. It is
            called with `sizes={...}` if the target has node sets that the source has not.
        spec: The node sets of source and target, for instance "n n -> n". Of several tensors, "n n, n -> n n, n", the
            module takes, and returns, a tuple.
        in_channels: The number of channels of the input, or a tuple of them; `module.in_channels` if not given.
        sizes: For every graph its number of nodes, for all node sets or for each. If not given, three graphs.
        empty: Whether to add a graph without any nodes.
        nan: Whether the garbage is NaN instead of large numbers: it then survives a multiplication by a mask of zeros.
        zero_outside: Whether an output that is `Padded` must be exactly zero outside the true sizes, as those of every
            layer are. After `Padded.map` it need not be.
        gradients: Whether to compare gradients too.
        seed: Where the random inputs come from.
        rtol: The rounding that is allowed, relative to the largest entry; by default as suits dtype.
        atol: The rounding that is allowed in any case; by default as suits dtype.
        dtype: The type to check in; the module's own if not given, otherwise a copy of the module is converted.
        device: The device to check on; the module's own if not given, otherwise a copy of the module is moved.

    >>> from bellnet import Padded
    >>> def mean_of_nodes(x):
    ...     if isinstance(x, Padded):
    ...         return torch.stack([graph.mean(0) for graph in x.unpack("n")])
    ...     return x.mean(-2)
    >>> assert_padding_invariant(mean_of_nodes, "n ->", in_channels=3)
    """
    spec = parse_spec(spec)
    subject = Subject.of(
        "assert_padding_invariant", module, spec, in_channels=in_channels, dtype=dtype, device=device, seed=seed
    )
    tolerance = Tolerance.choose(subject.dtype, rtol, atol)
    graphs = draw_graphs(subject, sizes, empty=empty, nan=nan)
    with torch.enable_grad():
        for outcome in outcomes(subject, graphs, zero_outside=zero_outside, gradients=gradients):
            allowed = NO_ROUNDING if outcome.exact else tolerance
            if wrong := difference(outcome.together, outcome.apart, allowed):
                raise failure(
                    subject,
                    f'sees the padding as "{spec}"',
                    [
                        ("what", outcome.what),
                        ("largest difference", str(wrong)),
                        ("where", f"[{', '.join(map(str, wrong.place))}]"),
                        ("in the padded batch", f"{wrong.found:.6g}"),
                        ("expected" if outcome.exact else "one by one", f"{wrong.expected:.6g}"),
                        ("sizes", str(graphs.sizes)),
                        ("to reproduce", f"seed={seed}"),
                    ],
                )


@dataclass(frozen=True)
class Graphs:
    """The same random graphs twice, ready to be differentiated.

    Attributes:
        spec: The spec of the module they are for.
        sizes: For every node set how many nodes each graph has.
        apart: Each graph as a batch of one: for every source (1, node axes, channels).
        values: All graphs, padded: for every source (graphs, node axes, channels).
    """

    spec: Spec
    sizes: dict[str, list[int]]
    apart: list[list[Tensor]]
    values: list[Tensor]

    @property
    def together(self) -> list[Padded | Tensor]:
        """The padded batch of every source; a plain tensor if it has no node sets, so that there is nothing to pad."""
        return [self._padded(values, shape) for values, shape in zip(self.values, self.spec.sources, strict=True)]

    def _padded(self, values: Tensor, shape: tuple[str, ...]) -> Padded | Tensor:
        counts = self._counts(dict.fromkeys(shape))
        if not counts:
            return values
        return Padded(values, counts[shape[0]] if len(counts) == 1 else counts)

    def _counts(self, names: Iterable[str]) -> dict[str, Tensor]:
        return {name: torch.tensor(self.sizes[name], device=self.values[0].device) for name in names}

    def missing(self, graph: int | None = None) -> dict[str, int | Tensor]:
        """The sizes of the node sets that only the target has, of one graph or of all."""
        if graph is not None:
            return {name: self.sizes[name][graph] for name in self.spec.target_only}
        return {**self._counts(self.spec.target_only)}

    def inside(self, axes: tuple[str, ...], graph: int) -> tuple[slice, ...]:
        """Where one graph stands in a padded tensor with these axes."""
        return slice(graph, graph + 1), *(slice(self.sizes[name][graph]) for name in axes)

    def outside(self, axes: tuple[str, ...], tensor: Tensor) -> Tensor:
        """Which entries of a padded tensor with these axes belong to no graph."""
        outside = torch.ones_like(tensor, dtype=torch.bool)
        for graph in range(len(self.apart)):
            outside[self.inside(axes, graph)] = False
        return outside


def draw_graphs(subject: Subject, sizes: GivenSizes, *, empty: bool, nan: bool) -> Graphs:
    """Random graphs for a subject."""
    spec = subject.spec
    chosen = _choose(spec, sizes, empty=empty)
    generator = torch.Generator().manual_seed(subject.seed)
    n_graphs = max(len(counts) for counts in chosen.values())
    apart: list[list[Tensor]] = [[] for _ in range(n_graphs)]
    padded: list[Tensor] = []
    graphs = Graphs(spec, chosen, apart, padded)
    for shape, channels in zip(spec.sources, subject.channels, strict=True):
        lengths = (max(chosen[name]) + _EXTRA for name in shape)
        values = subject.draw((n_graphs, *lengths, channels), generator)
        # Most entries of one graph are positive and of the next negative: a maximum that meets a zero shows then.
        sign = (1 - 2 * (torch.arange(n_graphs) % 2)).to(values)
        values = values + _SHIFT * sign.reshape(-1, *[1] * (values.ndim - 1))
        for graph, parts in enumerate(apart):
            parts.append(values[graphs.inside(shape, graph)].clone().requires_grad_())
        outside = graphs.outside(shape, values)
        values = torch.where(outside, torch.full_like(values, torch.nan) if nan else GARBAGE * values, values)
        padded.append(values.requires_grad_())
    return graphs


def _choose(spec: Spec, sizes: GivenSizes, *, empty: bool) -> dict[str, list[int]]:
    names = spec.node_sets
    if not names:
        raise SizesError(f'The spec "{spec}" has no nodes, so there is nothing to pad.')
    if sizes is None:
        chosen = {name: list(_SIZES[number % len(_SIZES)]) for number, name in enumerate(names)}
    elif isinstance(sizes, Mapping):
        if missing := [name for name in names if name not in sizes]:
            raise SizesError(
                f'The check of "{spec}" needs the sizes of every node set; there are none for '
                f"{', '.join(map(repr, missing))}."
            )
        chosen = {name: list(sizes[name]) for name in names}
    else:
        chosen = {name: list(sizes) for name in names}
    if len({len(counts) for counts in chosen.values()}) > 1 or not chosen[names[0]]:
        raise SizesError(
            f'The check of "{spec}" needs one size of every node set for each graph, and at least one graph, but came '
            f"{chosen}."
        )
    return {name: counts + [0] * empty for name, counts in chosen.items()}


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
