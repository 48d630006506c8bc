"""The graph isomorphism network (Xu et al., 2019): sums over neighbours, and over the nodes after every layer."""

from typing import Any

import torch
from torch import Tensor, nn

from experiments.methods.base import Options, Task
from experiments.methods.examples import Together
from experiments.methods.network import Network


class Isomorphism(Network):
    """With the hyper-parameters of its authors and of the comparison of Errica et al., 2020."""

    title = "GIN"

    def usual(self) -> dict[str, Any]:
        """Five layers of 64."""
        training = {"epochs": 150, "rate": 0.01, "halve_every": 50, "batch": 64, "weight_decay": 0.0}
        return {**training, "layers": 5, "width": 64, "dropout": 0.5}

    def make(self, task: Task, channels: int, options: Options) -> nn.Module:
        """The network."""
        return _Net(channels, task.graphs.n_classes, options)


class _Net(nn.Module):
    def __init__(self, channels: int, classes: int, options: Options) -> None:
        from torch_geometric.nn import GINConv

        super().__init__()
        width = options["width"]
        self.layers = nn.ModuleList()
        for before in [channels] + [width] * (options["layers"] - 1):
            inner = nn.Sequential(nn.Linear(before, width), nn.BatchNorm1d(width), nn.ReLU(), nn.Linear(width, width))
            self.layers.append(GINConv(inner, train_eps=True))
        self.norms = nn.ModuleList(nn.BatchNorm1d(width) for _ in self.layers)
        self.drop = nn.Dropout(options["dropout"])
        self.head = nn.Linear(channels + width * options["layers"], classes)

    def forward(self, batch: Together) -> Tensor:
        from torch_geometric.nn import global_add_pool

        x = batch.x
        pooled = [global_add_pool(x, batch.batch, batch.num_graphs)]
        for layer, norm in zip(self.layers, self.norms, strict=True):
            x = torch.relu(norm(layer(x, batch.heard)))
            pooled.append(global_add_pool(x, batch.batch, batch.num_graphs))
        said: Tensor = self.head(self.drop(torch.cat(pooled, dim=1)))
        return said


METHOD = Isomorphism()
