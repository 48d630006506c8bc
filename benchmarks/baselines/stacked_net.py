"""The paper's network of stacked layers, channels first, as in public implementations."""

from typing import Self

import torch
from torch import Tensor, nn

from bellnet import EquivariantLinear, InvariantNet
from benchmarks.baselines.stacked import StackedFifteen


class StackedNet(nn.Module):
    """Stacked layers with ReLU after each, the maxima on and off the diagonal, fully connected layers.

    Attributes:
        stack: The layers, on (batch, channels, n, n).
        head: Fully connected layers with ReLU between them.
    """

    def __init__(self, stack: nn.Sequential, head: nn.Sequential) -> None:
        super().__init__()
        self.stack, self.head = stack, head

    @classmethod
    def like(cls, net: InvariantNet) -> Self:
        """The same function with channels first, for a network "n n" with its default options."""
        layers = [layer for layer in net.modules() if isinstance(layer, EquivariantLinear)]
        stack = [module for layer in layers for module in (StackedFifteen.like(layer), nn.ReLU())]
        dense = [layer for layer in net.head if isinstance(layer, nn.Linear)]
        head = [module for layer in dense for module in (_copied(layer), nn.ReLU())]
        return cls(nn.Sequential(*stack), nn.Sequential(*head[:-1]))

    def forward(self, x: Tensor) -> Tensor:
        mixed = self.stack(x)
        eye = torch.eye(x.shape[-1], dtype=torch.bool, device=x.device)
        off_diagonal = mixed.masked_fill(eye, -torch.inf).amax((2, 3))
        output: Tensor = self.head(torch.cat([mixed.diagonal(0, 2, 3).amax(2), off_diagonal], 1))
        return output


def _copied(layer: nn.Linear) -> nn.Linear:
    copy = nn.Linear(layer.in_features, layer.out_features, dtype=layer.weight.dtype)
    copy.load_state_dict(layer.state_dict())
    return copy
