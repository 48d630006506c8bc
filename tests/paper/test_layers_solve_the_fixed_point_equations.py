"""Proposition 1: a linear layer is equivariant if and only if P^(x)(k+l) vec(L) = vec(L) for all permutations P."""

import pytest
import torch

from bellnet.testing import matrix_of, permute_nodes
from tests.paper.kronecker import acting_on_layers, generators, kronecker_product, permutation_matrix, vec
from tests.paper.layers import EVERY_BASIS, random_layer

CASES = [
    ("n ->", {"n": 4}),
    ("n -> n", {"n": 5}),
    ("n n ->", {"n": 5}),
    ("n n -> n", {"n": 4}),
    ("n n -> n n", {"n": 2}),
    ("n n -> n n", {"n": 5}),
    ("n n n -> n", {"n": 4}),
    ("n -> n n n", {"n": 3}),
    ("u i -> u i", {"u": 4, "i": 3}),
    ("i u u -> u i", {"u": 3, "i": 2}),
]


@pytest.mark.parametrize("options", EVERY_BASIS)
@pytest.mark.parametrize(("spec", "sizes"), CASES)
def test_a_random_layer_is_fixed_by_every_kronecker_power(spec, sizes, options):
    layer = vec(matrix_of(random_layer(spec, **options), spec, sizes))
    drawn = [{name: torch.randperm(size).tolist() for name, size in sizes.items()} for _ in range(3)]
    for permutations in (*generators(sizes), *drawn):
        torch.testing.assert_close(acting_on_layers(spec, permutations) @ layer, layer, rtol=0, atol=1e-12)


def test_a_matrix_that_is_not_a_layer_is_not_fixed():
    layer = vec(matrix_of(lambda x: x.cumsum(-2), "n -> n", 4))
    moved = acting_on_layers("n -> n", {"n": [1, 2, 3, 0]}) @ layer
    assert (moved - layer).abs().max() == 1


@pytest.mark.parametrize("order", [1, 2, 3])
def test_the_kronecker_power_permutes_the_nodes_of_a_tensor(order):
    permutation = [2, 0, 3, 1]
    x = torch.randn(*[4] * order, dtype=torch.float64)
    permuted = permute_nodes(x.unsqueeze(-1), ("n",) * order, permutation).reshape(-1)
    power = kronecker_product([permutation_matrix(permutation)] * order)
    torch.testing.assert_close(power @ x.reshape(-1), permuted, rtol=0, atol=0)
