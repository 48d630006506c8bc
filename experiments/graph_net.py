"""The network of Table 3: three equivariant layers, the maximum over each orbit, three fully connected layers.

With the layout "sparse" hidden values live on edges and nodes only, and so does the maximum. That is another function
than the dense one with the same weights, unless all pairs are listed.
"""

import torch
from torch import Tensor, nn

from bellnet import EquivariantLinear, InvariantNet, Sparse
from experiments.graph_cells import GraphCell
from experiments.kinds_net import said_of_kinds
from experiments.twins import KindsBatch


def graph_net(cell: GraphCell, in_channels: int, n_classes: int) -> InvariantNet:
    """The network of a cell, with its initial weights drawn."""
    net = InvariantNet(
        "n n",
        [in_channels, *cell.channels],
        n_classes,
        hidden=cell.hidden,
        reduce="max",
        pool_over="listed" if cell.layout == "sparse" else "all",
    )
    if cell.initial == "xavier":
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
