"""The deep graph convolutional network (Zhang et al., 2018): nodes, sorted by their last channel, form a line."""

from typing import Any

import torch
from torch import Tensor, nn

from experiments.methods.base import Options, Task
from experiments.methods.examples import Together
from experiments.methods.network import Network

FEWEST = 10
"""Nodes that are kept at least: with fewer there is nothing left for the second convolution along the line."""


class SortPooling(Network):
    """With the layers of its authors; so many nodes are kept that most training graphs have more."""

    title = "DGCNN"

    def usual(self) -> dict[str, Any]:
        """Convolutions of 32, 32, 32 and 1 channels; 60 percent of the graphs have more nodes than are kept."""
        training = {"epochs": 100, "rate": 0.001, "halve_every": 100, "batch": 50, "weight_decay": 0.0}
        return {**training, "widths": [32, 32, 32, 1], "larger": 0.6, "dropout": 0.5}

    def make(self, task: Task, channels: int, options: Options) -> nn.Module:
        """The network."""
        sizes = sorted((task.graphs.graphs[place].n for place in task.parts.train), reverse=True)
        kept = max(FEWEST, sizes[min(int(options["larger"] * len(sizes)), len(sizes) - 1)])
        return _Net(channels, task.graphs.n_classes, kept, options)


class _Net(nn.Module):
    def __init__(self, channels: int, classes: int, kept: int, options: Options) -> None:
        from torch_geometric.nn import SimpleConv, SortAggregation

        super().__init__()
        widths = list(options["widths"])
        self.layers = nn.ModuleList(
            nn.Linear(before, after, bias=False) for before, after in zip([channels, *widths[:-1]], widths, strict=True)
        )
        self.mean = SimpleConv(aggr="mean", combine_root="self_loop")
        self.sort = SortAggregation(kept)
        total = sum(widths)
        self.line = nn.Sequential(
            nn.Conv1d(1, 16, total, total), nn.ReLU(), nn.MaxPool1d(2, 2), nn.Conv1d(16, 32, 5), nn.ReLU(), nn.Flatten()
        )
        self.head = nn.Sequential(
            nn.Linear(32 * (kept // 2 - 4), 128), nn.ReLU(), nn.Dropout(options["dropout"]), nn.Linear(128, classes)
        )

    def forward(self, batch: Together) -> Tensor:
        x, found = batch.x, []
        for layer in self.layers:
            x = torch.tanh(self.mean(layer(x), batch.edge_index))
            found.append(x)
        pooled = self.sort(torch.cat(found, dim=1), batch.batch, dim_size=batch.num_graphs)
        said: Tensor = self.head(self.line(pooled.unsqueeze(1)))
        return said


METHOD = SortPooling()
