"""The paper's network on graphs whose twins are taken together: the same numbers, from fewer pairs of nodes.

A layer `n n -> n n` reads the diagonal, rows, columns and totals; where a kind stands for several nodes, sums count it
as often. Everything else happens to each pair of kinds by itself. The last layer is never formed for a gradient: the
maximum of a channel depends on one pair, which is found first, and what the network says of it is computed once more.
"""

from typing import cast

import torch
from torch import Tensor

from bellnet import EquivariantLinear, InvariantNet, plan
from experiments.twins import KindsBatch

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
