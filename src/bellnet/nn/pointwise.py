"""Modules that act on every entry: activations, linear layers on channels, and permutation-equivariant dropout."""

from collections.abc import Callable
from math import isfinite

import torch
from torch import Tensor, nn
from torch.nn.modules.module import _has_any_global_hook

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
ZERO_PRESERVING = frozenset({nn.ReLU, nn.LeakyReLU, nn.ELU, nn.GELU, nn.SiLU, nn.Tanh})
"""Modules that return a new tensor, zero wherever their input is."""


class Pointwise(NotScripted, nn.Module):
    """Applies a module to every entry, of tensors, `Padded` and `Sparse`: an activation, a linear layer.

    Entries that a `Sparse` does not store stay zero. The module is applied to each of several tensors, a tuple.

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
        if isinstance(x, Padded) and _preserves_zeros(self.module):
            return map_zeros_to_zeros(x, self.module)
        if isinstance(x, Padded | Sparse):
            return x.map(self.module)
        result: Tensor = self.module(x)
        return result


def _preserves_zeros(module: nn.Module) -> bool:
    """Whether the output is zero wherever the input is, and no hook has access to it."""
    if type(module) not in ZERO_PRESERVING or _has_any_global_hook():  # type: ignore[no-untyped-call]
        return False
    own = vars(module)  # the factor may have been set to infinity
    return is_unmodified(module) and isfinite(own.get("negative_slope", own.get("alpha", 1)))


def is_relu(module: nn.Module) -> bool:
    """Whether a module is a pointwise ReLU without hooks."""
    if type(module) is not Pointwise or not is_unmodified(module):
        return False
    return type(module.module) is nn.ReLU and is_unmodified(module.module)


def is_unmodified(module: nn.Module) -> bool:
    """Whether a module does what its class does: no hooks, no other forward, not in place."""
    hooks = (module._forward_hooks, module._forward_pre_hooks, module._backward_hooks, module._backward_pre_hooks)
    return not any(hooks) and "forward" not in vars(module) and not getattr(module, "inplace", False)


def make_activation(call: str, activation: str | Callable[[], nn.Module]) -> Pointwise:
    """An activation by name, or made by a class or function; `call` is how messages name the network."""
    if isinstance(activation, str) and activation in ACTIVATIONS:
        return Pointwise(ACTIVATIONS[activation]())
    if callable(activation) and not isinstance(activation, nn.Module):
        return Pointwise(activation())
    names = ", ".join(map(repr, ACTIVATIONS))
    raise OptionError(
        f"{call}: activation must be a name or a callable that makes a module, not {activation!r}.\n"
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
