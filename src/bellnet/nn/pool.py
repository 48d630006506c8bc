"""Invariant pooling: one value for each orbit of the entries of a tensor, for every channel."""

import json
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from bellnet.backends import Orbit, pool_orbits
from bellnet.combinatorics import Partition, partitions
from bellnet.errors import OptionError, ShapeError, TensorError, as_written
from bellnet.nn.arguments import NotScripted, check_choice, refuse_more
from bellnet.nn.each import check_several
from bellnet.nn.inputs import Reception
from bellnet.nn.listed import check_sparse, sums_by_graph, tuples_by_graph
from bellnet.nn.several import Collection, OverNodes
from bellnet.plan import MOST_MAPS, Contraction, refuse_giants
from bellnet.spec import Spec, parse_shapes, text_of
from bellnet.tensors import Sparse, Support

REDUCTIONS = ("max", "sum", "mean")


class InvariantPool(NotScripted, nn.Module):
    """The maximum, sum or mean over each orbit: the entries whose indices have one equality pattern.

    For "n n" the orbits are the diagonal and the off-diagonal. Channels are multiplied by the number of orbits,
    Bell(k) for one node set; orbits come in canonical order (coincident indices first), each with all its channels.
    Several of maximum, sum and mean stand side by side, all orbits of the first before those of the second.
    An orbit without entries (the off-diagonal of a single node) gives zero. Padding is not seen. What comes of several
    tensors stands side by side.

    Args:
        spec: The node set of every slot, for instance "n n", or "n n, n" for two tensors.
        reduce: "max", "sum" or "mean", or several of them: ("mean", "max").
        over: For a `Sparse`, "all" counts the tuples that are not listed as zeros, so that the result is that of the
            dense tensor; "stored" leaves them out.
        max_maps: A spec with more orbits is refused; they are the maps of "n n ->".

    >>> pool = InvariantPool("n n", reduce="max")
    >>> pool(torch.tensor([[1.0, 7.0], [2.0, 5.0]]).unsqueeze(-1))
    tensor([5., 7.])
    """

    def __init__(
        self, spec: str, reduce: str | Sequence[str] = "max", *, over: str = "all", max_maps: int = MOST_MAPS
    ) -> None:
        super().__init__()
        self.shapes = parse_shapes(spec)
        self._call = call = f'InvariantPool("{text_of(self.shapes)}")'
        self.reduce = _check_reduce(call, reduce)
        self.over = check_choice(call, "over", over, ("all", "stored"))
        self.parts: nn.ModuleList | None = None
        if len(self.shapes) > 1:
            shapes = map(" ".join, self.shapes)
            self.parts = nn.ModuleList(InvariantPool(one, reduce, over=over, max_maps=max_maps) for one in shapes)
            return
        (self.axes,) = self.shapes
        refuse_giants(Spec(self.axes, ()), max_maps=max_maps)
        self._reception = Reception(call, Spec(self.axes, ()), None)
        self._orbits = tuple(_orbit(pattern, self._reception.source_sets) for pattern in partitions(self.axes))

    @property
    def n_orbits(self) -> int:
        """The number of orbits, of all tensors together."""
        return len(self._orbits) if self.parts is None else sum(part.n_orbits for part in self._pools)

    @property
    def growth(self) -> int:
        """By how much the number of channels grows: a value for every orbit, and for each of several reductions."""
        return self.n_orbits * len(self._reductions)

    def n_pooled(self, channels: int | tuple[int, ...]) -> int:
        """How many numbers come of so many channels, which for several tensors are a tuple."""
        if isinstance(channels, int):
            return self.growth * channels
        return sum(part.growth * width for part, width in zip(self._pools, channels, strict=True))

    @property
    def _pools(self) -> "list[InvariantPool]":
        return list(self.parts or ())  # type: ignore[arg-type]

    @property
    def _reductions(self) -> tuple[str, ...]:
        return (self.reduce,) if isinstance(self.reduce, str) else self.reduce

    def forward(self, x: OverNodes | Collection, *more: object) -> Tensor:
        """From (*batch, one axis for each slot, channels) to (*batch, growth * channels)."""
        if more:
            refuse_more(f'InvariantPool("{text_of(self.shapes)}")', (x, *more), len(self.shapes))
        if self.parts is None:
            return self._pooled(x)  # type: ignore[arg-type]
        given = check_several(self._call, x, self.shapes)
        pooled = [part._pooled(one) for part, one in zip(self._pools, given, strict=True)]
        for number, one in enumerate(pooled):
            if one.shape[:-1] != pooled[0].shape[:-1]:
                raise ShapeError(
                    f"{self._call}: the batch axes of x[0] are {tuple(pooled[0].shape[:-1])}, but those of x[{number}] "
                    f"are {tuple(one.shape[:-1])}.\nAll tensors must be about the same graphs."
                )
        return torch.cat(pooled, -1)

    def _pooled(self, x: OverNodes) -> Tensor:
        if isinstance(x, Sparse):
            check_sparse(self._reception.call, x, self.axes, None)
            self._check_dtype(x.values)
            return pool_listed(x, self._reception.source_sets, self._reductions, unlisted=self.over == "all")
        given = self._reception.receive(x)
        self._check_dtype(given.tensor)
        parts = [pool_orbits(given.tensor, given.nodes, self._orbits, reduce) for reduce in self._reductions]
        pooled = parts[0] if len(parts) == 1 else torch.cat(parts, -1)
        return pooled.reshape(*given.batch, pooled.shape[-1])

    def _check_dtype(self, tensor: Tensor) -> None:
        if not tensor.is_floating_point():
            raise TensorError(
                f"{self._reception.call} takes floating point numbers, but the input is {tensor.dtype}.\n"
                "Convert it: x.to(torch.float32)."
            )

    def extra_repr(self) -> str:
        """The options, as they would be written in a call, and the number of orbits."""
        over = "" if self.over == "all" else f', over="{self.over}"'
        return f'"{text_of(self.shapes)}", reduce={json.dumps(self.reduce)}{over}, n_orbits={self.n_orbits}'


