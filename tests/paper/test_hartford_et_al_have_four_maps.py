"""Sections 4 and 5: the layer of Hartford et al. is the case k_i = l_i = 1; for two node sets 4 maps and 1 bias."""

import pytest
import torch

from bellnet import plan
from tests.paper.layers import EVERY_BASIS, assert_same_space, maps, rank, written

FOUR = (
    lambda a: a,
    lambda a: torch.einsum("ui->i", a).expand(a.shape),
    lambda a: torch.einsum("ui->u", a)[:, None].expand(a.shape),
    lambda a: torch.einsum("ui->", a).expand(a.shape),
)


@pytest.mark.parametrize("options", EVERY_BASIS)
@pytest.mark.parametrize("sizes", [{"u": 3, "i": 4}, {"u": 2, "i": 2}, {"u": 1, "i": 5}, {"u": 1, "i": 1}])
def test_their_four_maps_and_the_layer_over_two_node_sets_span_one_space(sizes, options):
    assert_same_space(maps("u i -> u i", sizes, **options), written(FOUR, "u i -> u i", sizes))


def test_the_layer_over_two_node_sets_has_4_maps_and_1_bias():
    assert (plan("u i -> u i").n_maps, plan("u i -> u i").n_biases) == (4, 1)


def test_their_four_maps_are_independent():
    assert rank(written(FOUR, "u i -> u i", {"u": 2, "i": 2})) == 4


def test_on_a_square_matrix_their_maps_are_four_of_the_fifteen():
    theirs, ours = maps("u i -> u i", {"u": 4, "i": 4}), maps("n n -> n n", 4)
    assert rank(torch.cat([theirs, ours])) == rank(ours) == 15
    assert rank(theirs) == 4


def test_symmetric_hollow_inputs_have_6_of_our_maps_and_4_of_theirs():
    upper = torch.triu_indices(5, 5, 1)
    inputs = torch.zeros(5, 5, upper.shape[1], dtype=torch.float64)
    inputs[upper[0], upper[1], torch.arange(10)] = inputs[upper[1], upper[0], torch.arange(10)] = 1
    inputs = inputs.reshape(25, 10)
    assert rank(maps("n n -> n n", 5) @ inputs) == 6
    assert rank(maps("u i -> u i", {"u": 5, "i": 5}) @ inputs) <= 4
