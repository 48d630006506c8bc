"""What acts on every entry alone: activations, and dropout that does not depend on the numbering of nodes."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from bellnet.errors import OptionError
from bellnet.tensors import Padded

ACTIVATIONS: dict[str, type[nn.Module]] = {
    "relu": nn.ReLU,
    "leaky_relu": nn.LeakyReLU,
    "elu": nn.ELU,
    "gelu": nn.GELU,
    "silu": nn.SiLU,
    "softplus": nn.Softplus,
    "tanh": nn.Tanh,
    "sigmoid": nn.Sigmoid,
    "identity": nn.Identity,
}


class Activation(nn.Module):
    """An activation for tensors and `Padded`, by name or as a module that acts on every entry alone."""

    def __init__(self, call: str, activation: str | Callable[[], nn.Module]) -> None:
        super().__init__()
        if isinstance(activation, str) and activation in ACTIVATIONS:
            self.function = ACTIVATIONS[activation]()
        elif callable(activation) and not isinstance(activation, nn.Module):
            self.function = activation()
        else:
            names = ", ".join(map(repr, ACTIVATIONS))
            raise OptionError(
                f"{call}: activation must be a name or something that makes a module, not {activation!r}.\n"
                f"Names are {names}. A class or a function\n"
                "makes a module for each layer: torch.nn.PReLU, or lambda: torch.nn.ELU(0.5); one module for all would "
                "not."
            )

    def forward(self, x: Tensor | Padded) -> Tensor | Padded:
        """Apply the activation to every entry."""
        return x.map(self.function) if isinstance(x, Padded) else self.function(x)


class ChannelDropout(nn.Module):
    """Dropout of whole channels of a graph: which are dropped does not depend on how its nodes are numbered.

    Args:
        p: The probability to drop a channel.
        n_axes: The number of node axes.
    """

    def __init__(self, p: float, n_axes: int) -> None:
        super().__init__()
        self.p = p
        self.n_axes = n_axes

    def forward(self, x: Tensor | Padded) -> Tensor | Padded:
        """Drop channels in training mode; do nothing in evaluation mode."""
        if not self.training or self.p == 0:
            return x
        values = x.values if isinstance(x, Padded) else x
        batch = values.shape[: values.ndim - self.n_axes - 1]
        ones = torch.ones(*batch, *[1] * self.n_axes, values.shape[-1], dtype=values.dtype, device=values.device)
        kept = nn.functional.dropout(ones, self.p)
        if isinstance(x, Padded):
            return Padded(values * kept, x.sizes, clean_for=x.clean_for)
        return values * kept

    def extra_repr(self) -> str:
        """The probability."""
        return f"p={self.p}"
