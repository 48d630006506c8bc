"""Differentiable pooling (Ying et al., 2018): a network deals the nodes to clusters, another one looks at these."""

from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from experiments.methods.base import Options, Task
from experiments.methods.examples import Together
from experiments.methods.network import Network


class DifferentiablePooling(Network):
    """Pooled once, on dense matrices; its two penalties, of links and of entropy, are added to the loss."""

    title = "DiffPool"

    def usual(self) -> dict[str, Any]:
        """Three layers of 64 before and after; a cluster for ten nodes of the largest graph."""
        training = {"epochs": 60, "rate": 0.001, "halve_every": 60, "batch": 20, "weight_decay": 0.0}
        return {**training, "width": 64, "part": 0.1}

    def make(self, task: Task, channels: int, options: Options) -> nn.Module:
        """The network."""
        largest = max(task.graphs.graphs[place].n for place in task.parts.train)
        clusters = max(2, int(options["part"] * largest))
        return _Net(channels, task.graphs.n_classes, clusters, options["width"])

    def loss(self, net: nn.Module, batch: Together) -> Tensor:
        """With the penalties."""
        assert isinstance(net, _Net)
        said, penalty = net.with_penalty(batch)
        return cross_entropy(said, batch.y) + penalty


class _Net(nn.Module):
    def __init__(self, channels: int, classes: int, clusters: int, width: int) -> None:
        super().__init__()
        self.embed = _Layers(channels, width, width)
        self.deal = _Layers(channels, width, clusters)
        self.after = _Layers(3 * width, width, width)
        self.head = nn.Sequential(nn.Linear(6 * width, 50), nn.ReLU(), nn.Linear(50, classes))
        self.dealt = nn.Linear(2 * width + clusters, clusters)

    def forward(self, batch: Together) -> Tensor:
        return self.with_penalty(batch)[0]

    def with_penalty(self, batch: Together) -> tuple[Tensor, Tensor]:
        from torch_geometric.nn import dense_diff_pool
        from torch_geometric.utils import to_dense_adj, to_dense_batch

        x, mask = to_dense_batch(batch.x, batch.batch, batch_size=batch.num_graphs)
        adjacency = to_dense_adj(
            batch.edge_index, batch.batch, batch_size=batch.num_graphs, max_num_nodes=mask.shape[1]
        )
        adjacency = adjacency.to(x)
        embedded = self.embed(x, adjacency, mask)
        shares = self.dealt(self.deal(x, adjacency, mask))
        pooled, links, of_links, of_entropy = dense_diff_pool(embedded, adjacency, shares, mask)
        before = embedded.masked_fill(~mask[..., None], -torch.inf).amax(1)
        after = self.after(pooled, links).amax(1)
        said: Tensor = self.head(torch.cat([before, after], dim=1))
        return said, of_links + of_entropy


class _Layers(nn.Module):
    """Three dense GraphSAGE layers, each normalised over nodes that are there; their outputs side by side."""

    def __init__(self, channels: int, width: int, last: int) -> None:
        from torch_geometric.nn import DenseSAGEConv

        super().__init__()
        widths = [channels, width, width, last]
        self.layers = nn.ModuleList(DenseSAGEConv(a, b) for a, b in pairwise(widths))
        self.norms = nn.ModuleList(nn.BatchNorm1d(width) for width in widths[1:])

    def forward(self, x: Tensor, adjacency: Tensor, mask: Tensor | None = None) -> Tensor:
        there = x.new_ones(x.shape[:2], dtype=torch.bool) if mask is None else mask
        found = []
        for layer, norm in zip(self.layers, self.norms, strict=True):
            said = torch.relu(layer(x, adjacency, mask))
            x = torch.zeros_like(said).masked_scatter(there[..., None], norm(said[there]))
            found.append(x)
        return torch.cat(found, dim=-1)


METHOD = DifferentiablePooling()
