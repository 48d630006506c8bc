"""Products by ReLU networks, with a proven bound on their error on a compact set.

A model of equivariant linear layers and pointwise activations cannot multiply two channels. It can approximate the
product to any precision: the square by sawtooth refinement (Yarotsky, 2017), the product by polarisation.

**The square.** Let g be the hat function on [0, 1], which rises to 1 at 1/2 and falls back to 0,
g(t) = 2t - 4 relu(t - 1/2). Applied s times it is a sawtooth with 2^(s-1) teeth. Then

    f(t) = t - g(t) / 4 - g(g(t)) / 4^2 - ... - g^m(t) / 4^m

is the chord of t^2 between neighbouring multiples of 2^-m. A chord of t^2 over a step of length w lies above it, by
(w/2)^2 in the middle at most. So 0 <= f(t) - t^2 <= 4^-(m+1).

**The product.** For x, y in [-1, 1] both |x + y| / 2 and |x - y| / 2 lie in [0, 1], and xy is the difference of their
squares. Each square is too large by at most 4^-(m+1), so the error of the difference is at most 4^-(m+1) in either
direction. For |x| <= R and |y| <= S the network computes R S f(...) of x/R and y/S: the error is at most
R S 4^-(m+1).

**Where it is exact.** If x or y is zero, the two squares are equal and the result is zero: nodes that are not
neighbours contribute nothing. If |x| = R or |y| = S, the two arguments add up to 1, where the teeth cancel
(g(t) = g(1 - t), so f(t) - f(1 - t) = 2t - 1). For an adjacency of zeros and ones, and R = 1, the product is therefore
exact at any depth; errors occur for other multiplicities and weights only.

**Ranges.** The factors must be bounded, so an interval for each channel is propagated through the modules, together
with a bound on the error. Linear maps and activations with a known Lipschitz constant are supported; for any other
module an error is raised, since nothing could be proven.
"""

from dataclasses import asdict, dataclass
from math import inf

import torch
from torch import Tensor, nn

from bellnet.errors import ConversionError, OptionError, as_written
from bellnet.nn.inputs import check_channels
from bellnet.nn.message_passing.functions import ChannelAffine, EdgeConditionedMessage


class ReluProduct(nn.Module):
    """The product x * y for |x| <= left and |y| <= right, by ReLU and linear maps of the pair (x, y) alone.

    The error is at most `bound` = left * right * 4^-(depth + 1), and zero where x or y is zero or as large as allowed.
    The network has depth + 1 hidden layers. Its weights are constants in closed form and are not trained.

    Args:
        depth: The number of refinements of the sawtooth; each divides the error by four.
        left: The largest |x|, a number or a tensor that broadcasts with x.
        right: The largest |y|, likewise.

    >>> product = ReluProduct(depth=6, left=2.0, right=10.0)
    >>> x, y = torch.tensor([2.0, -1.3, 0.0]), torch.tensor([7.0, 0.4, 9.0])
    >>> bool(((product(x, y) - x * y).abs() <= product.bound).all()), product(x, y)[2].item()
    (True, 0.0)
    """

    left: Tensor
    right: Tensor

    def __init__(self, depth: int, left: float | Tensor = 1.0, right: float | Tensor = 1.0) -> None:
        super().__init__()
        self.depth = check_channels(f"ReluProduct({as_written(depth)})", "depth", depth)
        for name, largest in (("left", left), ("right", right)):
            # A 0-dimensional tensor has the precision of the number and does not promote the tensors it multiplies.
            largest = largest.clone() if isinstance(largest, Tensor) else torch.tensor(largest, dtype=torch.float64)
            # A factor that is always zero needs no range, and its products are exact.
            self.register_buffer(name, largest.masked_fill(largest == 0, 1))

    @property
    def bound(self) -> Tensor:
        """The largest possible error, for each pair of ranges, in float64."""
        largest: Tensor = self.left.double() * self.right.double() / 4 ** (self.depth + 1)
        return largest

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        """Multiply entry by entry, approximately."""
        x, y = x * (1 / self.left), y * (1 / self.right)
        return (self.left * self.right) * (square((x + y) / 2, self.depth) - square((x - y) / 2, self.depth))

    def extra_repr(self) -> str:
        """The depth and the largest error."""
        return f"depth={self.depth}, bound={float(self.bound.max()):.3g}"


