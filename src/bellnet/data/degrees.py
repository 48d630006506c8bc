"""The degrees of nodes and sizes of graphs, and what is made of them: weights of edges, and channels."""

from collections.abc import Sequence

import torch
from torch import Tensor

from bellnet.data.graph import Graph


def normalized(graphs: Sequence[Graph]) -> Tensor:
    """For every edge one over the root of the product of the degrees of its ends."""
    source, target = _ends(graphs)
    leaving, coming = degrees(graphs)
    return (leaving[source] * coming[target]).rsqrt()


def degrees(graphs: Sequence[Graph]) -> tuple[Tensor, Tensor]:
    """For every node of all graphs how many edges leave it, and how many come to it."""
    total = sum(graph.n for graph in graphs)
    leaving, coming = (torch.bincount(ends, minlength=total).double() for ends in _ends(graphs))
    return leaving, coming


def mean_degrees(graphs: Sequence[Graph]) -> Tensor:
    """For every node its degree; in a directed graph that is the mean of edges that leave and that come."""
    leaving, coming = degrees(graphs)
    return (leaving + coming) / 2


def log_degrees(graphs: Sequence[Graph]) -> Tensor:
    """For every node log(1 + degree)."""
    return mean_degrees(graphs).log1p()


def knots_of(graphs: Sequence[Graph], most: int) -> tuple[float, ...]:
    """All degrees that nodes have; if these are more than so many, the finest quantiles of which no more are different.

    A single one would say nothing, and is none.
    """
    found = mean_degrees(graphs).sort().values
    knots = sorted(set(found.tolist()))
    if len(knots) > most:
        # Most nodes may have the same few degrees, and few of their quantiles be different: finer ones are needed then.
        fine, too_fine = most, len(found)
        while too_fine - fine > 1:
            between = (fine + too_fine) // 2
            fine, too_fine = (between, too_fine) if len(_quantiles(found, between)) <= most else (fine, between)
        knots = _quantiles(found, fine)
    return tuple(knots) if len(knots) > 1 else ()


def _quantiles(ascending: Tensor, count: int) -> list[float]:
    """So many numbers at equal distances in their order, the least and the largest among them, each once."""
    places = torch.linspace(0, len(ascending) - 1, count, dtype=torch.float64).round().long()
    return sorted(set(ascending[places].tolist()))


def shares_of_knots(graphs: Sequence[Graph], knots: Sequence[float]) -> Tensor:
    """(nodes, knots): one at the knot that is the degree of a node, or shared by the two knots that it lies between.

    It is shared on a straight line of log(1 + degree). What lies outside all knots belongs to the outermost.
    """
    places = torch.tensor(knots, dtype=torch.float64).log1p()
    found = log_degrees(graphs).clamp(places[0], places[-1])
    after = torch.searchsorted(places, found).clamp(min=1)
    before = after - 1
    share = ((found - places[before]) / (places[after] - places[before])).unsqueeze(-1)
    shares = found.new_zeros(len(found), len(places))
    return shares.scatter_(1, after.unsqueeze(-1), share).scatter_(1, before.unsqueeze(-1), 1 - share)


def log_sizes(graphs: Sequence[Graph]) -> Tensor:
    """For every graph log(1 + n), n being the number of its nodes."""
    return torch.tensor([graph.n for graph in graphs], dtype=torch.float64).log1p()


def scale_of(logarithms: Tensor) -> tuple[float, float]:
    """Mean and standard deviation; the deviation is 1 where all numbers are the same."""
    if not len(logarithms):
        return 0.0, 1.0
    deviation = float(logarithms.std(correction=0))
    return float(logarithms.mean()), deviation if deviation > 1e-12 else 1.0


def _ends(graphs: Sequence[Graph]) -> Tensor:
    """The ends of the edges of all graphs, whose nodes are numbered on from graph to graph."""
    starts = torch.tensor([0, *(graph.n for graph in graphs)]).cumsum(0)
    return torch.cat([graph.edge_index + start for graph, start in zip(graphs, starts, strict=False)], 1)
