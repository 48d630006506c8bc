"""Proposition 2: the tensors B^gamma, indicators of equality patterns, have disjoint supports and are orthogonal."""

from itertools import product

import pytest
import torch

from tests.paper.layers import maps

CASES = [
    ("n n ->", {"n": 4}),
    ("n -> n", {"n": 3}),
    ("n n -> n", {"n": 3}),
    ("n n -> n n", {"n": 3}),
    ("n n -> n n", {"n": 5}),
    ("n n n -> n", {"n": 4}),
    ("n -> n n", {"n": 2}),
    ("u u i -> u i", {"u": 3, "i": 2}),
]


@pytest.fixture(params=CASES, ids=lambda case: f"{case[0]}, {case[1]}")
def orbits(request):
    spec, sizes = request.param
    return maps(spec, sizes, basis="orbit", normalize="sum")


def test_orbits_are_orthogonal(orbits):
    products = orbits.flatten(1) @ orbits.flatten(1).T
    assert torch.equal(products, products.diag().diag())


def test_orbits_hold_ones_and_zeros_only(orbits):
    assert set(orbits.unique().tolist()) <= {0.0, 1.0}


def test_orbits_have_disjoint_supports_that_cover_every_entry(orbits):
    assert torch.equal(orbits.ne(0).sum(0), torch.ones_like(orbits[0], dtype=torch.long))


def test_orbits_add_up_to_all_ones(orbits):
    assert torch.equal(orbits.sum(0), torch.ones_like(orbits[0]))


def test_each_orbit_is_one_equality_pattern_and_they_come_in_sorted_order():
    orbits = maps("n n -> n n", 4, basis="orbit", normalize="sum").reshape(15, 4, 4, 4, 4)
    patterns = {}
    for target_and_source in product(range(4), repeat=4):
        index = (*target_and_source[2:], *target_and_source[:2])
        nodes = list(dict.fromkeys(index))
        pattern = tuple(nodes.index(node) for node in index)
        patterns.setdefault(pattern, set()).add(int(orbits[(slice(None), *target_and_source)].argmax()))
    assert [patterns[pattern] for pattern in sorted(patterns)] == [{number} for number in range(15)]


def test_diagrams_are_not_orthogonal():
    diagrams = maps("n n -> n n", 4, basis="diagram", normalize="sum").flatten(1)
    products = diagrams @ diagrams.T
    assert not torch.equal(products, products.diag().diag())
