"""Whether padding changes nothing: graphs one by one, and the same graphs as one padded batch with garbage outside.

Outputs, gradients at the inputs and gradients at the parameters are compared.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from bellnet.errors import SizesError
from bellnet.spec import Shape, Spec, parse_spec
from bellnet.tensors import Padded
from bellnet.testing.subject import Module, Subject

GARBAGE = 5e3
"""How large garbage is: enough to be noticed, and finite even in half precision."""
EXTRA = 2
"""By how much all graphs are padded, the largest too."""
DEFAULT_SIZES = ((4, 1, 3), (2, 5, 1), (3, 2, 4))
"""For one node set after the other the number of nodes of each of three graphs."""
SHIFT = 2.0
"""How far from zero the entries of a graph lie on average."""


def assert_padding_invariant(
    module: Module,
    spec: str | Spec,
    *,
    in_channels: int | tuple[int, ...] | None = None,
    sizes: Sequence[int] | Mapping[str, Sequence[int]] | None = None,
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
        seed: The seed of the random inputs.
        rtol: The allowed rounding, relative to the largest entry; by default as suits dtype.
        atol: The rounding that is allowed in any case; by default as suits dtype.
        dtype: The dtype of the check; the module's own if not given, otherwise a copy of the module is converted.
        device: The device of the check; the module's own if not given, otherwise a copy of the module is moved.

    >>> from bellnet import Padded
    >>> def mean_of_nodes(x):
    ...     if isinstance(x, Padded):
    ...         return torch.stack([graph.mean(0) for graph in x.unpack("n")])
    ...     return x.mean(-2)
    >>> assert_padding_invariant(mean_of_nodes, "n ->", in_channels=3)
    """
    spec = parse_spec(spec)
    subject = Subject.of(
        module, spec, in_channels=in_channels, dtype=dtype, device=device, seed=seed, rtol=rtol, atol=atol
    )
    names = spec.node_sets
    if not names:
        raise SizesError(f'The spec "{spec}" has no nodes, so there is nothing to pad.')
    defaults = {name: DEFAULT_SIZES[number % len(DEFAULT_SIZES)] for number, name in enumerate(names)}
    given = subject.sizes_by_set(defaults if sizes is None else sizes)
    if len({len(counts) for counts in given.values()}) > 1 or not given[names[0]]:
        raise SizesError(
            f'The check of "{spec}" needs one size of every node set for each graph, and at least one graph, not '
            f"{given}."
        )
    check = _Check(subject, {name: [*counts, *([0] * empty)] for name, counts in given.items()})
    with torch.enable_grad():
        check.run(nan=nan, zero_outside=zero_outside, gradients=gradients)


