"""Twin reduction: the paper's network on graphs with one node for each class of structurally equivalent nodes.

Nodes with the same label and the same neighbours can be exchanged without changing the graph, so every layer gives them
the same values. Each class is computed once and counted as often as it has nodes: the same function, to rounding.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

import torch
from torch import Tensor
from torch.nn.functional import pad

from bellnet import EquivariantLinear, InvariantNet, Sparse, data, plan


def equivalent_nodes(graph: data.Graph) -> list[list[int]]:
    """The classes of structurally equivalent nodes, in the order of their first nodes."""
    has_edge = torch.zeros(graph.n, graph.n, dtype=torch.bool)
    has_edge[graph.edge_index[0], graph.edge_index[1]] = True
    own = [has_edge.diagonal().clone().unsqueeze(1)]
    if graph.node_labels is not None:
        own.append(graph.node_labels.reshape(graph.n, -1))
    labels = torch.cat([column.long() for column in own], 1)
    classes: dict[int, list[int]] = {node: [node] for node in range(graph.n)}
    # Equivalent nodes with an edge between them have equal rows once each is its own neighbour, others if none is. No
    # node has both kinds: of two nodes that are equivalent to it, both have an edge to it or none.
    for with_loops in (True, False):
        rows = has_edge.fill_diagonal_(with_loops)
        keys = torch.cat([rows, rows.T], 1).numpy()
        first: dict[bytes, int] = {}
        for node in range(graph.n):
            same = first.setdefault(keys[node].tobytes() + labels[node].numpy().tobytes(), node)
            if same != node:
                classes[same] += classes.pop(node)
    return [sorted(nodes) for nodes in classes.values()]


class ReducedGraph(NamedTuple):
    """A graph with one node for each class.

    Attributes:
        pairs: (classes, classes, channels), the value of two different nodes of these classes; if a class has a single
            node, its entry with itself is meaningless.
        nodes: (classes, channels), the value of a node with itself.
        counts: (classes,), the number of nodes of each class.
    """

    pairs: Tensor
    nodes: Tensor
    counts: Tensor

    @classmethod
    def of(cls, graph: Sparse, classes: Sequence[Sequence[int]]) -> "ReducedGraph":
        """The reduction of an encoded graph."""
        values = graph.to_dense()
        first, last = (torch.tensor([nodes[end] for nodes in classes], dtype=torch.long) for end in (0, -1))
        # The first node of a class and the last of another are different, unless it is one class of a single node.
        counts = torch.tensor([len(nodes) for nodes in classes], dtype=values.dtype)
        return cls(values[first[:, None], last], values[first, first], counts)


@dataclass(frozen=True, eq=False)
class ReducedBatch:
    """Reduced graphs of one original size, padded with zeros to the same number of classes.

    Attributes:
        n: The number of nodes of each original graph.
        n_classes: The number of classes of each graph.
        pairs: (graphs, classes, classes, channels)
        nodes: (graphs, classes, channels)
        counts: (graphs, classes), zero in the padding.
    """

    n: int
    n_classes: tuple[int, ...]
    pairs: Tensor
    nodes: Tensor
    counts: Tensor

    @classmethod
    def of(cls, graphs: Sequence[ReducedGraph]) -> "ReducedBatch":
        n_classes = tuple(len(graph.counts) for graph in graphs)
        padded = []
        for graph, count in zip(graphs, n_classes, strict=True):
            more = (0, max(n_classes) - count)
            sides = ((0, 0, *more, *more), (0, 0, *more), more)
            padded.append([pad(tensor, side) for tensor, side in zip(graph, sides, strict=True)])
        return cls(int(graphs[0].counts.sum()), n_classes, *map(torch.stack, zip(*padded, strict=True)))

    def to(self, device: torch.device) -> "ReducedBatch":
        tensors = (tensor.to(device) for tensor in (self.pairs, self.nodes, self.counts))
        return ReducedBatch(self.n, self.n_classes, *tensors)


class ReducibleNet(InvariantNet):
    """A network of layers `n n -> n n` with max pooling, which also takes reduced graphs."""

    def forward(self, x: Any, *more: object) -> Tensor:
        """The logits, a row for each graph."""
        if not isinstance(x, ReducedBatch):
            return super().forward(x, *more)
        graphs = x
        *inner, last = (cast(EquivariantLinear, block.layer) for block in self.blocks)
        pairs, nodes = graphs.pairs, graphs.nodes
        for layer in inner:
            found = _LayerOutput(layer, pairs, nodes, graphs)
            pairs, nodes = torch.relu(found.pairs()), torch.relu(found.nodes())
        pooled = _max_pool(_LayerOutput(last, pairs, nodes, graphs), graphs)
        logits = self.head(self.activation(pooled))
        return cast(Tensor, logits)


MAPS = tuple("".join(map(str, diagram.partition)) for diagram in plan("n n -> n n").diagrams)
"""The maps of a layer in the order of its weights. Axes with the same digit carry the same node; input axes first."""
FROM_NODES = (("0001", "0102", "0112"), ("0010", "0120", "0121"), ("0000", "0100", "0111"))
"""Of the contractions to nodes (diagonal, rows, columns), the maps to rows, to columns, to the diagonal."""
FROM_GRAPHS = (("0011", "0122"), ("0012", "0123"))
"""Of the contractions to graphs (trace, total), the maps to the diagonal and to all pairs, in the order of biases."""
IDENTITY, TRANSPOSE = "0101", "0110"
BLOCK = 1024
"""Pairs whose maximum is computed at a time: with 256 channels they fit into a cache."""


class _LayerOutput:
    """The output of a layer as the terms that pairs and nodes sum."""

    def __init__(self, layer: EquivariantLinear, pairs: Tensor, nodes: Tensor, graphs: ReducedBatch) -> None:
        maps = dict(zip(MAPS, layer.weight.unbind(), strict=True))
        self.input, self.diagonal_input = pairs, nodes
        self.identity, self.transpose = maps[IDENTITY], maps[TRANSPOSE]
        counts = graphs.counts.unsqueeze(1)
        # A node has itself on the diagonal, not one more of its class.
        surplus = nodes - pairs.diagonal(dim1=1, dim2=2).transpose(1, 2)
        rows = (counts.unsqueeze(1) @ pairs).squeeze(2) + surplus
        columns = (counts @ pairs.flatten(2)).view(nodes.shape) + surplus
        on_nodes = torch.cat([nodes, rows / graphs.n, columns / graphs.n], -1)
        of_graphs = counts / graphs.n @ on_nodes[..., : 2 * nodes.shape[-1]]
        self.rows, self.columns, diagonal = (on_nodes @ torch.cat([maps[name] for name in some]) for some in FROM_NODES)
        on_diagonal, everywhere = (of_graphs @ torch.cat([maps[name] for name in some]) for some in FROM_GRAPHS)
        bias = cast(Tensor, layer.bias)
        self.diagonal = diagonal + (on_diagonal + bias[0])
        self.rows = self.rows + (everywhere + bias[1])

    def pairs(self) -> Tensor:
        """(graphs, classes, classes, channels)"""
        same, turned = (self.input @ torch.cat([self.identity, self.transpose], 1)).chunk(2, -1)
        return same + turned.transpose(1, 2) + self.rows.unsqueeze(2) + self.columns.unsqueeze(1)

    def nodes(self) -> Tensor:
        """(graphs, classes, channels)"""
        return self.diagonal_input @ (self.identity + self.transpose) + self.rows + self.columns + self.diagonal

    def rows_of(self, graph: int, n_classes: int, rows: slice) -> Tensor:
        """(rows, classes, channels), some rows of one graph."""
        values = self.input[graph, :n_classes, :n_classes]
        found = self.rows[graph, :n_classes][rows, None] + self.columns[graph, :n_classes]
        found.flatten(0, 1).addmm_(values[rows].flatten(0, 1), self.identity)
        found.flatten(0, 1).addmm_(values[:, rows].transpose(0, 1).flatten(0, 1), self.transpose)
        return found

    def entries(self, graph: Tensor, row: Tensor, column: Tensor) -> Tensor:
        """(graphs, channels), for each graph and channel the value of one pair."""
        channel = torch.arange(row.shape[1], device=row.device)
        same, turned = self.input[graph, row, column], self.input[graph, column, row]
        products = (same * self.identity.T + turned * self.transpose.T).sum(-1)
        return products + self.rows[graph, row, channel] + self.columns[graph, column, channel]


def _max_pool(output: _LayerOutput, graphs: ReducedBatch) -> Tensor:
    """(graphs, 2 * channels), the maximum over the diagonal and over all other pairs; zero where there are none."""
    nodes = output.nodes().masked_fill((graphs.counts == 0).unsqueeze(-1), -torch.inf).amax(1)
    if graphs.n < 2:
        return torch.cat([nodes, torch.zeros_like(nodes)], 1)
    found = [_argmax(output, graphs, graph) for graph in range(len(graphs.n_classes))]
    row, column = (torch.stack(some) for some in zip(*found, strict=True))
    return torch.cat([nodes, output.entries(torch.arange(len(row), device=row.device).unsqueeze(1), row, column)], 1)


@torch.no_grad()
def _argmax(output: _LayerOutput, graphs: ReducedBatch, graph: int) -> tuple[Tensor, Tensor]:
    """Row and column, for each channel, of the maximum outside the diagonal of a graph."""
    n_classes = graphs.n_classes[graph]
    single = graphs.counts[graph, :n_classes] == 1
    step = max(1, BLOCK // n_classes)
    found = []
    for start in range(0, n_classes, step):
        pairs = output.rows_of(graph, n_classes, slice(start, start + step))
        diagonal = pairs.diagonal(start)
        diagonal[:, single[start : start + step]] = -torch.inf
        # torch computes a maximum much faster than its index: first the row, then the column in this row.
        largest, row = pairs.amax(1).max(0)
        found.append((largest, row + start, pairs[row, :, torch.arange(len(row), device=row.device)].argmax(1)))
    largest, row, column = (torch.stack(some) for some in zip(*found, strict=True))
    best = largest.argmax(0, keepdim=True)
    return row.gather(0, best).squeeze(0), column.gather(0, best).squeeze(0)
