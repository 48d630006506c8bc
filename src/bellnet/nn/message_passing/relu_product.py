"""The product of two numbers by a ReLU network, with a proven bound on its error.

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
"""

import torch
from torch import Tensor, nn

from bellnet.errors import as_written
from bellnet.nn.arguments import check_channels


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


class ExactProduct(nn.Module):
    """The exact product, which is not part of the model; for comparison."""

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        """Multiply entry by entry."""
        return x * y


EntryProduct = ReluProduct | ExactProduct


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