@dataclass(frozen=True)
class _Check:
    """The check of a module on random graphs; `sizes` has for every node set the number of nodes of each graph."""

    subject: Subject
    sizes: dict[str, list[int]]

    @property
    def n_graphs(self) -> int:
        return len(next(iter(self.sizes.values())))

    def run(self, *, nan: bool, zero_outside: bool, gradients: bool) -> None:
        """Call the module on the graphs one by one and together, and compare the results."""
        spec = self.subject.spec
        inputs, values = self._draw(nan=nan)
        padded = [self._padded(one, shape) for one, shape in zip(values, spec.sources, strict=True)]
        graphs = [{name: counts[graph] for name, counts in self.sizes.items()} for graph in range(self.n_graphs)]
        apart = [self.subject.outputs(x, (1,), lengths) for x, lengths in zip(inputs, graphs, strict=True)]
        longest = {name: max(counts) for name, counts in self.sizes.items()}
        found = self.subject.outputs(padded, (self.n_graphs,), longest, sizes=self._counts(spec.target_only))
        together = [self._values(one, shape) for one, shape in zip(found, spec.targets, strict=True)]
        zero = [zero_outside and isinstance(one, Padded) for one in found]
        for number, shape in enumerate(spec.targets):
            what = "the output" + f"[{number}]" * (len(spec.targets) > 1)
            self._compare(what, together[number], [alone[number] for alone in apart], shape, zero=zero[number])
        if gradients and any(one.requires_grad for one in together):
            self._compare_gradients(inputs, values, apart, together, zero=zero)

    def _draw(self, *, nan: bool) -> tuple[list[list[Tensor]], list[Tensor]]:
        """The sources of every graph, as a batch of one, and the padded sources of all graphs."""
        subject, generator = self.subject, torch.Generator().manual_seed(self.subject.seed)
        inputs: list[list[Tensor]] = [[] for _ in range(self.n_graphs)]
        padded = []
        for shape, channels in zip(subject.spec.sources, subject.channels, strict=True):
            lengths = (max(self.sizes[name]) + EXTRA for name in shape)
            values = subject.draw((self.n_graphs, *lengths, channels), generator)
            # Most entries of one graph are positive and of the next negative: a maximum that meets a zero shows then.
            sign = (1 - 2 * (torch.arange(self.n_graphs) % 2)).to(values)
            values = values + SHIFT * sign.reshape(-1, *[1] * (values.ndim - 1))
            for graph, sources in enumerate(inputs):
                sources.append(values[self._inside(shape, graph)].clone().requires_grad_())
            garbage = torch.full_like(values, torch.nan) if nan else GARBAGE * values
            padded.append(torch.where(self._outside(shape, values), garbage, values).requires_grad_())
        return inputs, padded

    def _values(self, found: Tensor | Padded, shape: Shape) -> Tensor:
        """The values of an output for all graphs."""
        if not isinstance(found, Padded):
            return found
        for name in dict.fromkeys(shape):
            sizes = found.sizes_of(name)
            if sizes is None or sizes.tolist() != self.sizes[name]:
                raise SizesError(
                    f"The Padded that the module returned has sizes {None if sizes is None else sizes.tolist()} of "
                    f"node set {name!r}, but the graphs have {self.sizes[name]}."
                )
        return found.values

    def _compare_gradients(
        self,
        inputs: list[list[Tensor]],
        values: list[Tensor],
        apart: list[list[Tensor]],
        together: list[Tensor],
        *,
        zero: list[bool],
    ) -> None:
        sources, targets = self.subject.spec.sources, self.subject.spec.targets
        module = self.subject.module
        named = module.named_parameters() if isinstance(module, torch.nn.Module) else ()
        parameters = {name: parameter for name, parameter in named if parameter.requires_grad}
        upstream = []
        for number, (one, shape) in enumerate(zip(together, targets, strict=True)):
            drawn = self.subject.draw(one.shape, torch.Generator().manual_seed(self.subject.seed + 1 + number))
            # An output that is always zero has no influence, so garbage that arrives there must not get any further.
            upstream.append(torch.where(self._outside(shape, one), GARBAGE * drawn if zero[number] else 0.0, drawn))
        found = _gradients(together, upstream, (*values, *parameters.values()))
        parts = []
        for graph, (x, alone) in enumerate(zip(inputs, apart, strict=True)):
            own = [one[self._inside(shape, graph)] for one, shape in zip(upstream, targets, strict=True)]
            parts.append(_gradients(alone, own, (*x, *parameters.values())))
        for number, shape in enumerate(sources):
            what = "the gradient" + f" at x[{number}]" * (len(sources) > 1)
            self._compare(what, found[number], [part[number] for part in parts], shape, zero=True)
        for number, name in enumerate(parameters, len(sources)):
            total = torch.stack([part[number] for part in parts]).sum(0)
            self._check(f"the gradient at parameter {name!r}, against the sum over the graphs", found[number], total)

    def _compare(self, what: str, together: Tensor, apart: list[Tensor], shape: Shape, *, zero: bool) -> None:
        for graph, alone in enumerate(apart):
            self._check(f"{what} of graph {graph}", together[self._inside(shape, graph)], alone)
        if zero:
            outside = together.masked_fill(~self._outside(shape, together), 0)
            self._check(f"{what} outside the true sizes", outside, torch.zeros_like(outside), exact=True)

    def _check(self, what: str, found: Tensor, expected: Tensor, *, exact: bool = False) -> None:
        self.subject.compare(
            found,
            expected,
            f'sees the padding as "{self.subject.spec}"',
            exact=exact,
            where=f"{what} ",
            names=("in the padded batch", "expected" if exact else "one by one"),
            sizes=self.sizes,
            to_reproduce=f"seed={self.subject.seed}",
        )

    def _counts(self, names: Iterable[str]) -> dict[str, Tensor]:
        return {name: torch.tensor(self.sizes[name], device=self.subject.device) for name in names}

    def _padded(self, values: Tensor, shape: Shape) -> Padded | Tensor:
        """A plain tensor if there are no node sets, so that there is nothing to pad."""
        counts = self._counts(dict.fromkeys(shape))
        return Padded(values, counts[shape[0]] if len(counts) == 1 else counts) if counts else values

    def _inside(self, shape: Shape, graph: int) -> tuple[slice, ...]:
        """The slices of one graph in a padded tensor."""
        return slice(graph, graph + 1), *(slice(self.sizes[name][graph]) for name in shape)

    def _outside(self, shape: Shape, tensor: Tensor) -> Tensor:
        """The entries of a padded tensor that belong to no graph."""
        outside = torch.ones_like(tensor, dtype=torch.bool)
        for graph in range(self.n_graphs):
            outside[self._inside(shape, graph)] = False
        return outside


def _gradients(outputs: Sequence[Tensor], upstream: Sequence[Tensor], inputs: Sequence[Tensor]) -> tuple[Tensor, ...]:
    pairs = [pair for pair in zip(outputs, upstream, strict=True) if pair[0].requires_grad]
    if not pairs:
        return tuple(torch.zeros_like(tensor) for tensor in inputs)
    ends, given = zip(*pairs, strict=True)
    return torch.autograd.grad(ends, inputs, given, retain_graph=True, allow_unused=True, materialize_grads=True)
