"""Sums and differences of pairs: the same products with half of the multiplications."""

import pytest
import torch
from torch.testing import assert_close

from bellnet import EquivariantLinear, EquivariantNet, Padded, Sparse
from bellnet.execute import halves
from bellnet.execute.halves import Halves
from tests.execute.recording import Recording
from tests.execute.subjects import randomise

SWAPPED = {
    "all pairs": torch.arange(18).view(2, 3, 3).mT.flatten(),
    "some without a partner": torch.tensor([3, -1, 2, 0, -1, 6, 5]),
    "none with a partner": torch.tensor([-1, -1, -1]),
    "only pairs of equal nodes": torch.arange(4),
    "nothing": torch.arange(0),
}


def _parts_and_swapped(swapped, channels):
    rows = torch.randn(len(swapped), channels, dtype=torch.float64)
    looked_up = rows.new_zeros(len(swapped), channels)
    looked_up[swapped >= 0] = rows[swapped[swapped >= 0]]
    return rows, looked_up


@pytest.mark.parametrize("swapped", SWAPPED.values(), ids=SWAPPED)
def test_halves_give_the_sum_of_both_products(swapped):
    rows, others = _parts_and_swapped(swapped, 3)
    matrices, both = torch.randn(2, 3, 5, dtype=torch.float64), Halves(swapped)
    assert_close(both.join(both.split(rows), matrices), rows @ matrices[0] + others @ matrices[1])


@pytest.mark.parametrize("swapped", SWAPPED.values(), ids=SWAPPED)
def test_halves_give_the_gradients_of_both_matrices(swapped):
    rows, others = _parts_and_swapped(swapped, 3)
    pulled, both = torch.randn(len(swapped), 5, dtype=torch.float64), Halves(swapped)
    found = torch.ones(2, 3, 5, dtype=torch.float64)
    both.pair(both.split(rows), both.split(pulled), found)
    assert_close(found - 1, torch.stack([rows.mT @ pulled, others.mT @ pulled]))


def _graphs(n_graphs, n):
    """Graphs with all nodes on the diagonal, edges both ways and some one way."""
    listed = []
    for graph in range(n_graphs):
        there = torch.rand(n, n) < 0.2
        there = there | there.mT
        there[0] = True
        there.fill_diagonal_(True)
        pairs = there.nonzero().mT
        listed.append(torch.cat([torch.full((1, pairs.shape[1]), graph), pairs]))
    return torch.cat(listed, 1)


def _results(layer, x, wrap):
    """The result and all gradients."""
    x = x.clone().requires_grad_()
    y = layer(wrap(x))
    y = y if isinstance(y, torch.Tensor) else y.values
    pulled = torch.randn(y.shape, generator=torch.Generator().manual_seed(1))
    return [y, *torch.autograd.grad(y, [x, *layer.parameters()], pulled)]


@pytest.mark.parametrize("kind", ["tensor", "padded", "listed"])
def test_a_wide_layer_gives_the_same_by_halves(kind, monkeypatch):
    layer = randomise(EquivariantLinear("n n -> n n", 32, 48))
    if kind == "listed":
        index = _graphs(60, 16)
        x = torch.randn(index.shape[1], 32)
        support = Sparse(index, x, torch.full((60,), 16)).support
    else:
        x = torch.randn(7, 30, 30, 32)
    wraps = {
        "tensor": lambda x: x,
        "padded": lambda x: Padded(x, torch.tensor([30, 29, 1, 0, 30, 17, 5])),
        "listed": lambda x: Sparse.on(support, x),
    }
    with Recording() as halved:
        found = _results(layer, x, wraps[kind])
    monkeypatch.setattr(halves, "pays", lambda *shape_and_type: False)
    with Recording() as straight:
        expected = _results(layer, x, wraps[kind])
    for one, other in zip(found, expected, strict=True):
        assert_close(one, other, rtol=1e-4, atol=1e-4)
    assert _multiplications(halved) < 0.8 * _multiplications(straight)


def _multiplications(recording):
    return sum(left[0] * left[1] * right[1] for left, right in recording.products)


def test_edges_in_one_direction_are_not_halved():
    index = torch.triu_indices(150, 150, 1)
    layer, x = EquivariantLinear("n n -> n n", 64, 64), torch.randn(index.shape[1], 64)
    with Recording() as recording:
        layer(Sparse(index, x, 150))
    assert sum(left[0] for left, right in recording.products if right == (64, 64)) == index.shape[1]


def test_second_derivatives_of_wide_layers_are_those_of_narrow_ones():
    net = EquivariantNet("n n -> n n", [32, 32, 1])
    x = torch.randn(2, 80, 80, 32, requires_grad=True)
    (gradient,) = torch.autograd.grad(net(x).square().sum(), x, create_graph=True)
    (found,) = torch.autograd.grad(gradient.square().sum(), x)
    torch.manual_seed(0)
    with torch.no_grad():
        step = 1e-2 * torch.randn_like(x)

    def slope(at):
        at = at.detach().requires_grad_()
        return torch.autograd.grad(net(at).square().sum(), at)[0].square().sum()

    assert_close((found * step).sum(), (slope(x + step) - slope(x - step)) / 2, rtol=0.02, atol=0.02)


@pytest.mark.parametrize("value", [float("inf"), float("nan")])
def test_a_number_that_is_not_finite_stays_in_its_pair(value):
    swapped = SWAPPED["all pairs"]
    rows, _ = _parts_and_swapped(swapped, 3)
    both, matrices = Halves(swapped), torch.randn(2, 3, 5, dtype=torch.float64)
    expected = both.join(both.split(rows), matrices)
    rows[1] = value
    found = both.join(both.split(rows), matrices)
    others = torch.tensor([row for row in range(len(swapped)) if row not in (1, int(swapped[1]))])
    assert_close(found[others], expected[others])
    assert not found[[1, int(swapped[1])]].isfinite().any()
