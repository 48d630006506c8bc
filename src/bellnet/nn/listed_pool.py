"""Pooling of listed tuples: one value for each orbit and graph."""

from functools import partial

import torch
from torch import Tensor

from bellnet.combinatorics import Partition, partitions
from bellnet.nn.listed import sums_by_graph, tuples_by_graph
from bellnet.tensors import Sparse, Support


def pool_listed(x: Sparse, sets: tuple[int, ...], reduce: str, *, unlisted: bool) -> Tensor:
    """(*batch, n_orbits * channels): each orbit of a sparse tensor reduced.

    Args:
        x: The tensor.
        sets: The node set of every slot, by number.
        reduce: "max", "sum" or "mean".
        unlisted: Whether tuples that are not listed count, as zeros.
    """
    orbits = x.support.once(("orbits", sets), lambda: _orbits(x.support, sets))
    pooled = []
    for places, support, every in orbits:
        values = x.values.index_select(0, places)
        listed = support.once("tuples by graph", partial(tuples_by_graph, support))
        pooled.append(_reduce(values, support, listed, every if unlisted else listed, reduce))
    result = torch.cat(pooled, -1)
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


def _orbits(support: Support, sets: tuple[int, ...]) -> list[tuple[Tensor, Support, Tensor]]:
    """For every equality pattern, in canonical order, where its tuples stand, these, and how many there could be."""
    orbits = []
    for pattern in partitions(sets):
        matches = torch.ones(support.n_tuples, dtype=torch.bool, device=support.index.device)
        for slot, block in enumerate(pattern):
            for other in range(slot):
                if sets[other] == sets[slot]:
                    agree = support.nodes[other] == support.nodes[slot]
                    matches &= agree if pattern[other] == block else ~agree
        places = matches.nonzero().flatten()
        here = Support(support.index[:, places], support.counts, support.slots)
        orbits.append((places, here, _n_tuples(support, sets, pattern).unsqueeze(-1)))
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
