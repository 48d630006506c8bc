"""Appendix A: on symmetric inputs the basis has 11 elements, and on symmetric inputs with zero diagonal 6.

The same for other orders and node sets, where the paper gives no numbers: there the rank of all maps, restricted to
such inputs, says how many there must be.
"""

import pytest

from bellnet import plan
from tests.paper.layers import assert_same_space, declared_inputs, maps_side_by_side, rank

DECLARED = [
    {"symmetric": True, "hollow": False},
    {"symmetric": False, "hollow": True},
    {"symmetric": True, "hollow": True},
]

CASES = [
    ("n n ->", {"n": 3}),
    ("n n -> n", {"n": 4}),
    ("n n -> n n", {"n": 5}),
    ("n n -> n n n", {"n": 5}),
    ("n n n ->", {"n": 4}),
    ("n n n -> n", {"n": 5}),
    ("n n n -> n n", {"n": 5}),
    ("u u i -> u i", {"u": 3, "i": 3}),
    ("u i u i -> u", {"u": 4, "i": 3}),
    ("u i -> u i", {"u": 2, "i": 2}),
]


def test_symmetric_matrices_need_11_maps():
    inputs = declared_inputs("n n -> n n", {"n": 4}, symmetric=True, hollow=False)
    assert rank(maps_side_by_side("n n -> n n", 4) @ inputs) == 11
    assert plan("n n -> n n", symmetric=True).n_maps == 11


def test_symmetric_matrices_with_zero_diagonal_need_6_maps():
    inputs = declared_inputs("n n -> n n", {"n": 4}, symmetric=True, hollow=True)
    assert rank(maps_side_by_side("n n -> n n", 4) @ inputs) == 6
    assert plan("n n -> n n", symmetric=True, hollow=True).n_maps == 6


@pytest.mark.parametrize("declared", DECLARED)
@pytest.mark.parametrize(("spec", "sizes"), CASES)
def test_the_plan_has_as_many_maps_as_are_independent_on_such_inputs(spec, sizes, declared):
    inputs = declared_inputs(spec, sizes, **declared)
    assert plan(spec, **declared).n_maps == rank(maps_side_by_side(spec, sizes) @ inputs)


@pytest.mark.parametrize("declared", DECLARED)
@pytest.mark.parametrize(("spec", "sizes"), CASES)
def test_the_declared_layer_spans_the_maps_on_such_inputs(spec, sizes, declared):
    inputs = declared_inputs(spec, sizes, **declared)
    every = maps_side_by_side(spec, sizes) @ inputs
    assert_same_space(maps_side_by_side(spec, sizes, **declared) @ inputs, every)
    options = {"basis": "orbit", "normalize": "sum"}
    assert_same_space(maps_side_by_side(spec, sizes, **declared, **options) @ inputs, every)
