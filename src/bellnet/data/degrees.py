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


def log_degrees(graphs: Sequence[Graph]) -> Tensor:
    """For every node log(1 + degree); in a directed graph the degree is the mean of edges that leave and that come."""
    leaving, coming = degrees(graphs)
    return ((leaving + coming) / 2).log1p()


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
