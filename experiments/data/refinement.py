"""1-WL (colour refinement), 2-FWL and 3-FWL, exactly: colours are integers, and no hash makes different ones equal.

In dimension 1 nodes are coloured: initially alike, then repeatedly by their own colour and those of their neighbours
(Weisfeiler and Leman, 1968). In dimension k it is tuples of k nodes: initially by which of their nodes are equal and
adjacent, then, for every node w, by the k colours of the tuples in which w replaces one node. This is the *folklore*
form: its dimension k distinguishes the same graphs as dimension k + 1 of the other form and networks of order k + 1.

A colour is a rank in the sorted list of all that occur in the graphs, so equal colours mean equal histories.
"""

from collections.abc import Sequence
from itertools import combinations_with_replacement
from typing import NamedTuple

import torch
from torch import Tensor

from bellnet.data import Graph, to_dense
from bellnet.errors import DataError, OptionError


class Refined(NamedTuple):
    """The result for several graphs.

    Attributes:
        kinds: An integer for each graph, the same for those that are not distinguished.
        rounds: The number of rounds after which colours change no more.
    """

    kinds: tuple[int, ...]
    rounds: int


def refine(graphs: Sequence[Graph], dimension: int = 1) -> Refined:
    """Refine the colours of all graphs together until they change no more.

    >>> from bellnet.data import undirected
    >>> path, star = undirected(4, [(0, 1), (1, 2), (2, 3)]), undirected(4, [(0, 1), (0, 2), (0, 3)])
    >>> refine([path, star, path])
    Refined(kinds=(0, 1, 0), rounds=2)
    """
    if dimension not in (1, 2, 3):
        raise OptionError(f"refine(graphs): dimension must be 1, 2 or 3, not {dimension!r}.")
    if len(sizes := sorted({graph.n for graph in graphs})) != 1:
        raise DataError(f"refine(graphs): the graphs must have equally many nodes, but they have {sizes}.")
    adjacency = torch.stack([to_dense(graph).long() for graph in graphs])
    colours, rounds = _initial(adjacency, dimension), 0
    while _count(finer := _refined(colours, adjacency)) > _count(colours):
        colours, rounds = finer, rounds + 1
    counts = torch.stack([graph.reshape(-1).bincount(minlength=_count(colours)) for graph in colours])
    return Refined(tuple(_ranks(counts).tolist()), rounds)


def _initial(adjacency: Tensor, dimension: int) -> Tensor:
    """The first colours (graphs, n, ..., n): which nodes of a tuple are equal, adjacent, or have self-loops."""
    n = adjacency.shape[1]
    between = adjacency + 2 * adjacency.mT + 4 * torch.eye(n, dtype=torch.int64)
    slots = torch.meshgrid([torch.arange(n)] * dimension, indexing="ij")
    colours = torch.zeros(len(adjacency), *[n] * dimension, dtype=torch.int64)
    for first, second in combinations_with_replacement(slots, 2):
        colours = 8 * colours + between[:, first, second]
    return _ranks(colours.reshape(-1, 1)).reshape(colours.shape)


def _refined(colours: Tensor, adjacency: Tensor) -> Tensor:
    """The colours after one more round; those of nodes need the edges, which colours of tuples contain already."""
    dimension, n = colours.ndim - 1, colours.shape[1]
    keys = torch.zeros(*colours.shape, n, dtype=torch.int64)
    for slot in range(1, dimension + 1):  # the colours with each node w, the last axis, in this slot
        keys.mul_(_count(colours)).add_(colours.movedim(slot, -1).unsqueeze(slot))
    if dimension == 1:
        keys = 4 * keys + adjacency + 2 * adjacency.mT
    rows = torch.cat([colours.unsqueeze(-1), keys.sort(-1).values], -1).reshape(-1, n + 1)
    return _ranks(rows).reshape(colours.shape)


def _ranks(rows: Tensor) -> Tensor:
    """The index of each row in the sorted list of different rows."""
    ranks: Tensor = torch.unique(rows, dim=0, return_inverse=True)[1]
    return ranks


def _count(colours: Tensor) -> int:
    return int(colours.max()) + 1 if colours.numel() else 0
