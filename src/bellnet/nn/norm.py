"""Normalisation of activations that does not depend on the numbering of nodes and does not see padding."""

import torch
from torch import Tensor, nn

from bellnet.nn.inputs import Reception
from bellnet.nn.options import check_channels, check_choice
from bellnet.spec import Spec, parse_shape
from bellnet.tensors import Padded

OVER = ("batch", "graph", "channels")


class EntryNorm(nn.Module):
    """Shift and scale every channel to mean zero and variance one, then by learned factors.

    Args:
        shape: The node set of every slot, for instance "n n".
        channels: The number of channels.
        over: What a mean and a variance is taken over: "batch", all entries of all graphs (batch normalisation, with
            running statistics for evaluation); "graph", all entries of one graph; "channels", the channels of one
            entry (layer normalisation).
        eps: Added to the variance.
        momentum: How fast running statistics follow.
    """

    running_mean: Tensor
    running_var: Tensor

    def __init__(
        self, shape: str, channels: int, *, over: str = "batch", eps: float = 1e-5, momentum: float = 0.1
    ) -> None:
        super().__init__()
        self.axes = parse_shape(shape)
        call = f'EntryNorm("{" ".join(self.axes)}", {channels!r})'
        self.channels = check_channels(call, "channels", channels)
        self.over = check_choice(call, "over", over, OVER)
        self.eps, self.momentum = eps, momentum
        self.weight = nn.Parameter(torch.ones(channels))
        self.bias = nn.Parameter(torch.zeros(channels))
        if over == "batch":
            self.register_buffer("running_mean", torch.zeros(channels))
            self.register_buffer("running_var", torch.ones(channels))
        self._reception = Reception(call, Spec(self.axes, ()), self.channels)

    def forward(self, x: Tensor | Padded) -> Tensor | Padded:
        """Normalise the entries of (*batch, one axis for each slot, channels)."""
        given = self._reception.receive(x)
        outside = given.nodes.outside(self._reception.source_sets)
        mean, variance = self._statistics(given.tensor, outside)
        result = (given.tensor - mean) * torch.rsqrt(variance + self.eps) * self.weight + self.bias
        if outside is not None:
            result = result.masked_fill(outside, 0)
        result = result.reshape(*given.batch, *result.shape[1:])
        return Padded.clean(result, x.sizes, self.axes) if isinstance(x, Padded) else result

    def _statistics(self, tensor: Tensor, outside: Tensor | None) -> tuple[Tensor, Tensor]:
        """Mean and variance, shaped to broadcast to the (batch, *axes, channels) tensor, which is zero outside."""
        if self.over == "channels":
            mean = tensor.mean(-1, keepdim=True)
            return mean, (tensor - mean).square().mean(-1, keepdim=True)
        if self.over == "batch" and not self.training:
            return self.running_mean, self.running_var
        axes = tuple(range(0 if self.over == "batch" else 1, tensor.ndim - 1))
        count, mean, variance = _moments(tensor, outside, axes)
        if self.over == "batch":
            self._follow(count, mean, variance)
        return mean, variance

    def _follow(self, count: Tensor, mean: Tensor, variance: Tensor) -> None:
        with torch.no_grad():
            unbiased = variance * (count / (count - 1).clamp(min=1))
            pace = self.momentum * (count > 0).reshape(-1)  # a batch without nodes says nothing
            self.running_mean += pace * (mean.reshape(-1) - self.running_mean)
            self.running_var += pace * (unbiased.reshape(-1) - self.running_var)

    def extra_repr(self) -> str:
        """The options, as they would be written in a call."""
        return f'"{" ".join(self.axes)}", {self.channels}, over="{self.over}"'


def _moments(tensor: Tensor, outside: Tensor | None, axes: tuple[int, ...]) -> tuple[Tensor, Tensor, Tensor]:
    """How many entries there are, their mean and their variance; zero for none."""
    inside = torch.ones_like(tensor[..., :1]) if outside is None else (~outside).to(tensor.dtype)
    inside = inside.expand(*tensor.shape[:-1], 1)
    count = inside.sum(axes, keepdim=True) if axes else inside
    mean = (tensor.sum(axes, keepdim=True) if axes else tensor) / count.clamp(min=1)
    squares = (tensor - mean).square() * inside
    return count, mean, (squares.sum(axes, keepdim=True) if axes else squares) / count.clamp(min=1)
