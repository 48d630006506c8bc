"""Where diagonals are empty, the maps on them are left out of the plan, and nothing else is."""

import pickle
from math import comb, factorial

import pytest

from bellnet.plan import plan, restrict

NOTHING = (frozenset(),)


@pytest.mark.parametrize("spec", ["n n -> n n", "n n n -> n", "-> n n", "u u i -> u i", "n n ->"])
def test_where_nothing_is_absent_the_plan_is_the_whole_plan(spec):
    whole = plan(spec)
    left, maps, biases, _ = restrict(whole, NOTHING, NOTHING)
    assert left == whole
    assert maps == tuple(range(whole.n_maps))
    assert biases == tuple(range(whole.n_biases))


@pytest.mark.parametrize(("k", "l"), [(k, l) for k in range(4) for l in range(4)])
def test_without_any_diagonal_each_rank_has_choices_of_slots_and_their_orders(k, l):
    whole = plan(" ".join(["n"] * k + ["->"] + ["n"] * l))
    reads, writes = (
        frozenset(pattern for pattern in plan(" ".join(["->", *["n"] * order])).biases if len(set(pattern)) < order)
        for order in (k, l)
    )
    left, maps, biases, _ = restrict(whole, (reads,), (writes,))
    assert left.n_maps == sum(comb(k, r) * comb(l, r) * factorial(r) for r in range(min(k, l) + 1))
    assert left.n_biases == len(biases) == 1
    assert [whole.diagrams[number] for number in maps] == list(left.diagrams)


def test_only_maps_with_an_absent_pattern_are_left_out():
    whole = plan("n n n -> n n")
    left, maps, biases, _ = restrict(whole, (frozenset({(0, 0, 0), (0, 0, 1)}),), NOTHING)
    gone = [diagram for number, diagram in enumerate(whole.diagrams) if number not in maps]
    assert {diagram.contraction.blocks for diagram in gone} == {(0, 0, 0), (0, 0, 1)}
    assert {diagram.contraction.blocks for diagram in left.diagrams} == {(0, 1, 0), (0, 1, 1), (0, 1, 2)}
    assert biases == (0, 1)


def test_a_part_of_a_plan_is_another_plan():
    whole = plan("n n -> n n")
    left = restrict(whole, (frozenset({(0, 0)}),), NOTHING).plan
    assert left != whole
    assert pickle.loads(pickle.dumps(left)) == left
