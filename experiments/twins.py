"""Twins: nodes of a graph that may be exchanged, and graphs in which each kind of them is there once.

Two nodes are twins if they have the same label and the same neighbours, apart from each other. Exchanging them changes
nothing, so whatever an equivariant network computes has one value for all pairs from the same two kinds of nodes, one
for pairs of two nodes of a kind, and one for their diagonal. Graphs of who worked with whom are full of twins.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import pad

from bellnet import Sparse, data


def kinds_of(graph: data.Graph) -> list[list[int]]:
    """The nodes of a graph, twins together, in the order of the first of each kind."""
    has_edge = torch.zeros(graph.n, graph.n, dtype=torch.bool)
    has_edge[graph.edge_index[0], graph.edge_index[1]] = True
    own = [has_edge.diagonal().clone().unsqueeze(1)]
    if graph.node_labels is not None:
        own.append(graph.node_labels.reshape(graph.n, -1))
    colours = torch.cat([column.long() for column in own], 1)
    kinds: dict[int, list[int]] = {node: [node] for node in range(graph.n)}
    # Twins with an edge between them agree once each counts as its own neighbour, others if none does. No node has
    # twins of both sorts: of two twins of it, either both have an edge to it or none has.
    for with_edge in (True, False):
        rows = has_edge.fill_diagonal_(with_edge)
        seen = torch.cat([rows, rows.T], 1).numpy()
        first: dict[bytes, int] = {}
        for node in range(graph.n):
            same = first.setdefault(seen[node].tobytes() + colours[node].numpy().tobytes(), node)
            if same != node:
                kinds[same] += kinds.pop(node)
    return [sorted(kind) for kind in kinds.values()]


class Kinds(NamedTuple):
    """A graph with one node for each kind.

    Attributes:
        pairs: (kinds, kinds, channels), the value of two different nodes of these kinds; if there is but one node of
            a kind, its entry with itself means nothing.
        nodes: (kinds, channels), the value of a node with itself.
        counts: (kinds,), how many nodes are of each kind.
    """

    pairs: Tensor
    nodes: Tensor
    counts: Tensor

    @classmethod
    def of(cls, graph: Sparse, kinds: Sequence[Sequence[int]]) -> "Kinds":
        """The kinds of an encoded graph."""
        values = graph.to_dense()
        first, other = (torch.tensor([kind[place] for kind in kinds], dtype=torch.long) for place in (0, -1))
        # The first node of a kind and the last of another are different, unless there is one node of one kind.
        counts = torch.tensor([len(kind) for kind in kinds], dtype=values.dtype)
        return cls(values[first[:, None], other], values[first, first], counts)


@dataclass(frozen=True, eq=False)
class KindsBatch:
    """Graphs of one size, each with a node for each kind; where a graph has fewer kinds than others, zeros follow.

    Attributes:
        n: The nodes of each graph, twins counted one by one.
        n_kinds: The kinds of nodes of each graph.
        pairs: (graphs, kinds, kinds, channels)
        nodes: (graphs, kinds, channels)
        counts: (graphs, kinds), zero where there is no kind.
    """

    n: int
    n_kinds: tuple[int, ...]
    pairs: Tensor
    nodes: Tensor
    counts: Tensor

    @classmethod
    def of(cls, n: int, graphs: Sequence[Kinds]) -> "KindsBatch":
        """Graphs of n nodes, together."""
        n_kinds = tuple(len(graph.counts) for graph in graphs)
        most = max(n_kinds)
        padded = []
        for graph, count in zip(graphs, n_kinds, strict=True):
            more = (0, most - count)
            sides = ((0, 0, *more, *more), (0, 0, *more), more)
            padded.append([pad(tensor, side) for tensor, side in zip(graph, sides, strict=True)])
        return cls(n, n_kinds, *map(torch.stack, zip(*padded, strict=True)))

    def to(self, device: torch.device) -> "KindsBatch":
        """The same on a device."""
        tensors = (tensor.to(device) for tensor in (self.pairs, self.nodes, self.counts))
        return KindsBatch(self.n, self.n_kinds, *tensors)
