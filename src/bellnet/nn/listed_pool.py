"""Pooling of listed tuples: one value for each orbit and graph."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from bellnet.combinatorics import Partition, partitions
from bellnet.nn.listed import sums_by_graph, tuples_by_graph
from bellnet.tensors import Sparse, Support


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