def square(t: Tensor, depth: int) -> Tensor:
    """The chords of t^2 between the multiples of 2^-depth, for |t| <= 1.

    >>> square(torch.tensor([0.0, -0.5, 0.75, 1.0, 0.625]), depth=2)  # exact at quarters, 1/64 above between them
    tensor([0.0000, 0.2500, 0.5625, 1.0000, 0.4062])
    """
    tooth = chord = torch.relu(t) + torch.relu(-t)
    for level in range(1, depth + 1):
        tooth = 2 * tooth - 4 * torch.relu(tooth - 0.5)
        chord = chord - tooth / 4**level
    return chord


@dataclass(frozen=True)
class CompactSet:
    """All graphs within these limits.

    Attributes:
        size: The largest number of nodes of a graph.
        neighbours: The largest number of neighbours of a node; self-loops count.
        adjacency: The largest entry of the adjacency channels, in absolute value.
        node: The largest entry of the node features, in absolute value.
        edge: The largest entry of the edge features, in absolute value.
    """

    size: int
    neighbours: int
    adjacency: float = 1.0
    node: float = 1.0
    edge: float = 1.0

    def __post_init__(self) -> None:
        for name, limit in asdict(self).items():
            if isinstance(limit, bool) or not isinstance(limit, int | float) or not 0 <= limit < inf:
                raise OptionError(f"CompactSet: {name} must be a number from 0 up, not {as_written(limit)}.")

    def exceeded_by(self, other: "CompactSet") -> list[str]:
        """The names of the limits that are larger in the other set."""
        return [name for name, limit in asdict(self).items() if getattr(other, name) > limit]


@dataclass(frozen=True)
class Range:
    """An interval for each channel, in float64: exact values are in [low, high], approximated ones within `error`."""

    low: Tensor
    high: Tensor
    error: Tensor

    @classmethod
    def within(cls, largest: float, channels: int) -> "Range":
        """The range of exact values that are at most this large in absolute value."""
        ones = torch.ones(channels, dtype=torch.float64)
        return cls(-largest * ones, largest * ones, 0 * ones)

    @property
    def largest(self) -> Tensor:
        """The largest absolute value, exact or approximated."""
        return torch.maximum(-self.low, self.high).clamp(min=0) + self.error

    def concatenated(self, other: "Range") -> "Range":
        """The channels of both."""
        pairs = zip((self.low, self.high, self.error), (other.low, other.high, other.error), strict=True)
        return Range(*(torch.cat(pair) for pair in pairs))

    def summed(self, largest_sum: float, *, signed: bool, product_error: Tensor) -> "Range":
        """The range of sums of values times coefficients whose absolute values sum to at most `largest_sum`.

        Args:
            largest_sum: The largest sum of absolute values of the coefficients.
            signed: Whether coefficients may be negative.
            product_error: The error of the multiplications.
        """
        low, high = self.low.clamp(max=0), self.high.clamp(min=0)
        if signed:
            low, high = torch.minimum(low, -high), torch.maximum(high, -low)
        return Range(largest_sum * low, largest_sum * high, largest_sum * self.error + product_error)


# The largest slope of each activation; for ELU and LeakyReLU at least that. The slopes of GELU and SiLU are rounded up.
# Torch's softplus jumps by 2e-9 where it becomes linear, which counts as rounding.
ACTIVATIONS: dict[type[nn.Module], float] = {
    nn.ReLU: 1.0,
    nn.LeakyReLU: 1.0,
    nn.ELU: 1.0,
    nn.Softplus: 1.0,
    nn.Tanh: 1.0,
    nn.Sigmoid: 0.25,
    nn.GELU: 1.13,
    nn.SiLU: 1.1,
}
# Minima that are neither at zero nor at an end of the range, rounded down.
MINIMA: dict[type[nn.Module], float] = {nn.GELU: -0.171, nn.SiLU: -0.279}


