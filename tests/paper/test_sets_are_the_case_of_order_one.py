"""Section 1: node values, k = 1, are the case of DeepSets, with 2 equivariant maps and 1 invariant one."""

import pytest
import torch

from bellnet.testing import matrix_of
from tests.paper.layers import EVERY_BASIS, assert_same_space, maps, random_layer, rank, written


@pytest.mark.parametrize("options", EVERY_BASIS)
@pytest.mark.parametrize("n", [2, 3, 7])
def test_sets_to_sets_have_the_two_maps_identity_and_sum(n, options):
    deep_sets = written([lambda a: a, lambda a: a.sum().expand(a.shape)], "n -> n", n)
    assert rank(maps("n -> n", n, **options)) == 2
    assert_same_space(maps("n -> n", n, **options), deep_sets)


@pytest.mark.parametrize("options", EVERY_BASIS)
@pytest.mark.parametrize("n", [1, 2, 7])
def test_sets_to_a_number_have_the_sum_alone(n, options):
    assert rank(maps("n ->", n, **options)) == 1
    assert_same_space(maps("n ->", n, **options), written([lambda a: a.sum()], "n ->", n))


def test_in_the_orbit_basis_the_weights_are_the_alpha_and_beta_of_the_paper():
    layer = random_layer("n -> n", basis="orbit", normalize="sum")
    alpha, beta = layer.weight.detach().flatten()
    identity = torch.eye(4, dtype=torch.float64)
    expected = alpha * identity + beta * (torch.ones_like(identity) - identity)
    torch.testing.assert_close(matrix_of(layer, "n -> n", 4).detach(), expected)
