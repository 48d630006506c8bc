"""Appendix A: "We normalize each operation to have unit max operator norm."

The max operator norm is the largest entry of an output for inputs whose entries are at most one, and that is
the largest sum of absolute values in a row of the matrix.
"""

import pytest
import torch

from bellnet import EquivariantLinear
from tests.paper.layers import maps, maps_side_by_side

CASES = [
    ("n ->", {"n": 1}),
    ("n -> n", {"n": 4}),
    ("n n ->", {"n": 3}),
    ("-> n n", {"n": 3}),
    ("n n -> n n", {"n": 1}),
    ("n n -> n n", {"n": 2}),
    ("n n -> n n", {"n": 6}),
    ("n n n -> n", {"n": 1}),
    ("n n n -> n", {"n": 5}),
    ("u u i -> u i", {"u": 3, "i": 4}),
    ("u i -> v", {"u": 3, "i": 2, "v": 4}),
]


def norms(matrices):
    return matrices.abs().sum(2).amax(1)


@pytest.mark.parametrize(("spec", "sizes"), CASES)
def test_each_map_of_normalised_sums_has_norm_one(spec, sizes):
    found = norms(maps(spec, sizes))
    torch.testing.assert_close(found, torch.ones_like(found), rtol=0, atol=1e-12)


@pytest.mark.parametrize("n", [1, 2, 4])
def test_each_of_203_maps_from_triples_to_triples_has_norm_one(n):
    found = norms(maps_side_by_side("n n n -> n n n", n))
    torch.testing.assert_close(found, torch.ones_like(found), rtol=0, atol=1e-12)


def test_outputs_for_inputs_bounded_by_one_are_bounded_by_one():
    layer = EquivariantLinear("n n -> n n", 1, 15, bias=False, dtype=torch.float64)
    with torch.no_grad():
        layer.weight.copy_(torch.eye(15).unsqueeze(1))
    assert layer(torch.empty(200, 4, 4, 1, dtype=torch.float64).uniform_(-1, 1)).abs().max() <= 1
    largest = layer(torch.ones(4, 4, 1, dtype=torch.float64)).amax((0, 1))
    torch.testing.assert_close(largest, torch.ones(15, dtype=torch.float64))


def test_plain_sums_do_not_have_norm_one():
    found = norms(maps("n n -> n n", 3, normalize="sum"))
    assert sorted(set(found.tolist())) == [1, 3, 9]
