"""Edge-conditioned convolution (Simonovsky and Komodakis, 2017): an edge's label says by which matrix it passes on."""

from typing import Any

import torch
from torch import Tensor, nn

from experiments.methods.base import Options, Task
from experiments.methods.examples import Together
from experiments.methods.network import Network


class EdgeConditioned(Network):
    """Without the coarser graphs that its authors add.

    The published graphs have no labels on their edges: every edge has the same, and a layer is a mean over neighbours.
    """

    title = "ECC"

    def usual(self) -> dict[str, Any]:
        """Three layers of 32."""
        training = {"epochs": 60, "rate": 0.005, "halve_every": 20, "batch": 50, "weight_decay": 0.0}
        return {**training, "layers": 3, "width": 32, "edge_width": 16, "hidden": 64, "dropout": 0.2}

    def make(self, task: Task, channels: int, options: Options) -> nn.Module:
        """The network."""
        return _Net(channels, task.graphs.n_classes, options)


class _Net(nn.Module):
    def __init__(self, channels: int, classes: int, options: Options) -> None:
        from torch_geometric.nn import NNConv

        super().__init__()
        width, edge_width = options["width"], options["edge_width"]
        self.first = nn.Linear(channels, width)
        self.layers = nn.ModuleList()
        for _ in range(options["layers"]):
            matrices = nn.Sequential(nn.Linear(1, edge_width), nn.ReLU(), nn.Linear(edge_width, width * width))
            self.layers.append(NNConv(width, width, matrices, aggr="mean"))
        self.norms = nn.ModuleList(nn.BatchNorm1d(width) for _ in self.layers)
        self.head = nn.Sequential(
            nn.Linear(width, options["hidden"]),
            nn.ReLU(),
            nn.Dropout(options["dropout"]),
            nn.Linear(options["hidden"], classes),
        )

    def forward(self, batch: Together) -> Tensor:
        from torch_geometric.nn import global_mean_pool

        x, edges = self.first(batch.x), batch.x.new_ones(batch.edge_index.shape[1], 1)
        for layer, norm in zip(self.layers, self.norms, strict=True):
            x = torch.relu(norm(layer(x, batch.edge_index, edges)))
        said: Tensor = self.head(global_mean_pool(x, batch.batch, batch.num_graphs))
        return said


METHOD = EdgeConditioned()
