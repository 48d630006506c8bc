"""A plan is a value: frozen, hashed by what was asked, found again in the cache; and it can be printed."""

import copy
import pickle
from dataclasses import FrozenInstanceError
from itertools import pairwise

import pytest

from bellnet import Plan, Spec, plan

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
def test_a_plan_prints_as_the_documentation_shows_it(spec):
    assert str(plan(spec)) == TABLES[spec]


def test_the_table_says_what_was_declared():
    assert str(plan("n n -> n n", symmetric=True, hollow=True)).split("\n") == [
        "n n -> n n    6 maps, 2 biases    on symmetric and hollow inputs",
        "  rank  contract  permute  broadcast            maps",
        "     2  ab->ab          1  ab->ab                  1",
        "     1  ab->a           1  a->aa  a->ab  b->ab     3",
        "     0  ab->            1  ->aa  ->ab              2",
    ]


def test_a_long_table_shows_some_and_counts_the_rest():
    lines = str(plan("n n n -> n n n")).split("\n")
    assert lines[0] == "n n n -> n n n    203 maps, 5 biases"
    assert "... 10 in all" in lines[4]


@pytest.mark.parametrize("spec", ["n n -> n n", "n n n -> n n n", "u i u -> i u", "->"])
def test_the_maps_of_the_rows_add_up_to_the_maps_of_the_heading(spec):
    _, _, *rows = str(plan(spec)).split("\n")
    assert sum(int(row.split()[-1]) for row in rows) == plan(spec).n_maps
    assert all(len(one) == len(other) for one, other in pairwise(rows))


def test_a_plan_is_made_once():
    assert plan("n n -> n") is plan("n n -> n")
    assert plan(" n n->n ") is plan("n n -> n")
    assert plan(Spec(("n", "n"), ("n",))) is plan("n n -> n")
    assert plan("n n -> n", symmetric=True) is not plan("n n -> n")
    assert plan("n n -> n", symmetric=1) is plan("n n -> n", symmetric=True)


def test_plans_of_different_questions_differ():
    asked = [plan(spec, symmetric=s, hollow=h) for spec in ("n n -> n", "n n ->") for s in (0, 1) for h in (0, 1)]
    assert len(set(asked)) == len(asked) == 8


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


def test_diagrams_and_contractions_survive_a_pickle():
    for diagram in plan("n n -> n").diagrams:
        again = pickle.loads(pickle.dumps(diagram))
        assert (again, again.contraction, again.permutation, again.broadcast) == (
            diagram,
            diagram.contraction,
            diagram.permutation,
            diagram.broadcast,
        )


def test_a_plan_cannot_be_made_of_a_spec_alone():
    """It would be equal to the one with the maps, which `plan` makes."""
    with pytest.raises(TypeError, match="missing 11 required positional arguments"):
        Plan(Spec(("n", "n"), ("n",)))


def test_the_first_line_of_the_repr_is_the_question():
    assert repr(plan("n n -> n")) == "Plan(spec=Spec(source=('n', 'n'), target=('n',)), symmetric=False, hollow=False)"
