"""The product by ReLU: its error against the proven bound, where it is exact, and that it is a ReLU network."""

from itertools import pairwise

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from bellnet.nn.message_passing import ReluProduct
from bellnet.nn.message_passing.approximation import square

DEPTHS = range(2, 13)
LEFT, RIGHT = 3.0, 0.7


def pairs(depth):
    """A grid of pairs in the rectangle with the points where the error is largest, and random pairs."""
    lines = torch.arange(-(2**6), 2**6 + 1, dtype=torch.float64) / 2**6
    shift = torch.rand(1, dtype=torch.float64) / 2**depth
    random = 2 * torch.rand(2, 20_000, dtype=torch.float64) - 1
    # For s = (i + 1/2) / 2^depth and t = j / 2^depth one square is wrong by the most, and the other is right.
    step = 0.5**depth
    s = (torch.arange(200, dtype=torch.float64) % (2 ** (depth - 1)) + 0.5) * step
    t = (torch.arange(200, dtype=torch.float64) % (2 ** (depth - 1))).flip(0) * step
    grid = torch.cartesian_prod(lines, (lines + shift).clamp(-1, 1)).T
    x, y = torch.cat([grid, random, torch.stack([s + t, s - t])], 1)
    return LEFT * x, RIGHT * y


def error(depth):
    product = ReluProduct(depth, LEFT, RIGHT)
    x, y = pairs(depth)
    return float((product(x, y) - x * y).abs().max()), float(product.bound)


@pytest.mark.parametrize("depth", DEPTHS)
def test_the_error_is_below_the_bound_and_reaches_it(depth):
    measured, bound = error(depth)
    assert bound == LEFT * RIGHT / 4 ** (depth + 1)
    assert measured <= bound + 1e-15
    assert measured >= 0.999 * bound


def test_every_level_divides_the_error_by_four():
    errors = [error(depth)[0] for depth in DEPTHS]
    assert all(3.99 < coarse / fine < 4.01 for coarse, fine in pairwise(errors))


@pytest.mark.parametrize("depth", [1, 4, 12])
def test_the_square_is_never_too_small_and_too_large_by_the_bound_at_most(depth):
    t = torch.linspace(-1, 1, 10_001, dtype=torch.float64)
    excess = square(t, depth) - t**2
    assert excess.min() >= -1e-15
    assert excess.max() <= 4.0 ** -(depth + 1) + 1e-15


@pytest.mark.parametrize("depth", DEPTHS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_product_with_zero_is_exactly_zero(depth, dtype):
    product = ReluProduct(depth, LEFT, RIGHT).to(dtype)
    numbers, zeros = 2 * torch.rand(1000, dtype=dtype) - 1, torch.zeros(1000, dtype=dtype)
    assert not product(zeros, RIGHT * numbers).any()
    assert not product(LEFT * numbers, zeros).any()


@pytest.mark.parametrize("depth", [1, 2, 7])
def test_the_product_with_the_end_of_a_range_is_exact(depth):
    product = ReluProduct(depth, LEFT, RIGHT).double()
    y = RIGHT * (2 * torch.rand(1000, dtype=torch.float64) - 1)
    for end in (LEFT, -LEFT):
        assert_close(product(torch.full_like(y, end), y), end * y, rtol=0, atol=1e-14)


def as_linear_layers(depth):
    """The same network written down as matrices: two squares side by side, of three units each."""
    tooth = torch.tensor([[2.0, -4.0, 0.0]])  # of relu(tooth), relu(tooth - 1/2), relu(chord)
    layers = [(torch.tensor([[0.5, 0.5], [-0.5, -0.5], [0.5, -0.5], [-0.5, 0.5]]), torch.zeros(4))]
    first = torch.tensor([[1.0, 1.0], [1.0, 1.0], [1.0, 1.0]])  # |t| = relu(t) + relu(-t)
    layers.append((torch.block_diag(first, first), torch.tensor([0.0, -0.5, 0.0] * 2)))
    for level in range(1, depth):
        chord = torch.tensor([[0.0, 0.0, 1.0]]) - tooth / 4**level
        block = torch.cat([tooth, tooth, chord])
        layers.append((torch.block_diag(block, block), torch.tensor([0.0, -0.5, 0.0] * 2)))
    last = torch.tensor([[0.0, 0.0, 1.0]]) - tooth / 4**depth
    layers.append((torch.cat([last, -last], 1), torch.zeros(1)))
    modules: list[nn.Module] = []
    for weight, bias in layers:
        linear = nn.Linear(*weight.shape[::-1])
        linear.weight.data, linear.bias.data = weight, bias
        modules += [linear.double(), nn.ReLU()]
    return nn.Sequential(*modules[:-1])


@pytest.mark.parametrize("depth", [1, 2, 6, 12])
def test_relu_product_is_a_relu_network_of_depth_plus_one_layers(depth):
    network, product = as_linear_layers(depth), ReluProduct(depth).double()
    assert sum(isinstance(part, nn.ReLU) for part in network) == depth + 1
    x, y = 2 * torch.rand(2, 1000, dtype=torch.float64) - 1
    assert_close(network(torch.stack([x, y], -1)).squeeze(-1), product(x, y), rtol=0, atol=1e-14)


def test_ranges_are_per_channel():
    right = torch.tensor([1.0, 100.0, 0.0], dtype=torch.float64)
    product = ReluProduct(5, torch.tensor([2.0], dtype=torch.float64), right)
    x, y = 4 * torch.rand(500, 1, dtype=torch.float64) - 2, right * (2 * torch.rand(500, 3, dtype=torch.float64) - 1)
    assert ((product(x, y) - x * y).abs().amax(0) <= product.bound).all()
    assert_close(product.bound[:2], 2 * right[:2] / 4**6)
    assert not product(x, y)[:, 2].any()


def test_relu_product_has_gradients_and_no_parameters():
    product = ReluProduct(10).double()
    x, y = torch.tensor([0.3, -0.7], dtype=torch.float64).requires_grad_()
    dx, dy = torch.autograd.grad(product(x, y), (x, y))
    assert abs(dx - y) < 2**-9
    assert abs(dy - x) < 2**-9
    assert list(product.parameters()) == []
    assert repr(product) == "ReluProduct(depth=10, bound=2.38e-07)"