def _check_reduce(call: str, reduce: object) -> str | tuple[str, ...]:
    """One reduction, or several, each once."""
    if isinstance(reduce, str) or not isinstance(reduce, Sequence):
        return check_choice(call, "reduce", reduce, REDUCTIONS)
    several = tuple(check_choice(call, f"reduce[{place}]", one, REDUCTIONS) for place, one in enumerate(reduce))
    if not several or len(set(several)) < len(several):
        raise OptionError(f"{call}: reduce must name each of max, sum and mean once at most, not {as_written(reduce)}.")
    return several


def _orbit(pattern: tuple[int, ...], sets: tuple[int, ...]) -> Orbit:
    merges: list[tuple[int, int]] = []
    # One node set for all slots: the axes of a fold then stand in order of first appearance.
    step = Contraction.keeping(pattern, (0,) * len(pattern), set(pattern)).step
    while step is not None:
        merges.insert(0, (step.axes[0], step.axes[1]))
        step = step.parent.step
    return Orbit(tuple(merges), tuple(sets[pattern.index(block)] for block in range(max(pattern, default=-1) + 1)))


class _Places(NamedTuple):
    """Where the tuples of an orbit stand, themselves a support, and how many every graph has listed and altogether."""

    rows: Tensor
    support: Support
    listed: Tensor
    every: Tensor


def pool_listed(x: Sparse, sets: tuple[int, ...], reductions: Sequence[str], *, unlisted: bool) -> Tensor:
    """(*batch, n_orbits * reductions * channels): each orbit of a sparse tensor reduced.

    Args:
        x: The tensor.
        sets: The node set of every slot, by number.
        reductions: Some of "max", "sum" and "mean".
        unlisted: Whether tuples that are not listed count, as zeros.
    """
    orbits = x.support.cached(("orbits", sets), lambda: _places_by_orbit(x.support, sets))
    values = [x.values.index_select(0, orbit.rows) for orbit in orbits]
    result = torch.cat(
        [
            _reduce(part, orbit.support, orbit.listed, orbit.every if unlisted else orbit.listed, reduce)
            for reduce in reductions
            for part, orbit in zip(values, orbits, strict=True)
        ],
        -1,
    )
    return result if x.support.counts.is_batch else result.squeeze(0)


def _reduce(values: Tensor, support: Support, listed: Tensor, counted: Tensor, reduce: str) -> Tensor:
    """(n_graphs, channels) from the values of one orbit; so many are listed, and so many count."""
    if reduce == "sum":
        return sums_by_graph(values, support)
    if reduce == "mean":
        dtype = torch.promote_types(values.dtype, torch.float32)  # sums of half-precision numbers overflow
        return (sums_by_graph(values.to(dtype), support) / counted.clamp(min=1).to(dtype)).to(values.dtype)
    # Like amax, this shares the gradient among equal entries.
    lowest = values.new_full((support.counts.n_graphs, values.shape[1]), -torch.inf)
    largest = lowest.scatter_reduce(0, support.graphs.unsqueeze(-1).expand_as(values), values, "amax")
    return torch.where(counted > listed, largest.clamp(min=0), largest).masked_fill(listed == 0, 0)


def _places_by_orbit(support: Support, sets: tuple[int, ...]) -> list[_Places]:
    """For every equality pattern, in canonical order, where its tuples stand."""
    orbits = []
    for pattern in partitions(sets):
        matches = torch.ones(support.nnz, dtype=torch.bool, device=support.index.device)
        for slot, block in enumerate(pattern):
            for other in range(slot):
                if sets[other] == sets[slot]:
                    agree = support.nodes[other] == support.nodes[slot]
                    matches &= agree if pattern[other] == block else ~agree
        rows = matches.nonzero().flatten()
        part = Support(support.index[:, rows], support.counts, support.slots)
        every = _n_tuples(support, sets, pattern).unsqueeze(-1)
        orbits.append(_Places(rows, part, tuples_by_graph(part), every))
    return orbits


def _n_tuples(support: Support, sets: tuple[int, ...], pattern: Partition) -> Tensor:
    """(n_graphs,): how many tuples of nodes have an equality pattern."""
    found = torch.ones(support.counts.n_graphs, dtype=torch.float64, device=support.index.device)
    blocks_of_set: dict[int, int] = {}
    for block in dict.fromkeys(pattern):
        slot = pattern.index(block)
        before = blocks_of_set.get(sets[slot], 0)
        counts = support.counts.by_set[support.counts.key(support.slots[slot])]
        found = found * (counts - before).clamp(min=0)
        blocks_of_set[sets[slot]] = before + 1
    return found
