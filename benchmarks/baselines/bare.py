"""A lower bound for a layer from order k to order k: mix the channels once for every permutation of the k axes."""

from math import factorial

import torch
from torch import Tensor, nn


class BareProduct(nn.Module):
    """One matrix product x @ [W_1 | W_2 | ...]: not the layer, but a lower bound of its cost.

    (*batch, node axes, in_channels) becomes (*batch, node axes, k! * out_channels). Nothing is transposed, summed or
    added. For `n n -> n n` the product is x @ [W_straight | W_transposed].
    """

    def __init__(self, order: int, in_channels: int, out_channels: int, *, dtype: torch.dtype | None = None) -> None:
        super().__init__()
        width = factorial(order) * out_channels
        self.weight = nn.Parameter(torch.randn(in_channels, width, dtype=dtype) / in_channels**0.5)

    def forward(self, x: Tensor) -> Tensor:
        rows = x.reshape(-1, x.shape[-1]) @ self.weight
        return rows.reshape(*x.shape[:-1], self.weight.shape[-1])