def range_of(module: nn.Module, inputs: Range, depth: int) -> Range:
    """The range of the output of a module on channels, made of linear maps and activations.

    In modules that multiply, the product is replaced by a ReLU network, of a depth, for the range of its factors.
    """
    if isinstance(module, nn.Sequential):
        for part in module:
            inputs = range_of(part, inputs, depth)
        return inputs
    if isinstance(module, nn.Identity):
        return inputs
    if isinstance(module, nn.Linear):
        return _affine(module.weight, module.bias, inputs)
    if isinstance(module, ChannelAffine):
        return _affine(module.scale.diag(), module.shift, inputs)
    if isinstance(module, EdgeConditionedMessage):
        return _edge_conditioned(module, inputs, depth)
    if type(module) in ACTIVATIONS:
        return _activation(module, inputs)
    names = ", ".join(["Linear", *(kind.__name__ for kind in ACTIVATIONS)])
    raise ConversionError(
        f'product="relu" needs the range of every message, and it is not known what {type(module).__name__} does to '
        f'a range.\nBuild M and U of {names}\nand Sequential, or pass product="exact".'
    )


def _affine(weight: Tensor, bias: Tensor | None, inputs: Range) -> Range:
    weight = weight.detach().to("cpu", torch.float64)
    middle, half = (inputs.low + inputs.high) / 2, (inputs.high - inputs.low) / 2
    middle, half = weight @ middle, weight.abs() @ half
    if bias is not None:
        middle = middle + bias.detach().to("cpu", torch.float64)
    return Range(middle - half, middle + half, weight.abs() @ inputs.error)


def _activation(module: nn.Module, inputs: Range) -> Range:
    # Each is monotone on either side of zero, apart from a minimum, up to which it decreases.
    points = [inputs.low, torch.zeros_like(inputs.low).clamp(inputs.low, inputs.high), inputs.high]
    values = torch.stack([module(point) for point in points])
    low = values.amin(0)
    if type(module) in MINIMA:
        low = torch.where(inputs.low < 0, low.clamp(max=MINIMA[type(module)]), low)
    factor = abs(getattr(module, "negative_slope", getattr(module, "alpha", 0)))
    return Range(low, values.amax(0), max(ACTIVATIONS[type(module)], factor) * inputs.error)


def _edge_conditioned(module: EdgeConditionedMessage, inputs: Range, depth: int) -> Range:
    n = module.node_channels
    neighbour = Range(inputs.low[n : 2 * n], inputs.high[n : 2 * n], inputs.error[n : 2 * n])
    edge = Range(inputs.low[2 * n :], inputs.high[2 * n :], inputs.error[2 * n :])
    shape = n, module.out_channels
    entries = range_of(module.matrix, edge, depth).largest.reshape(shape)  # exact: edge features are not approximated
    module.product = product_for(neighbour.largest.unsqueeze(-1), entries, depth, module.matrix)
    largest = (neighbour.largest.unsqueeze(-1) * entries).sum(0)
    error = (neighbour.error.unsqueeze(-1) * entries + module.product.bound.cpu()).sum(0)
    return Range(-largest, largest, error)


def product_for(left: Tensor, right: Tensor, depth: int, owner: nn.Module) -> ReluProduct:
    """The product for factors of these ranges, with the dtype and device of a module's parameters."""
    like = next(owner.parameters(), torch.empty(()))
    return ReluProduct(depth, _rounded_up(left, like), _rounded_up(right, like))


def _rounded_up(limits: Tensor, like: Tensor) -> Tensor:
    """Limits converted to the dtype and device of a tensor, rounded up."""
    rounded = limits.to(like.dtype)
    too_low = rounded.to(limits.dtype) < limits
    return torch.where(too_low, rounded.nextafter(torch.full_like(rounded, inf)), rounded).to(like.device)
