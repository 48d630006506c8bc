"""What acts on every entry alone: activations, and dropout that does not depend on the numbering of nodes."""

from collections.abc import Callable
from math import isfinite

import torch
from torch import Tensor, nn
from torch.nn.modules.module import (
    _global_backward_hooks,
    _global_backward_pre_hooks,
    _global_forward_hooks,
    _global_forward_pre_hooks,
)

from bellnet.backends import DropoutMask
from bellnet.errors import OptionError, as_written
from bellnet.nn.arguments import NotScripted, refuse_more
from bellnet.nn.inputs import Collection, OverNodes, as_given, check_separate
from bellnet.spec import parse_shapes, text_of
from bellnet.tensors import Padded, Sparse
from bellnet.tensors.padded import map_zeros_to_zeros

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


HOOKS = (_global_forward_hooks, _global_forward_pre_hooks, _global_backward_hooks, _global_backward_pre_hooks)
"""Torch's own lists of those that look at all modules."""
KEEPING_ZEROS = frozenset({nn.ReLU, nn.LeakyReLU, nn.ELU, nn.GELU, nn.SiLU, nn.Tanh})
"""Modules that make new tensors, zero wherever the old ones are."""


class Pointwise(NotScripted, nn.Module):
    """A module that acts on every entry alone, for tensors, `Padded` and `Sparse`: an activation, a linear layer.

    On a `Sparse` it acts on the listed tuples; what is not listed stays zero. Of several tensors, a tuple, it acts on
    each.

    Args:
        module: Takes (..., channels) to (..., channels), entry by entry.

    >>> from bellnet import EquivariantLinear
    >>> net = nn.Sequential(
    ...     EquivariantLinear("n n -> n n", 2, 4), Pointwise(nn.ReLU()), EquivariantLinear("n n ->", 4, 1)
    ... )
    >>> net(torch.randn(5, 5, 2)).shape, net(Padded(torch.randn(3, 5, 5, 2), torch.tensor([5, 2, 1]))).shape
    (torch.Size([1]), torch.Size([3, 1]))
    """

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module

    def forward(self, x: OverNodes | Collection, *more: object) -> OverNodes | Collection:
        """Apply the module to every entry."""
        if more:
            refuse_more(f"Pointwise({self.module})", (x, *more), None)
        if isinstance(x, tuple | list):
            return tuple(self._applied(one) for one in x)
        return self._applied(x)

    def _applied(self, x: OverNodes) -> OverNodes:
        if isinstance(x, Padded) and _keeps_zeros(self.module):
            return map_zeros_to_zeros(x, self.module)
        if isinstance(x, Padded | Sparse):
            return x.map(self.module)
        result: Tensor = self.module(x)
        return result


def _keeps_zeros(module: nn.Module) -> bool:
    """Whether nothing but zeros can come of zeros, and nobody else has the tensors in hand."""
    if type(module) not in KEEPING_ZEROS or not nobody_looks():
        return False
    own = vars(module)  # somebody may have given it an infinite factor
    return is_untouched(module) and isfinite(own.get("negative_slope", own.get("alpha", 1)))


def is_rectifying(module: nn.Module) -> bool:
    """Whether a module rectifies every entry, and nobody looks at it."""
    if type(module) is not Pointwise or not is_untouched(module):
        return False
    return type(module.module) is nn.ReLU and is_untouched(module.module)


def nobody_looks() -> bool:
    """Whether there are no hooks that look at all modules."""
    return not any(HOOKS)


def is_untouched(module: nn.Module) -> bool:
    """Whether a module does what its class does, nobody looks at it, and it leaves what it is given as it is."""
    hooks = (module._forward_hooks, module._forward_pre_hooks, module._backward_hooks, module._backward_pre_hooks)
    return not any(hooks) and "forward" not in vars(module) and not getattr(module, "inplace", False)


def make_activation(call: str, activation: str | Callable[[], nn.Module]) -> Pointwise:
    """An activation by name, or what a class or function makes; `call` is how messages name the network."""
    if isinstance(activation, str) and activation in ACTIVATIONS:
        return Pointwise(ACTIVATIONS[activation]())
    if callable(activation) and not isinstance(activation, nn.Module):
        return Pointwise(activation())
    names = ", ".join(map(repr, ACTIVATIONS))
    raise OptionError(
        f"{call}: activation must be a name or something that makes a module, not {activation!r}.\n"
        f"Names are {names}. A class or a function\n"
        "makes a module for each layer: torch.nn.PReLU, or lambda: torch.nn.ELU(0.5); one module for all would not."
    )


class ChannelDropout(NotScripted, nn.Module):
    """Zeroes whole channels of a graph with probability p: equivariant, since all nodes lose the same channels.

    Args:
        p: The probability of a channel to be zeroed; the others are divided by 1 - p.
        shape: The node set of every slot, for instance "n n", or "n n, n" for two tensors. Without slots, "", every
            entry is dropped separately, as in `torch.nn.Dropout`.

    Attributes:
        generator: The source of random numbers, on the device of the input; torch's own if None.

    >>> ChannelDropout(0.5, "n n")(torch.ones(8, 30, 30, 16)).shape
    torch.Size([8, 30, 30, 16])
    """

    generator: torch.Generator | None = None

    def __init__(self, p: float, shape: str) -> None:
        super().__init__()
        self.shapes = parse_shapes(shape)
        self.p = p
        self._call = f'ChannelDropout({as_written(p)}, "{text_of(self.shapes)}")'

    def forward(self, x: OverNodes | Collection) -> OverNodes | Collection:
        """Drop channels in training mode; return the input in evaluation mode."""
        if not self.training or self.p == 0:
            return x
        pairs = zip(check_separate(self._call, x, self.shapes), self.shapes, strict=True)
        return as_given([self._dropped(one, len(shape)) for one, shape in pairs], x)

    def _dropped(self, x: OverNodes, n_axes: int) -> OverNodes:
        if isinstance(x, Sparse):
            factors, graphs = self.draw_mask(x)
            return x.with_values(x.values * (factors if graphs is None else factors.index_select(0, graphs)))
        values = x.values if isinstance(x, Padded) else x
        batch = values.shape[: values.ndim - n_axes - 1]
        factors = self._draw(values, (*batch, *[1] * n_axes, values.shape[-1]))
        return x.with_values(values * factors) if isinstance(x, Padded) else values * factors

    def draw_mask(self, x: Sparse) -> DropoutMask:
        """New factors for the channels of every graph of a Sparse."""
        factors = self._draw(x.values, (x.support.counts.n_graphs, x.values.shape[1]))
        return DropoutMask(factors, x.support.graphs if len(factors) > 1 else None)

    def _draw(self, like: Tensor, shape: tuple[int, ...]) -> Tensor:
        """Factors for channels: zero, or 1 / (1 - p)."""
        return like.new_empty(shape).bernoulli_(1 - self.p, generator=self.generator).div_(1 - self.p)

    def extra_repr(self) -> str:
        """The options, as they would be written in a call."""
        return f'{self.p}, "{text_of(self.shapes)}"'
