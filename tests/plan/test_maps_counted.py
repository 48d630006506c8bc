"""Maps are counted before any is listed, and a spec with too many is refused."""

import sys
from itertools import product

import pytest

from bellnet import EquivariantLinear, EquivariantNet, InvariantNet, InvariantPool, Spec, change_basis, plan
from bellnet.combinatorics import partitions_of_number
from bellnet.errors import SpecError
from bellnet.plan import MOST_MAPS, refuse_giants
from bellnet.plan import plan as the_plan
from bellnet.plan.diagram import count_maps
from bellnet.plan.plan import build
from tests.plan.test_declared import SPECS

DECLARED = [dict(zip(("symmetric", "hollow"), values, strict=True)) for values in product([False, True], repeat=2)]


@pytest.mark.parametrize("declared", DECLARED)
def test_there_are_as_many_maps_as_were_counted(declared):
    for spec in [*SPECS, "n n n n n n -> n", "n n n -> n n n", "a b c a -> c c b", "->"]:
        found = plan(spec, **declared)
        assert count_maps(found.spec, **declared) == found.n_maps, spec


def test_invariant_maps_of_symmetric_inputs_are_partitions_of_the_order():
    for order in range(1, 21):
        assert plan("n " * order + "->", symmetric=True).n_maps == partitions_of_number(order)


def test_seven_to_no_slots_have_fifteen_maps_for_symmetric_inputs():
    assert [plan("n " * order + "->", symmetric=True).n_maps for order in (7, 9, 10)] == [15, 30, 42]


@pytest.mark.parametrize("k", [301, 2500, 10**6])
@pytest.mark.parametrize("declared", DECLARED)
def test_more_slots_never_have_fewer_maps_than_are_counted_for_fewer(k, declared):
    for target in ("", "n"):
        few, many = (count_maps(Spec(("n",) * order, tuple(target)), **declared) for order in (300, k))
        assert few <= many
        assert many > 10**15 or declared["hollow"]


def test_hollow_inputs_of_many_slots_have_few_maps_and_they_are_counted_exactly():
    many = Spec(("n",) * 2500, ("n",))
    assert count_maps(many, symmetric=False, hollow=True) == 2501
    assert count_maps(many, symmetric=True, hollow=True) == 2


def test_a_number_of_maps_above_the_bound_is_refused_and_one_at_the_bound_is_not():
    assert plan("n n n -> n n n", max_maps=203).n_maps == 203
    with pytest.raises(SpecError, match="has 203 maps; plans are built for up to 202"):
        plan("n n n -> n n n", max_maps=202)


def test_nine_slots_are_within_the_default_and_ten_are_not():
    refuse_giants(Spec(("n",) * 5, ("n",) * 4))
    with pytest.raises(SpecError, match=f"has 115,975 maps; plans are built for up to {MOST_MAPS:,}"):
        refuse_giants(Spec(("n",) * 5, ("n",) * 5))
    refuse_giants(Spec(("n",) * 12, ()), symmetric=True)


@pytest.mark.parametrize("spec", ["n " * 2500 + "->", "-> " + "n " * 2500, "n " * 2500 + "-> " + "n " * 2500])
@pytest.mark.parametrize("declared", [{}, {"symmetric": True}])
def test_thousands_of_slots_are_refused_with_words_that_can_be_read(spec, declared):
    with pytest.raises(SpecError, match=r"has at least 10\^\d+ maps") as caught:
        plan(spec, **declared)
    assert max(map(len, str(caught.value).split("\n"))) < 200
    assert "2,500 slots" in str(caught.value)


@pytest.mark.parametrize("declared", [{}, {"hollow": True, "symmetric": True}])
def test_thousands_of_slots_with_few_maps_are_refused_too(declared):
    names = ("n",) * 2500 if declared else tuple(f"set{number}" for number in range(2500))
    with pytest.raises(SpecError, match="has 2,500 slots; plans are built for up to 500") as caught:
        plan(Spec(names, ()), **declared)
    assert max(map(len, str(caught.value).split("\n"))) < 200


def test_nothing_is_listed_for_a_spec_that_is_refused(monkeypatch):
    def listing(*arguments, **options):
        raise AssertionError("partitions were listed")

    for module in ("bellnet.plan.diagram", "bellnet.nn.pool"):
        monkeypatch.setattr(sys.modules[module], "partitions", listing)
    for make in (
        lambda: the_plan("n " * 11 + "->"),
        lambda: the_plan("n " * 50 + "->", symmetric=True),
        lambda: EquivariantLinear("n " * 5 + "->" + " n" * 5, 1, 1),
        lambda: InvariantPool("n " * 11),
    ):
        with pytest.raises(SpecError, match="maps; plans are built for up to"):
            make()


def test_every_way_to_a_plan_takes_the_bound():
    small = {"max_maps": 14}
    for make in (
        lambda: EquivariantLinear("n n -> n n", 1, 1, **small),
        lambda: EquivariantNet("n n -> n", [1, 2, 1], **small),
        lambda: InvariantNet("n n", [1, 2], 1, **small),
        lambda: InvariantPool("n n n n", **small),
        lambda: change_basis("n n -> n n", None, to="orbit", **small),
    ):
        with pytest.raises(SpecError, match="has 15 maps; plans are built for up to 14"):
            make()


def test_a_plan_that_was_asked_for_is_copied_without_asking_again():
    big = plan("n n n -> n n", max_maps=52)
    function, arguments = big.__reduce__()
    assert function is build
    assert build.__wrapped__(*arguments) == big
