"""Invariant pooling: one value for each orbit of the entries of a tensor, for every channel."""

import json
from collections import Counter
from collections.abc import Sequence
from itertools import combinations
from typing import NamedTuple

import torch
from torch import Tensor, nn

from bellnet.backends import Orbit, pool_orbits
from bellnet.combinatorics import Partition, partitions
from bellnet.errors import OptionError, ShapeError, TensorError, as_written
from bellnet.nn.inputs import (
    Collection,
    InputValidator,
    NotScripted,
    OverNodes,
    check_choice,
    check_separate,
    refuse_more,
)
from bellnet.nn.sparse_validation import check_sparse
from bellnet.plan import MOST_MAPS, Contraction, refuse_giants
from bellnet.spec import Spec, parse_shapes, text_of
from bellnet.tensors import Sparse, Support

REDUCTIONS = ("max", "sum", "mean")


class InvariantPool(NotScripted, nn.Module):
    """The maximum, sum or mean over each orbit: the entries whose indices have one equality pattern.

    For "n n" the orbits are the diagonal and the off-diagonal. Channels are multiplied by the number of orbits,
    Bell(k) for one node set; orbits are in canonical order (coincident indices first), each with all its channels.
    Several reductions are concatenated, all orbits of the first before those of the second, and so are the results of
    several tensors. An orbit without entries (the off-diagonal of a single node) gives zero. Padding is not counted.

    Args:
        spec: The node set of every slot, for instance "n n", or "n n, n" for two tensors.
        reduce: "max", "sum" or "mean", or several of them: ("mean", "max").
        over: For a `Sparse`, "all" counts entries that are not stored as zeros, so that the result is that of the
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
        self._call = f'InvariantPool("{text_of(self.shapes)}")'
        self.reduce = _check_reduce(self._call, reduce)
        self.over = check_choice(self._call, "over", over, ("all", "stored"))
        self._validators, self._orbits = [], []
        for number, shape in enumerate(self.shapes):
            refuse_giants(Spec(shape, ()), max_maps=max_maps)
            call = self._call if len(self.shapes) == 1 else f"{self._call} at x[{number}]"
            validator = InputValidator(call, Spec(shape, ()), (None,))
            self._validators.append(validator)
            self._orbits.append(tuple(_orbit(pattern, validator.set_numbers[0]) for pattern in partitions(shape)))

    @property
    def n_orbits(self) -> int:
        """The number of orbits, of all tensors together."""
        return sum(map(len, self._orbits))

    @property
    def growth(self) -> int:
        """The factor of the number of channels: the number of orbits times that of reductions."""
        return self.n_orbits * len(self._reductions)

    def n_pooled(self, channels: int | tuple[int, ...]) -> int:
        """The number of output channels for a number of input channels, a tuple for several tensors."""
        if isinstance(channels, int):
            return self.growth * channels
        pairs = zip(self._orbits, channels, strict=True)
        return sum(len(orbits) * width for orbits, width in pairs) * len(self._reductions)

    @property
    def _reductions(self) -> tuple[str, ...]:
        return (self.reduce,) if isinstance(self.reduce, str) else self.reduce

    def forward(self, x: OverNodes | Collection, *more: object) -> Tensor:
        """From (*batch, one axis for each slot, channels) to (*batch, growth * channels)."""
        if more:
            refuse_more(self._call, (x, *more), len(self.shapes))
        pooled = [self._pool(number, one) for number, one in enumerate(check_separate(self._call, x, self.shapes))]
        for number, one in enumerate(pooled[1:], 1):
            if one.shape[:-1] != pooled[0].shape[:-1]:
                raise ShapeError(
                    f"{self._call}: the batch axes of x[0] are {tuple(pooled[0].shape[:-1])}, but those of x[{number}] "
                    f"are {tuple(one.shape[:-1])}.\nAll tensors must be about the same graphs."
                )
        return pooled[0] if len(pooled) == 1 else torch.cat(pooled, -1)

    def _pool(self, number: int, x: OverNodes) -> Tensor:
        validator = self._validators[number]
        if isinstance(x, Sparse):
            check_sparse(validator.call, x, self.shapes[number], None)
            _check_dtype(validator.call, x.values)
            return pool_sparse(x, validator.set_numbers[0], self._reductions, include_zeros=self.over == "all")
        inputs = validator.validate((x,))
        (values,) = inputs.values
        _check_dtype(validator.call, values)
        parts = [pool_orbits(values, inputs.layout.nodes, self._orbits[number], reduce) for reduce in self._reductions]
        pooled = parts[0] if len(parts) == 1 else torch.cat(parts, -1)
        return pooled.reshape(*inputs.batch, pooled.shape[-1])

    def extra_repr(self) -> str:
        """The options, as they would be written in a call, and the number of orbits."""
        over = "" if self.over == "all" else f', over="{self.over}"'
        return f'"{text_of(self.shapes)}", reduce={json.dumps(self.reduce)}{over}, n_orbits={self.n_orbits}'


def _check_dtype(call: str, tensor: Tensor) -> None:
    if not tensor.is_floating_point():
        raise TensorError(
            f"{call} takes floating point numbers, but the input is {tensor.dtype}.\nConvert it: x.to(torch.float32)."
        )


def _check_reduce(call: str, reduce: object) -> str | tuple[str, ...]:
    """One reduction, or several, each once."""
    if isinstance(reduce, str) or not isinstance(reduce, Sequence):
        return check_choice(call, "reduce", reduce, REDUCTIONS)
    several = tuple(check_choice(call, f"reduce[{number}]", one, REDUCTIONS) for number, one in enumerate(reduce))
    if not several or len(set(several)) < len(several):
        raise OptionError(f"{call}: reduce must name each of max, sum and mean once at most, not {as_written(reduce)}.")
    return several


def _orbit(pattern: Partition, sets: tuple[int, ...]) -> Orbit:
    merges: list[tuple[int, int]] = []
    # With one node set for all slots, the axes of a contraction are in order of first appearance.
    step = Contraction.keeping(pattern, (0,) * len(pattern), set(pattern)).step
    while step is not None:
        merges.insert(0, (step.axes[0], step.axes[1]))
        step = step.parent.step
    return Orbit(tuple(merges), tuple(sets[pattern.index(block)] for block in range(max(pattern, default=-1) + 1)))


class _SparseOrbit(NamedTuple):
    """The stored entries of an orbit, and for every graph the numbers of its stored and of all entries."""

    positions: Tensor
    support: Support
    n_stored: Tensor
    n_all: Tensor


def pool_sparse(x: Sparse, sets: tuple[int, ...], reductions: Sequence[str], *, include_zeros: bool) -> Tensor:
    """(*batch, n_orbits * reductions * channels): each orbit reduced, perhaps with the zeros that are not stored.

    The node sets of the slots are passed by number.
    """
    orbits = x.support.cached(("orbits", sets), lambda: _sparse_orbits(x.support, sets))
    values = [x.values.index_select(0, orbit.positions) for orbit in orbits]
    pooled = [
        _reduce(part, orbit, orbit.n_all if include_zeros else orbit.n_stored, reduce)
        for reduce in reductions
        for part, orbit in zip(values, orbits, strict=True)
    ]
    result = torch.cat(pooled, -1)
    return result if x.support.counts.is_batch else result.squeeze(0)


def _reduce(values: Tensor, orbit: _SparseOrbit, n_counted: Tensor, reduce: str) -> Tensor:
    """(n_graphs, channels) from the stored values of one orbit, of which `n_counted` entries count."""
    support = orbit.support
    if reduce == "sum":
        return sum_per_graph(values, support)
    if reduce == "mean":
        dtype = torch.promote_types(values.dtype, torch.float32)  # half-precision sums overflow
        return (sum_per_graph(values.to(dtype), support) / n_counted.clamp(min=1).to(dtype)).to(values.dtype)
    # Like amax, this shares the gradient among equal entries.
    lowest = values.new_full((support.counts.n_graphs, values.shape[1]), -torch.inf)
    largest = lowest.scatter_reduce(0, support.graphs.unsqueeze(-1).expand_as(values), values, "amax")
    return torch.where(n_counted > orbit.n_stored, largest.clamp(min=0), largest).masked_fill(orbit.n_stored == 0, 0)


def sum_per_graph(values: Tensor, support: Support) -> Tensor:
    """(n_graphs, channels): the sum of the stored values of every graph."""
    if support.counts.n_graphs == 1:
        return values.sum(0, keepdim=True)
    return values.new_zeros(support.counts.n_graphs, values.shape[1]).index_add(0, support.graphs, values)


def _sparse_orbits(support: Support, sets: tuple[int, ...]) -> list[_SparseOrbit]:
    """The stored entries of every equality pattern, in canonical order."""
    orbits = []
    for pattern in partitions(sets):
        matches = torch.ones(support.nnz, dtype=torch.bool, device=support.index.device)
        for slot, other in combinations(range(len(sets)), 2):
            if sets[other] == sets[slot]:
                equal = support.nodes[other] == support.nodes[slot]
                matches &= equal if pattern[other] == pattern[slot] else ~equal
        positions = matches.nonzero().flatten()
        part = Support(support.index[:, positions], support.counts, support.slots)
        n_stored, n_all = part.entries_per_graph, _n_entries(support, sets, pattern)
        orbits.append(_SparseOrbit(positions, part, n_stored.unsqueeze(-1), n_all.unsqueeze(-1)))
    return orbits


def _n_entries(support: Support, sets: tuple[int, ...], pattern: Partition) -> Tensor:
    """(n_graphs,): the number of tuples of nodes with an equality pattern."""
    found = torch.ones(support.counts.n_graphs, dtype=torch.float64, device=support.index.device)
    n_blocks: Counter[int] = Counter()
    for block in dict.fromkeys(pattern):
        slot = pattern.index(block)
        counts = support.counts.by_set[support.counts.key(support.slots[slot])]
        found = found * (counts - n_blocks[sets[slot]]).clamp(min=0)
        n_blocks[sets[slot]] += 1
    return found
