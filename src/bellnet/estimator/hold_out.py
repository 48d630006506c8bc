"""The part of the labels that is held out, to say when training should stop."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from bellnet.data import Graph
from bellnet.estimator.labels import count_labels


def hold_out(
    groups: NDArray[np.int64], units: NDArray[np.int64], fraction: float, random: np.random.Generator
) -> NDArray[np.bool_]:
    """Which labels are held out.

    Every group (a class) gives its share of units, but never all. Where the share of everything makes less than one
    unit, nothing is held out.

    Args:
        groups: The group of every label.
        units: The unit of every label: labels of one unit are held out together. A unit is in the group of its first
            label.
        fraction: The share.
        random: Where chance comes from.
    """
    names, first = np.unique(units, return_index=True)
    chosen: list[int] = []
    if round(fraction * len(names)) >= 1:
        group_of = groups[first]
        for group in np.unique(group_of):
            members = random.permutation(names[group_of == group])
            chosen += members[: min(round(fraction * len(members)), len(members) - 1)].tolist()
    return np.isin(units, chosen)


def units_of(graphs: Sequence[Graph], target: str, fraction: float) -> NDArray[np.int64]:
    """What can only be held out as a whole, for every label.

    Of nodes and edges whole graphs are, if there are enough of them: labels within a graph tell of each other. Of few
    graphs single nodes are, and single edges, an edge of an undirected graph with its opposite.
    """
    counts = count_labels(graphs, target)
    if target == "graph" or round(fraction * len(graphs)) >= 1:
        return np.repeat(np.arange(len(graphs)), counts)
    if target == "node":
        return np.arange(counts.sum())
    names: list[NDArray[np.int64]] = []
    start = 0
    for graph in graphs:
        ends = graph.edge_index.numpy()
        if not graph.directed:
            ends = np.sort(ends, axis=0)
        names.append(start + ends[0] * graph.n + ends[1])
        start += graph.n * graph.n
    return np.concatenate(names) if names else np.zeros(0, dtype=np.int64)
