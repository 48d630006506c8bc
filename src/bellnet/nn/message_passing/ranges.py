"""What values a module on channels can take on a compact set, and how far approximated values can stray.

An interval for each channel is followed through the module, and with it a bound on the error. Linear maps and
activations with a known Lipschitz constant are understood; anything else is refused, since nothing could be proven.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from typing import NamedTuple

import torch
from torch import Tensor, nn

from bellnet.errors import ConversionError
from bellnet.nn.message_passing.affine import ChannelAffine
from bellnet.nn.message_passing.functions import EdgeConditionedMessage
from bellnet.nn.message_passing.product import ReluProduct


@dataclass(frozen=True)
class Range:
    """Channel by channel, in float64: exact values lie in [low, high], approximated ones within `error` of them."""

    low: Tensor
    high: Tensor
    error: Tensor

    @classmethod
    def within(cls, largest: float, channels: int) -> "Range":
        """Numbers that are known exactly and not larger than this in absolute value."""
        ones = torch.ones(channels, dtype=torch.float64)
        return cls(-largest * ones, largest * ones, 0 * ones)

    @property
    def largest(self) -> Tensor:
        """The largest absolute value, exact or approximated."""
        return torch.maximum(-self.low, self.high).clamp(min=0) + self.error

    def beside(self, other: "Range") -> "Range":
        """The channels of both."""
        pairs = zip((self.low, self.high, self.error), (other.low, other.high, other.error), strict=True)
        return Range(*(torch.cat(pair) for pair in pairs))

    def summed(self, largest_sum: float, *, signed: bool, added: Tensor) -> "Range":
        """Sums of these numbers times coefficients whose absolute values sum to at most `largest_sum`.

        Args:
            largest_sum: The largest sum of absolute values of the coefficients.
            signed: Whether coefficients may be negative.
            added: The error that the multiplications add.
        """
        low, high = self.low.clamp(max=0), self.high.clamp(min=0)
        if signed:
            low, high = torch.minimum(low, -high), torch.maximum(high, -low)
        return Range(largest_sum * low, largest_sum * high, largest_sum * self.error + added)


class Activation(NamedTuple):
    """What is known of an activation: its largest slope, and its minimum where that is not at zero or an end."""

    slope: Callable[[nn.Module], float]
    minimum: float = inf


def _slope_of_elu(module: nn.Module) -> float:
    assert isinstance(module, nn.ELU)
    return max(1.0, abs(module.alpha))


def _slope_of_leaky_relu(module: nn.Module) -> float:
    assert isinstance(module, nn.LeakyReLU)
    return max(1.0, abs(module.negative_slope))


# The slopes of GELU and SiLU are rounded up, their minima down; both fall to the minimum and rise from there. Torch's
# softplus jumps by 2e-9 where it becomes linear, which counts as rounding.
ACTIVATIONS: dict[type[nn.Module], Activation] = {
    nn.ReLU: Activation(lambda module: 1.0),
    nn.LeakyReLU: Activation(_slope_of_leaky_relu),
    nn.ELU: Activation(_slope_of_elu),
    nn.Softplus: Activation(lambda module: 1.0),
    nn.Tanh: Activation(lambda module: 1.0),
    nn.Sigmoid: Activation(lambda module: 0.25),
    nn.GELU: Activation(lambda module: 1.13, -0.171),
    nn.SiLU: Activation(lambda module: 1.1, -0.279),
}


def follow(module: nn.Module, given: Range, depth: int) -> Range:
    """The range of what a module makes of numbers in a range.

    A module that multiplies gets, on the way, products that are right on that range.

    Args:
        module: A module on channels, made of linear maps and activations.
        given: The range of its input.
        depth: The depth of the products.
    """
    if isinstance(module, nn.Sequential):
        for part in module:
            given = follow(part, given, depth)
        return given
    if isinstance(module, nn.Identity):
        return given
    if isinstance(module, nn.Linear):
        return _affine(module.weight, module.bias, given)
    if isinstance(module, ChannelAffine):
        return _affine(module.scale.diag(), module.shift, given)
    if isinstance(module, EdgeConditionedMessage):
        return _edge_conditioned(module, given, depth)
    if (known := ACTIVATIONS.get(type(module))) is not None:
        return _activation(module, known, given)
    names = ", ".join(["Linear", *(kind.__name__ for kind in ACTIVATIONS)])
    raise ConversionError(
        f'product="relu" needs the range of every message, and it is not known what {type(module).__name__} does to '
        f'a range.\nBuild M and U of {names}\nand Sequential, or pass product="exact".'
    )


def _affine(weight: Tensor, bias: Tensor | None, given: Range) -> Range:
    weight = weight.detach().to("cpu", torch.float64)
    middle, half = (given.low + given.high) / 2, (given.high - given.low) / 2
    middle, half = weight @ middle, weight.abs() @ half
    if bias is not None:
        middle = middle + bias.detach().to("cpu", torch.float64)
    return Range(middle - half, middle + half, weight.abs() @ given.error)


def _activation(module: nn.Module, known: Activation, given: Range) -> Range:
    # Each rises or falls on either side of zero, up to the one minimum that is known.
    turns = [given.low, torch.zeros_like(given.low).clamp(given.low, given.high), given.high]
    values = torch.stack([module(turn) for turn in turns])
    low = values.amin(0)
    if known.minimum < inf:
        low = torch.where(given.low < 0, low.clamp(max=known.minimum), low)
    return Range(low, values.amax(0), known.slope(module) * given.error)


def _edge_conditioned(module: EdgeConditionedMessage, given: Range, depth: int) -> Range:
    n = module.node_channels
    heard = Range(given.low[n : 2 * n], given.high[n : 2 * n], given.error[n : 2 * n])
    edge = Range(given.low[2 * n :], given.high[2 * n :], given.error[2 * n :])
    shape = n, module.out_channels
    entries = follow(module.matrix, edge, depth).largest.reshape(shape)  # exact: edge features are never approximated
    module.product = fitted(heard.largest.unsqueeze(-1), entries, depth, module.matrix)
    largest = (heard.largest.unsqueeze(-1) * entries).sum(0)
    error = (heard.error.unsqueeze(-1) * entries + module.product.bound.cpu()).sum(0)
    return Range(-largest, largest, error)


def fitted(left: Tensor, right: Tensor, depth: int, owner: nn.Module) -> ReluProduct:
    """The product for these ranges, with the dtype and on the device of a module's parameters."""
    home = next(owner.parameters(), torch.empty(()))
    return ReluProduct(depth, _rounded_up(left, home), _rounded_up(right, home))


def _rounded_up(limits: Tensor, home: Tensor) -> Tensor:
    """Limits in a type that may have fewer digits, and not below what they were."""
    rounded = limits.to(home.dtype)
    too_low = rounded.to(limits.dtype) < limits
    return torch.where(too_low, rounded.nextafter(torch.full_like(rounded, inf)), rounded).to(home.device)
