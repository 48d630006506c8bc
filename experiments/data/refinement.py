"""Colour refinement, exactly: what theory says of two graphs, with whole numbers for colours and nothing else.

In dimension 1 nodes are coloured: at first all alike, then by their own colour and those of their neighbours, again and
again (Weisfeiler and Leman, 1968). In dimension k it is tuples of k nodes: at first by which of their nodes are equal
and linked, then, for every node w, by the k colours of the tuples that have w in the place of one of theirs. That is
the *folklore* form; dimension k of it tells apart what dimension k + 1 of the other form does, and what networks of
order k + 1 do.

A colour is a rank in the sorted list of all that occurs in both graphs. So equal colours mean equal histories, and no
hash makes different ones equal.
"""

from collections.abc import Sequence
from itertools import combinations
from typing import NamedTuple

import torch
from torch import Tensor

from bellnet.data import Graph
from bellnet.errors import DataError, OptionError

DIMENSIONS = (1, 2, 3)


class Refined(NamedTuple):
    """What colour refinement leaves of several graphs.

    Attributes:
        kinds: A number for each graph, the same for those that are never told apart.
        rounds: After how many rounds colours change no more.
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
    adjacency = _adjacency("refine(graphs)", graphs, dimension)
    colours = _by_kind(adjacency, dimension)
    rounds = 0
    while _count(finer := _refined(colours, adjacency)) > _count(colours):
        colours, rounds = finer, rounds + 1
    counts = torch.stack([graph.reshape(-1).bincount(minlength=_count(colours)) for graph in colours])
    return Refined(tuple(_ranks(counts).tolist()), rounds)


def _adjacency(call: str, graphs: Sequence[Graph], dimension: int) -> Tensor:
    """(graphs, n, n): one where there is an edge. What could not be refined is refused."""
    if dimension not in DIMENSIONS:
        raise OptionError(f"{call}: dimension must be 1, 2 or 3, not {dimension!r}.")
    sizes = {graph.n for graph in graphs}
    if len(sizes) > 1:
        raise DataError(f"{call}: the graphs must have equally many nodes, but they have {sorted(sizes)}.")
    n = max(sizes, default=0)
    adjacency = torch.zeros(len(graphs), n, n, dtype=torch.int64)
    for place, graph in enumerate(graphs):
        adjacency[place, graph.edge_index[0], graph.edge_index[1]] = 1
    return adjacency


def _by_kind(adjacency: Tensor, dimension: int) -> Tensor:
    """The first colours, (graphs, n, ..., n): which nodes of a tuple are equal, linked, linked with themselves."""
    count, n = adjacency.shape[:2]
    colours = torch.zeros(count, *[n] * dimension, dtype=torch.int64)
    between = adjacency + 2 * adjacency.mT + 4 * torch.eye(n, dtype=torch.int64)
    for pair in combinations(range(dimension), 2):
        shape = [n if slot in pair else 1 for slot in range(dimension)]
        colours = 8 * colours + between.reshape(count, *shape)
    for slot in range(dimension):
        loops = adjacency.diagonal(dim1=1, dim2=2)
        colours = 2 * colours + loops.reshape(count, *(n if other == slot else 1 for other in range(dimension)))
    return _ranks(colours.reshape(-1, 1)).reshape(colours.shape)


def _refined(colours: Tensor, adjacency: Tensor) -> Tensor:
    """The colours after one more round; those of nodes need the links, which colours of tuples know already."""
    dimension, n, several = colours.ndim - 1, colours.shape[1], _count(colours)
    keys = torch.zeros(*colours.shape, n, dtype=torch.int64)
    for slot in range(dimension):  # the colours with each node, last, in the place of the one in this slot
        keys.mul_(several).add_(colours.movedim(slot + 1, -1).unsqueeze(slot + 1))
    if dimension == 1:
        keys = 4 * keys + adjacency + 2 * adjacency.mT
    rows = torch.cat([colours.unsqueeze(-1), keys.sort(-1).values], -1).reshape(-1, n + 1)
    return _ranks(rows).reshape(colours.shape)


def _ranks(rows: Tensor) -> Tensor:
    """For each row its place in the sorted list of all that occur."""
    ranks: Tensor = torch.unique(rows, dim=0, return_inverse=True)[1]
    return ranks


def _count(colours: Tensor) -> int:
    return int(colours.max()) + 1 if colours.numel() else 0
