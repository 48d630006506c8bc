"""The cost of a plan, compared with that of single maps."""

from math import prod

import pytest

from bellnet import plan
from bellnet.spec import parse_spec

SPECS = ["n n -> n n", "n n n -> n n", "n -> n n n", "n n n ->", "->", "-> n", "u i -> u i", "u u i -> i u", "a b -> c"]


def _map_by_map(spec, sizes, d, d_out):
    """One product of channels for each map and each assignment of nodes to the blocks that cross."""
    parsed = parse_spec(spec)
    k, total = len(parsed.source), 0
    for diagram in plan(spec).diagrams:
        crossing = set(diagram.partition[:k]) & set(diagram.partition[k:])
        total += d * d_out * prod(sizes[parsed.slots[diagram.partition.index(block)]] for block in crossing)
    return total


@pytest.mark.parametrize("n", [0, 1, 2, 7, 100])
def test_the_cost_between_matrices_is_the_formula_of_the_documentation(n):
    d, d_out = 3, 5
    cost = plan("n n -> n n").cost(n, in_channels=d, out_channels=d_out)
    assert cost.multiplications == (2 * n**2 + 9 * n + 4) * d * d_out
    assert cost.stacked_multiplications == 15 * n**2 * d * d_out


@pytest.mark.parametrize("spec", SPECS)
def test_multiplications_are_those_of_the_single_maps(spec):
    names = parse_spec(spec).node_sets
    for base in (0, 1, 4):
        sizes = {name: base + number for number, name in enumerate(names)}
        cost = plan(spec).cost(sizes, in_channels=2, out_channels=3)
        assert cost.multiplications == _map_by_map(spec, sizes, 2, 3)
        target = prod(sizes[name] for name in parse_spec(spec).target)
        assert cost.stacked_multiplications == plan(spec).n_maps * target * 6


@pytest.mark.parametrize("spec", SPECS)
def test_a_batch_costs_as_much_as_its_graphs(spec):
    one, five = plan(spec).cost(6, 2, 3), plan(spec).cost(6, 2, 3, batch=5)
    assert five.multiplications == 5 * one.multiplications
    assert (five.input_bytes, five.output_bytes) == (5 * one.input_bytes, 5 * one.output_bytes)


def test_bytes_are_those_of_float32_tensors():
    cost = plan("u i -> i").cost({"u": 4, "i": 5}, in_channels=2, out_channels=3, batch=7)
    assert (cost.input_bytes, cost.output_bytes) == (4 * 7 * 4 * 5 * 2, 4 * 7 * 5 * 3)
    assert cost.extra_bytes > 0


def test_one_size_is_that_of_all_node_sets():
    assert plan("u i -> i").cost(4) == plan("u i -> i").cost({"u": 4, "i": 4})


def test_declared_inputs_never_cost_more():
    for spec in ["n n -> n n", "n n n -> n n"]:
        full = plan(spec).cost(9).multiplications
        assert plan(spec, symmetric=True).cost(9).multiplications < full
        assert plan(spec, hollow=True).cost(9).multiplications < full


def test_order_three_takes_6_full_products_instead_of_203():
    n = 1000
    cost = plan("n n n -> n n n").cost(n)
    assert cost.multiplications // n**3 == 6
    assert cost.stacked_multiplications == 203 * n**3
