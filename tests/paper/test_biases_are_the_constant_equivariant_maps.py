"""Section 3, "Biases": the bias of an order-l output has dimension Bell(l), that of an invariant layer 1."""

import pytest
import torch

from bellnet import EquivariantLinear
from tests.paper.layers import BELL, STIRLING, assert_same_space, maps, of_orders, rank

BASES = [("diagram", "mean"), ("orbit", "sum")]


def biases(spec, n, basis, normalize):
    """(n_biases, target entries): the output for an input of zeros, for one bias after the other."""
    layer = EquivariantLinear(spec, 1, 1, basis=basis, normalize=normalize, dtype=torch.float64)
    source = spec.split("->")[0].count("n")
    found = []
    with torch.no_grad():
        for number in range(layer.plan.n_biases):
            layer.bias.zero_()
            layer.bias[number] = 1
            found.append(layer(torch.zeros(*[n] * source, 1, dtype=torch.float64)).flatten())
    return torch.stack(found)


@pytest.mark.parametrize(("basis", "normalize"), BASES)
@pytest.mark.parametrize("l", range(5))
def test_an_output_of_order_l_has_bell_l_independent_biases(l, basis, normalize):
    found = biases(of_orders(1, l), 5, basis, normalize)
    assert (len(found), rank(found)) == (BELL[l], BELL[l])


@pytest.mark.parametrize("l", [2, 3])
@pytest.mark.parametrize("n", [1, 2])
def test_with_few_nodes_there_are_fewer_independent_biases(l, n):
    assert rank(biases(of_orders(1, l), n, "diagram", "mean")) == sum(STIRLING[l][: n + 1])


@pytest.mark.parametrize(("basis", "normalize"), BASES)
@pytest.mark.parametrize("l", [1, 2, 3])
def test_biases_are_the_maps_from_order_zero(l, basis, normalize):
    from_nothing = maps(of_orders(0, l), 4, basis=basis, normalize=normalize)
    assert_same_space(biases(of_orders(2, l), 4, basis, normalize), from_nothing)


def test_the_bias_of_an_orbit_is_a_constant_on_the_diagonal_or_off_it():
    on, off = biases("n n -> n n", 3, "orbit", "sum").reshape(2, 3, 3)
    assert torch.equal(on, torch.eye(3, dtype=torch.float64))
    assert torch.equal(off, 1 - torch.eye(3, dtype=torch.float64))
