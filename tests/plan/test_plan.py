"""A plan is a frozen value from a cache, with a table, and can be restricted to some equality patterns."""

import copy
import pickle
from dataclasses import FrozenInstanceError
from itertools import pairwise
from math import comb, factorial

import pytest

from bellnet import Plan, Spec, plan
from bellnet.plan import restrict

TABLES = {
    "n n -> n n": """\
n n -> n n    15 maps, 2 biases
  rank  contract             permute  broadcast            maps
     2  ab->ab                     2  ab->ab                  2
     1  aa->a  ab->a  ab->b        1  a->aa  a->ab  b->ab     9
     0  aa->  ab->                 1  ->aa  ->ab              4""",
    "n n ->": """\
n n ->    2 maps, 1 bias
  rank  contract    permute  broadcast  maps
     0  aa->  ab->        1  ->            2""",
    "-> n": """\
-> n    1 map, 1 bias
  rank  contract  permute  broadcast  maps
     0  ->              1  ->a           1""",
    "u i -> u": """\
u i -> u    2 maps, 1 bias    ranks: u i
  rank  contract  permute  broadcast  maps
   1 0  ab->a           1  a->a          1
   0 0  ab->            1  ->a           1""",
}


@pytest.mark.parametrize("spec", TABLES)
def test_tables_of_plans_are_those_of_the_documentation(spec):
    assert str(plan(spec)) == TABLES[spec]


def test_a_table_names_the_declared_symmetry():
    assert str(plan("n n -> n n", symmetric=True, hollow=True)).split("\n") == [
        "n n -> n n    6 maps, 2 biases    on symmetric and hollow inputs",
        "  rank  contract  permute  broadcast            maps",
        "     2  ab->ab          1  ab->ab                  1",
        "     1  ab->a           1  a->aa  a->ab  b->ab     3",
        "     0  ab->            1  ->aa  ->ab              2",
    ]


def test_a_long_table_shows_some_contractions_and_their_number():
    lines = str(plan("n n n -> n n n")).split("\n")
    assert lines[0] == "n n n -> n n n    203 maps, 5 biases"
    assert "... 10 in all" in lines[4]


@pytest.mark.parametrize("spec", ["n n -> n n", "n n n -> n n n", "u i u -> i u", "->"])
def test_the_maps_of_the_rows_add_up_to_those_of_the_heading(spec):
    _, _, *rows = str(plan(spec)).split("\n")
    assert sum(int(row.split()[-1]) for row in rows) == plan(spec).n_maps
    assert all(len(one) == len(other) for one, other in pairwise(rows))


def test_equal_arguments_give_the_same_plan():
    assert plan("n n -> n") is plan("n n -> n")
    assert plan(" n n->n ") is plan("n n -> n")
    assert plan(Spec(("n", "n"), ("n",))) is plan("n n -> n")
    assert plan("n n -> n", symmetric=True) is not plan("n n -> n")
    assert plan("n n -> n", symmetric=1) is plan("n n -> n", symmetric=True)


def test_plans_of_different_arguments_differ():
    plans = [plan(spec, symmetric=s, hollow=h) for spec in ("n n -> n", "n n ->") for s in (0, 1) for h in (0, 1)]
    assert len(set(plans)) == len(plans) == 8


def test_a_plan_cannot_be_changed():
    with pytest.raises(FrozenInstanceError):
        plan("n n -> n n").diagrams = ()
    with pytest.raises(FrozenInstanceError):
        plan("n n -> n n").levels[0].contractions = ()
    with pytest.raises(FrozenInstanceError):
        plan("n n -> n n").diagrams[0].partition = (0, 1, 2, 3)
    with pytest.raises(FrozenInstanceError):
        plan("n n -> n n").diagrams[0].contraction.kept = ()


@pytest.mark.parametrize("options", [{}, {"symmetric": True}, {"hollow": True}])
def test_copies_and_pickles_of_a_plan_are_the_plan(options):
    original = plan("n n n -> n n", **options)
    assert pickle.loads(pickle.dumps(original)) is original
    assert copy.deepcopy(original) is original
    assert copy.copy(original) is original
    assert len(pickle.dumps(original)) < 500


def test_diagrams_and_contractions_can_be_pickled():
    for diagram in plan("n n -> n").diagrams:
        again = pickle.loads(pickle.dumps(diagram))
        assert (again, again.contraction, again.permutation, again.broadcast) == (
            diagram,
            diagram.contraction,
            diagram.permutation,
            diagram.broadcast,
        )


def test_a_plan_is_not_constructed_from_a_spec_alone():
    with pytest.raises(TypeError, match="missing 11 required positional arguments"):
        Plan(Spec(("n", "n"), ("n",)))


def test_a_repr_has_the_arguments():
    assert repr(plan("n n -> n")) == "Plan(spec=Spec(source=('n', 'n'), target=('n',)), symmetric=False, hollow=False)"


NOTHING = (frozenset(),)


@pytest.mark.parametrize("spec", ["n n -> n n", "n n n -> n", "-> n n", "u u i -> u i", "n n ->"])
def test_a_plan_restricted_by_no_pattern_is_the_whole_plan(spec):
    whole = plan(spec)
    left, maps, biases, _ = restrict(whole, NOTHING, NOTHING)
    assert left == whole
    assert maps == tuple(range(whole.n_maps))
    assert biases == tuple(range(whole.n_biases))


@pytest.mark.parametrize(("k", "l"), [(k, l) for k in range(4) for l in range(4)])
def test_a_plan_without_diagonals_has_choices_of_slots_and_their_orders(k, l):
    whole = plan(" ".join(["n"] * k + ["->"] + ["n"] * l))
    source, target = (
        frozenset(pattern for pattern in plan(" ".join(["->", *["n"] * order])).biases if len(set(pattern)) < order)
        for order in (k, l)
    )
    left, maps, biases, _ = restrict(whole, (source,), (target,))
    assert left.n_maps == sum(comb(k, r) * comb(l, r) * factorial(r) for r in range(min(k, l) + 1))
    assert left.n_biases == len(biases) == 1
    assert [whole.diagrams[number] for number in maps] == list(left.diagrams)


def test_maps_with_an_absent_pattern_are_left_out():
    whole = plan("n n n -> n n")
    left, maps, biases, _ = restrict(whole, (frozenset({(0, 0, 0), (0, 0, 1)}),), NOTHING)
    gone = [diagram for number, diagram in enumerate(whole.diagrams) if number not in maps]
    assert {diagram.contraction.blocks for diagram in gone} == {(0, 0, 0), (0, 0, 1)}
    assert {diagram.contraction.blocks for diagram in left.diagrams} == {(0, 1, 0), (0, 1, 1), (0, 1, 2)}
    assert biases == (0, 1)


def test_a_restricted_plan_is_not_equal_to_the_whole_plan():
    whole = plan("n n -> n n")
    left = restrict(whole, (frozenset({(0, 0)}),), NOTHING).plan
    assert left != whole
    assert pickle.loads(pickle.dumps(left)) == left
