"""Provably powerful graph networks (Maron et al., 2019): products of matrices between pointwise networks."""

from typing import Any

import torch
from torch import Tensor, nn

from bellnet import Padded, PPGNet
from experiments.methods.base import Options, Task
from experiments.methods.examples import Together
from experiments.methods.network import Network


class ProvablyPowerful(Network):
    """The library's `PPGNet`, one recipe for all data sets."""

    title = "PPGN"
    packages = ()

    def usual(self) -> dict[str, Any]:
        """Three blocks of 32, pooled by maximum and mean."""
        training = {"epochs": 100, "rate": 0.002, "halve_every": 40, "batch": 20, "weight_decay": 0.0}
        return {**training, "blocks": 3, "width": 32, "hidden": 64, "dropout": 0.2}

    def make(self, task: Task, channels: int, options: Options) -> nn.Module:
        """The network."""
        return _Net(channels, task.graphs.n_classes, options)


class _Net(nn.Module):
    def __init__(self, channels: int, classes: int, options: Options) -> None:
        super().__init__()
        widths = [1 + channels] + [options["width"]] * options["blocks"]
        self.net = PPGNet(
            "n n", widths, classes, hidden=[options["hidden"]], reduce=("max", "mean"), dropout=options["dropout"]
        )

    def forward(self, batch: Together) -> Tensor:
        said: Tensor = self.net(_pairs(batch))
        return said


def _pairs(batch: Together) -> Padded:
    """Edges in the first channel, labels of nodes on the diagonal in the others."""
    sizes = torch.bincount(batch.batch, minlength=batch.num_graphs)
    within = torch.arange(len(batch.batch)) - (sizes.cumsum(0) - sizes)[batch.batch]
    longest = int(sizes.max())
    values = batch.x.new_zeros(batch.num_graphs, longest, longest, 1 + batch.x.shape[1])
    start, end = batch.edge_index
    values[batch.batch[start], within[start], within[end], 0] = 1
    values[batch.batch, within, within, 1:] = batch.x
    return Padded(values, sizes)


METHOD = ProvablyPowerful()
