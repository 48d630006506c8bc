"""What methods know of nodes: their labels, or where there are none, how many edges they have."""

from collections.abc import Sequence

import torch
from torch import Tensor

from bellnet.data import Graph


def labels_of(graphs: Sequence[Graph]) -> list[Tensor]:
    """A label for each node of each graph: as published if every graph has labels, its degree otherwise."""
    if all(graph.node_labels is not None and graph.node_labels.dim() == 1 for graph in graphs):
        return [graph.node_labels for graph in graphs if graph.node_labels is not None]
    return [torch.bincount(graph.edge_index[0], minlength=graph.n) for graph in graphs]
