"""The least that any implementation of `n n -> n n` must do: mix the channels once straight and once transposed."""

import torch
from torch import Tensor, nn


class BareProduct(nn.Module):
    """One matrix product x @ [W_straight | W_transposed], nothing else: not the layer, but a floor under its cost.

    (*batch, n, n, in_channels) becomes (*batch, n, n, 2 * out_channels). Nothing is transposed, summed or added.
    """

    def __init__(self, in_channels: int, out_channels: int, *, dtype: torch.dtype | None = None) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(in_channels, 2 * out_channels, dtype=dtype) / in_channels**0.5)

    def forward(self, x: Tensor) -> Tensor:
        rows = x.reshape(-1, x.shape[-1]) @ self.weight
        return rows.reshape(*x.shape[:-1], self.weight.shape[-1])
