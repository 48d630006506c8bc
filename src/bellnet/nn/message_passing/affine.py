"""Linear maps of channels that a converted network is made of."""

import torch
from torch import Tensor, nn


class ChannelAffine(nn.Module):
    """Every channel times a number, plus a number: what batch normalisation is once its statistics are fixed."""

    def __init__(self, scale: Tensor, shift: Tensor) -> None:
        super().__init__()
        self.scale = nn.Parameter(scale.detach().clone())
        self.shift = nn.Parameter(shift.detach().clone())

    def forward(self, x: Tensor) -> Tensor:
        """Scale and shift the last axis."""
        return x * self.scale + self.shift

    @property
    def in_features(self) -> int:
        """The number of channels."""
        return len(self.scale)

    def extra_repr(self) -> str:
        """The number of channels."""
        return str(self.in_features)


def linear_of(*blocks: Tensor, bias: Tensor | None = None) -> nn.Linear:
    """The linear layer whose weight is these blocks side by side, one for each part of what it takes.

    >>> linear_of(torch.zeros(2, 3), torch.eye(2))(torch.tensor([1.0, 2.0, 3.0, 4.0, 5.0])).tolist()
    [4.0, 5.0]
    """
    weight = torch.cat(blocks, 1).detach()
    made = nn.Linear(weight.shape[1], weight.shape[0], bias=bias is not None, dtype=weight.dtype, device=weight.device)
    with torch.no_grad():
        made.weight.copy_(weight)
        if bias is not None:
            made.bias.copy_(bias)
    return made
