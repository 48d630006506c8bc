"""Theorem 1 and its mixed-order form: linear layers from order k to order l have dimension Bell(k + l)."""

import pytest
import torch

from tests.paper.layers import BELL, EVERY_BASIS, ORDERS_UP_TO_4, STIRLING, maps, maps_side_by_side, of_orders, rank


@pytest.mark.parametrize("options", EVERY_BASIS)
@pytest.mark.parametrize(("k", "l"), ORDERS_UP_TO_4)
def test_enough_nodes_have_a_bell_number_of_independent_maps(k, l, options):
    found = maps(of_orders(k, l), max(k + l, 1), **options)
    assert len(found) == BELL[k + l]
    assert rank(found) == BELL[k + l]


@pytest.mark.parametrize("options", EVERY_BASIS)
@pytest.mark.parametrize(("k", "l"), [(1, 1), (2, 0), (2, 1), (1, 2)])
def test_the_dimension_does_not_grow_with_the_number_of_nodes(k, l, options):
    assert [rank(maps(of_orders(k, l), n, **options)) for n in (4, 5, 7)] == [BELL[k + l]] * 3


@pytest.mark.parametrize(("k", "l"), ORDERS_UP_TO_4)
def test_maps_side_by_side_in_channels_are_the_maps_one_by_one(k, l):
    torch.testing.assert_close(maps_side_by_side(of_orders(k, l), 3), maps(of_orders(k, l), 3), rtol=0, atol=1e-15)


@pytest.mark.parametrize("options", EVERY_BASIS)
@pytest.mark.parametrize("k", range(6))
def test_five_slots_have_52_independent_maps(k, options):
    found = maps_side_by_side(of_orders(k, 5 - k), 5, **options)
    assert (len(found), rank(found)) == (52, 52)


def test_order_three_to_order_three_has_203_independent_maps():
    assert rank(maps_side_by_side("n n n -> n n n", 6)) == 203


@pytest.mark.parametrize("options", EVERY_BASIS)
@pytest.mark.parametrize(("k", "l"), [orders for orders in ORDERS_UP_TO_4 if sum(orders) > 1])
def test_few_nodes_have_the_patterns_with_so_many_values(k, l, options):
    for n in range(k + l):
        assert rank(maps(of_orders(k, l), n, **options)) == sum(STIRLING[k + l][: n + 1])


def test_two_nodes_leave_8_of_the_15_maps_from_edges_to_edges():
    assert [rank(maps("n n -> n n", n)) for n in (0, 1, 2, 3, 4)] == [0, 1, 8, 14, 15]
