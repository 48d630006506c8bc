"""The network of Table 3: three equivariant layers, the maximum over each orbit, three fully connected layers.

With the layout "sparse" hidden values live on edges and nodes only, and so does the maximum. That is another function
than the dense one with the same weights, unless all pairs are listed.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, cast

import torch
from torch import Tensor, nn
from torch.nn.functional import pad

from bellnet import EquivariantLinear, InvariantNet, Sparse, data, plan
from experiments.graph_cells import GraphCell


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


MAPS = tuple("".join(map(str, diagram.partition)) for diagram in plan("n n -> n n").diagrams)
"""The maps of a layer in the order of its weights. Slots with the same digit hold the same node, the source's first."""
FROM_NODES = (("0001", "0102", "0112"), ("0010", "0120", "0121"), ("0000", "0100", "0111"))
"""Of what is read on nodes (diagonal, rows, columns), the maps that write it to rows, to columns, to the diagonal."""
FROM_GRAPHS = (("0011", "0122"), ("0012", "0123"))
"""Of what is read of graphs (trace, total), the maps to the diagonal and to all pairs, in the order of biases."""
SAME, TURNED = "0101", "0110"
PIECE = 1024
"""Pairs whose largest numbers are looked for at a time: with 256 channels they fit into a cache."""


def said_of_kinds(net: InvariantNet, graphs: KindsBatch) -> Tensor:
    """What the network of Table 3 says of graphs, a row for each."""
    *inner, last = (cast(EquivariantLinear, block.layer) for block in net.blocks)
    pairs, nodes = graphs.pairs, graphs.nodes
    for layer in inner:
        parts = _Parts(layer, pairs, nodes, graphs)
        pairs, nodes = torch.relu(parts.pairs()), torch.relu(parts.nodes())
    pooled = _largest(_Parts(last, pairs, nodes, graphs), graphs)
    said: Tensor = net.head(net.activation(pooled))
    return said


class _Parts:
    """What a layer makes of pairs and nodes, before it is put together."""

    def __init__(self, layer: EquivariantLinear, pairs: Tensor, nodes: Tensor, graphs: KindsBatch) -> None:
        maps = dict(zip(MAPS, layer.weight.unbind(), strict=True))
        self.before, self.diagonal_before, self.same, self.turned = pairs, nodes, maps[SAME], maps[TURNED]
        counts = graphs.counts.unsqueeze(1)
        # A node has itself on the diagonal, not one more of its kind.
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
        """(graphs, kinds, kinds, channels)"""
        same, turned = (self.before @ torch.cat([self.same, self.turned], 1)).chunk(2, -1)
        return same + turned.transpose(1, 2) + self.rows.unsqueeze(2) + self.columns.unsqueeze(1)

    def nodes(self) -> Tensor:
        """(graphs, kinds, channels)"""
        return self.diagonal_before @ (self.same + self.turned) + self.rows + self.columns + self.diagonal

    def pairs_of(self, graph: int, n_kinds: int, rows: slice) -> Tensor:
        """(rows, kinds, channels), some rows of one graph."""
        before = self.before[graph, :n_kinds, :n_kinds]
        found = self.rows[graph, :n_kinds][rows, None] + self.columns[graph, :n_kinds]
        found.flatten(0, 1).addmm_(before[rows].flatten(0, 1), self.same)
        found.flatten(0, 1).addmm_(before[:, rows].transpose(0, 1).flatten(0, 1), self.turned)
        return found

    def pairs_at(self, graph: Tensor, row: Tensor, column: Tensor) -> Tensor:
        """(graphs, channels): of each graph and channel the value of one pair."""
        channel = torch.arange(row.shape[1], device=row.device)
        same, turned = self.before[graph, row, column], self.before[graph, column, row]
        products = (same * self.same.T + turned * self.turned.T).sum(-1)
        return products + self.rows[graph, row, channel] + self.columns[graph, column, channel]


def _largest(parts: _Parts, graphs: KindsBatch) -> Tensor:
    """(graphs, 2 * channels): the largest of the diagonal and of all other pairs; zero where there are none."""
    nodes = parts.nodes().masked_fill((graphs.counts == 0).unsqueeze(-1), -torch.inf).amax(1)
    if graphs.n < 2:
        return torch.cat([nodes, torch.zeros_like(nodes)], 1)
    found = [_place_of_largest(parts, graphs, graph) for graph in range(len(graphs.n_kinds))]
    row, column = (torch.stack(some) for some in zip(*found, strict=True))
    return torch.cat([nodes, parts.pairs_at(torch.arange(len(row), device=row.device).unsqueeze(1), row, column)], 1)


@torch.no_grad()
def _place_of_largest(parts: _Parts, graphs: KindsBatch, graph: int) -> tuple[Tensor, Tensor]:
    """Row and column, of each channel, of the largest value that is not on the diagonal of a graph."""
    n_kinds = graphs.n_kinds[graph]
    alone = graphs.counts[graph, :n_kinds] == 1
    step = max(1, PIECE // n_kinds)
    found = []
    for start in range(0, n_kinds, step):
        pairs = parts.pairs_of(graph, n_kinds, slice(start, start + step))
        diagonal = pairs.diagonal(start)
        diagonal[:, alone[start : start + step]] = -torch.inf
        # Where a largest number stands takes torch far longer to say than what it is: first the row, then where in it.
        largest, row = pairs.amax(1).max(0)
        found.append((largest, row + start, pairs[row, :, torch.arange(len(row), device=row.device)].argmax(1)))
    largest, row, column = (torch.stack(some) for some in zip(*found, strict=True))
    best = largest.argmax(0, keepdim=True)
    return row.gather(0, best).squeeze(0), column.gather(0, best).squeeze(0)


def graph_net(cell: GraphCell, in_channels: int, n_classes: int) -> InvariantNet:
    """The network of a cell, with its initial weights drawn."""
    net = InvariantNet(
        "n n",
        [in_channels, *cell.channels],
        n_classes,
        hidden=cell.hidden,
        reduce="max",
        pool_over="stored" if cell.layout == "sparse" else "all",
    )
    draw_xavier(net)
    return net


def said_of(net: InvariantNet, graphs: Tensor | Sparse | KindsBatch) -> Tensor:
    """What a network says of a batch, a row for each graph; with twins together or not, it is the same."""
    said: Tensor = said_of_kinds(net, graphs) if isinstance(graphs, KindsBatch) else net(graphs)
    return said


@torch.no_grad()
def draw_xavier(net: nn.Module) -> None:
    """Draw every weight anew with variance 2 / (in + out), and set every bias to zero.

    In an equivariant layer each of the maps has a normal distribution of that variance, as in the authors' network;
    it is not divided among them. Fully connected layers draw uniformly.
    """
    for layer in net.modules():
        if isinstance(layer, EquivariantLinear):
            nn.init.normal_(layer.weight, std=(2 / (layer.in_channels + layer.out_channels)) ** 0.5)
        elif isinstance(layer, nn.Linear):
            nn.init.xavier_uniform_(layer.weight)
        else:
            continue
        if layer.bias is not None:
            nn.init.zeros_(layer.bias)
