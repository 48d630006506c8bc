"""Theorem 3: with several node sets the dimension is the product over them of Bell(k_i + l_i)."""

from math import prod

import pytest

from tests.paper.layers import BELL, EVERY_BASIS, STIRLING, maps, rank

CASES = [
    ("u i ->", 1),
    ("u u i ->", 2),
    ("u u i i ->", 4),
    ("u i -> u i", 4),
    ("u i -> i u", 4),
    ("u i -> u", 2),
    ("u u i -> u i", 10),
    ("i u u -> u i", 10),
    ("u i u -> i", 4),
    ("u u -> u i", 5),
    ("u u i i -> u i", 25),
    ("a b c -> a b c", 8),
    ("a a b -> b c", 4),
]


@pytest.mark.parametrize("options", EVERY_BASIS)
@pytest.mark.parametrize(("spec", "expected"), CASES)
def test_with_enough_nodes_the_dimensions_multiply(spec, expected, options):
    orders = {name: spec.split().count(name) for name in spec.replace("->", "").split()}
    found = maps(spec, orders, **options)
    assert expected == prod(BELL[order] for order in orders.values())
    assert (len(found), rank(found)) == (expected, expected)


@pytest.mark.parametrize("sizes", [{"u": 1, "i": 1}, {"u": 2, "i": 1}, {"u": 1, "i": 3}, {"u": 2, "i": 2}])
def test_few_nodes_of_one_set_leave_the_maps_of_other_sets(sizes):
    expected = sum(STIRLING[3][: sizes["u"] + 1]) * sum(STIRLING[2][: sizes["i"] + 1])
    assert rank(maps("u u i -> u i", sizes)) == expected
