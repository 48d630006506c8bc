"""Modules that act on every entry alone: activations and other functions, channel dropout, and normalisation."""

from collections.abc import Callable
from math import isfinite
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.module import _has_any_global_hook

from bellnet.backends import DropoutMask, Moments, can_fuse_norm, is_traced, moments_of
from bellnet.errors import OptionError, as_written
from bellnet.nn.inputs import (
    Collection,
    InputValidator,
    NotScripted,
    OverNodes,
    as_given,
    check_channels_of_all,
    check_choice,
    check_separate,
    refuse_more,
)
from bellnet.nn.pool import sum_per_graph
from bellnet.nn.sparse_validation import check_sparse
from bellnet.spec import Spec, parse_shapes, text_of
from bellnet.tensors import Padded, Sparse
from bellnet.tensors.padded import map_zeros_to_zeros, zero_padded

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


OVER = ("batch", "graph", "channels")


class EntryNorm(NotScripted, nn.Module):
    """Normalizes every channel to mean zero and variance one, then applies learned factors and shifts.

    Padding is not counted, and of a `Sparse` only the stored entries are. Several tensors are normalized separately.

    Args:
        channels: The number of channels; of several tensors, a tuple with one for each, or one for all.
        shape: The node set of every slot, for instance "n n", or "n n, n" for two tensors.
        over: The entries that share a mean and a variance: "batch", those of all graphs (batch normalization, with
            running statistics for evaluation); "graph", those of one graph (instance normalization); "channels", the
            channels of one entry (layer normalization).
        eps: Added to the variance.
        momentum: The weight of a new batch in the running statistics.

    >>> EntryNorm(16, "n n")(torch.randn(8, 30, 30, 16)).shape
    torch.Size([8, 30, 30, 16])
    """

    running_mean: Tensor
    running_var: Tensor

    def __init__(
        self,
        channels: int | tuple[int, ...],
        shape: str,
        *,
        over: str = "batch",
        eps: float = 1e-5,
        momentum: float = 0.1,
    ) -> None:
        super().__init__()
        self.shapes = parse_shapes(shape)
        self._call = call = f'EntryNorm({as_written(channels)}, "{text_of(self.shapes)}")'
        several = check_channels_of_all(call, "channels", channels, len(self.shapes))
        self.over = check_choice(call, "over", over, OVER)
        self.eps, self.momentum = eps, momentum
        self.channels: Any = several if len(several) > 1 else several[0]
        self.parts: nn.ModuleList | None = None
        if len(several) > 1:
            pairs = zip(several, map(" ".join, self.shapes), strict=True)
            self.parts = nn.ModuleList(EntryNorm(*one, over=over, eps=eps, momentum=momentum) for one in pairs)
            return
        self.weight = nn.Parameter(torch.ones(self.channels))
        self.bias = nn.Parameter(torch.zeros(self.channels))
        if over == "batch":
            self.register_buffer("running_mean", torch.zeros(self.channels))
            self.register_buffer("running_var", torch.ones(self.channels))
        (self.axes,) = self.shapes
        self._validator = InputValidator(call, Spec(self.axes, ()), several)

    def reset_parameters(self) -> None:
        """Set factors to one, shifts to zero, and drop the running statistics."""
        for part in self.parts or ():
            part.reset_parameters()  # type: ignore[operator]
        if self.parts is None:
            nn.init.ones_(self.weight)
            nn.init.zeros_(self.bias)
            if self.over == "batch":
                nn.init.zeros_(self.running_mean)
                nn.init.ones_(self.running_var)

    def forward(self, x: OverNodes | Collection, *more: object) -> OverNodes | Collection:
        """Normalize the entries of (*batch, one axis for each slot, channels), or of several such tensors."""
        if more:
            refuse_more(self._call, (x, *more), len(self.shapes))
        if self.parts is not None:
            separate = check_separate(self._call, x, self.shapes)
            return as_given([part(one) for part, one in zip(self.parts, separate, strict=True)], x)
        if isinstance(x, Sparse):
            return x.with_values(self._normalize_sparse(x))
        inputs, sets = self._validator.validate((x,)), self._validator.set_numbers[0]  # type: ignore[arg-type]
        (values,), nodes = inputs.values, inputs.layout.nodes
        result = nodes.clean(self._normalize(values, nodes.inside(sets)), sets)
        result = result.reshape(*inputs.batch, *result.shape[1:])
        return zero_padded(result, x, self.axes) if isinstance(x, Padded) else result

    def _normalize_sparse(self, x: Sparse) -> Tensor:
        """The values of a Sparse: a batch of entries without node axes, unless graphs are normalized separately."""
        check_sparse(self._call, x, self.axes, self.channels)
        if self.over != "graph":
            return self._normalize(x.values, None)
        graphs, values = x.support.graphs, _widened(x.values)
        count = x.support.entries_per_graph.unsqueeze(-1).clamp(min=1)
        centred = values - (sum_per_graph(values, x.support) / count)[graphs]
        variance = sum_per_graph(centred.square(), x.support) / count
        return self._scaled(centred * torch.rsqrt(variance + self.eps)[graphs], x.values.dtype)

    def update_moments(self, x: Sparse) -> Moments | None:
        """Update the running statistics as `forward` does, for kernels that normalize the stored entries.

        Returns:
            The mean and the variance to normalize by; None where kernels cannot do it, and nothing was updated.
        """
        if self.over != "batch" or self.parts is not None or self.running_mean is None:
            return None
        check_sparse(self._call, x, self.axes, self.channels)
        own = (self.weight, self.bias, self.running_mean, self.running_var)
        if any(one.shape != (self.channels,) for one in own) or not can_fuse_norm(x.values, own):
            return None
        if not self.training:
            running = (self.running_mean, self.running_var)
            # Copies, since the statistics may change before the gradient is computed.
            return Moments(*(one.detach().to(torch.float64, copy=True) for one in running))
        found = moments_of(x.values)
        self._update_running(found.mean.new_tensor(len(x.values)), *found)
        return found

    def _normalize(self, tensor: Tensor, inside: Tensor | None) -> Tensor:
        if self._is_plain_batch(tensor, inside):
            entries = tensor.reshape(-1, self.channels)
            normalized = torch.batch_norm(
                entries,
                self.weight,
                self.bias,
                self.running_mean,
                self.running_var,
                self.training,
                self.momentum,
                self.eps,
                torch.backends.cudnn.enabled,
            )
            return normalized.view(tensor.shape)
        wide = _widened(tensor)
        mean, variance = self._statistics(wide, inside)
        return self._scaled((wide - mean) * torch.rsqrt(variance + self.eps), tensor.dtype)

    def _is_plain_batch(self, tensor: Tensor, inside: Tensor | None) -> bool:
        """Whether torch's own batch normalization does the same, which is faster."""
        if self.over != "batch" or inside is not None or is_traced():  # traced numbers of entries may be symbolic
            return False
        is_float = tensor.dtype == self.weight.dtype and tensor.dtype in (torch.float32, torch.float64)
        return is_float and tensor.shape[:-1].numel() > 1

    def _scaled(self, normalized: Tensor, dtype: torch.dtype) -> Tensor:
        """Normalized values times the learned factors, plus the shifts, for entries of a dtype."""
        return (normalized * self.weight + self.bias).to(torch.promote_types(dtype, self.weight.dtype))

    def _statistics(self, tensor: Tensor, inside: Tensor | None) -> tuple[Tensor, Tensor]:
        """Mean and variance, shaped to broadcast to the (batch, *axes, channels) tensor, which is zero outside."""
        if self.over == "channels":
            mean = tensor.mean(-1, keepdim=True)
            return mean, (tensor - mean).square().mean(-1, keepdim=True)
        if self.over == "batch" and not self.training:
            return self.running_mean, self.running_var
        axes = tuple(range(0 if self.over == "batch" else 1, tensor.ndim - 1))
        count, mean, variance = _moments(tensor, inside, axes)
        if self.over == "batch":
            self._update_running(count, mean, variance)
        return mean, variance

    def _update_running(self, count: Tensor, mean: Tensor, variance: Tensor) -> None:
        with torch.no_grad():
            unbiased = variance * (count / (count - 1).clamp(min=1))
            pace = self.momentum * (count > 0).to(count.dtype).reshape(-1)  # zero for a batch without nodes
            self.running_mean += pace * (mean.reshape(-1) - self.running_mean)
            self.running_var += pace * (unbiased.reshape(-1) - self.running_var)

    def extra_repr(self) -> str:
        """The options, as they would be written in a call."""
        return f'{self.channels}, "{text_of(self.shapes)}", over="{self.over}"'


def _widened(tensor: Tensor) -> Tensor:
    """In float32 at least, since half-precision sums and counts of many entries overflow."""
    return tensor.to(torch.promote_types(tensor.dtype, torch.float32))


def _moments(tensor: Tensor, inside: Tensor | None, axes: tuple[int, ...]) -> tuple[Tensor, Tensor, Tensor]:
    """The number of entries, their mean and their variance; zero for none."""
    mask = torch.ones_like(tensor[..., :1]) if inside is None else inside.to(tensor.dtype)
    mask = mask.expand(*tensor.shape[:-1], 1)
    count = mask.sum(axes, keepdim=True) if axes else mask
    mean = (tensor.sum(axes, keepdim=True) if axes else tensor) / count.clamp(min=1)
    squares = (tensor - mean).square() * mask
    return count, mean, (squares.sum(axes, keepdim=True) if axes else squares) / count.clamp(min=1)
