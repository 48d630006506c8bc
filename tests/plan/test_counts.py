"""The numbers of maps, biases, levels, contractions and broadcasts of a plan; too many maps are refused."""

import sys
from collections import Counter
from itertools import permutations, product
from math import comb, factorial, prod

import pytest

from bellnet import EquivariantLinear, EquivariantNet, InvariantNet, InvariantPool, Spec, bell, change_basis, plan
from bellnet.combinatorics import partitions, partitions_of_number, stirling2
from bellnet.errors import SpecError
from bellnet.plan import MOST_MAPS, refuse_giants
from bellnet.plan.diagram import count_maps
from bellnet.plan.plan import build
from bellnet.spec import parse_spec
from tests.plan.test_declared import SPECS

ONE_SET = [" ".join([*"n" * k, "->", *"n" * l]) for k in range(7) for l in range(7 - k)]
TWO_SETS = [
    " ".join([*slots[:k], "->", *slots[k:]])
    for s in range(2, 5)
    for slots in product("ui", repeat=s)
    if set(slots) == {"u", "i"}
    for k in range(s + 1)
]
MORE = ["u u i -> u i", "u u u i i -> i", "a b c -> c b a", "a a b -> b c c", "-> a b c a b", "u i u i u i ->"]


def n_contractions(k, r):
    """The number of ways to split k slots into blocks and keep r of them."""
    return sum(stirling2(k, m) * comb(m, r) for m in range(k + 1))


@pytest.mark.parametrize("spec", ONE_SET + TWO_SETS + MORE)
def test_maps_and_biases_are_products_of_bell_numbers(spec):
    parsed = parse_spec(spec)
    counts = plan(spec).n_maps, plan(spec).n_biases
    assert counts == (
        prod(bell(parsed.slots.count(name)) for name in parsed.node_sets),
        prod(bell(parsed.target.count(name)) for name in parsed.node_sets),
    )


@pytest.mark.parametrize(
    ("spec", "n_maps", "n_biases"),
    [
        ("n n -> n n", 15, 2),
        ("n n ->", 2, 1),
        ("n -> n", 2, 1),
        ("n n n -> n", 15, 1),
        ("n n n -> n n n", 203, 5),
        ("u i -> u i", 4, 1),
        ("u u i -> u i", 10, 1),
        ("-> n n", 2, 2),
        ("->", 1, 1),
    ],
)
def test_counts_are_those_of_the_paper_and_the_documentation(spec, n_maps, n_biases):
    assert (plan(spec).n_maps, plan(spec).n_biases) == (n_maps, n_biases)


def test_the_plan_of_order_four_is_built_with_all_its_maps():
    big = plan("n n n n -> n n n n")
    assert big.n_maps == len(big.diagrams) == 4140
    assert [len(level.permutations) for level in big.levels] == [1, 1, 2, 6, 24]


@pytest.mark.parametrize("k", range(6))
@pytest.mark.parametrize("l", range(6))
def test_maps_by_rank_add_up_to_the_bell_number(k, l):
    by_rank = (n_contractions(k, r) * n_contractions(l, r) * factorial(r) for r in range(min(k, l) + 1))
    assert sum(by_rank) == bell(k + l)


@pytest.mark.parametrize("spec", ONE_SET)
def test_each_rank_is_one_level_with_all_contractions_permutations_and_broadcasts(spec):
    k, l = map(len, (parse_spec(spec).source, parse_spec(spec).target))
    levels = plan(spec).levels
    assert plan(spec).n_products == len(levels) == min(k, l) + 1
    for r, level in enumerate(levels):
        assert level.rank == ((r,) if k + l else ())
        assert (len(level.contractions), len(level.broadcasts)) == (n_contractions(k, r), n_contractions(l, r))
        assert level.permutations == tuple(permutations(range(r)))
        assert level.n_maps == len(level.contractions) * len(level.permutations) * len(level.broadcasts)


@pytest.mark.parametrize("spec", TWO_SETS + MORE)
def test_with_several_node_sets_the_rank_is_a_vector_and_counts_multiply(spec):
    parsed = parse_spec(spec)
    orders = [(parsed.source.count(name), parsed.target.count(name)) for name in parsed.node_sets]
    levels = plan(spec).levels
    assert Counter(level.rank for level in levels) == Counter(product(*(range(min(k, l) + 1) for k, l in orders)))
    assert [sum(level.rank) for level in levels] == sorted(sum(level.rank) for level in levels)
    for level in levels:
        ranked = list(zip(orders, level.rank, strict=True))
        assert len(level.contractions) == prod(n_contractions(k, r) for (k, _), r in ranked)
        assert len(level.broadcasts) == prod(n_contractions(l, r) for (_, l), r in ranked)
        assert len(level.permutations) == prod(factorial(r) for _, r in ranked)


@pytest.mark.parametrize("spec", ["n n -> n n", "u i -> i u", "u u i -> u i", "n n n ->"])
def test_diagrams_and_biases_come_in_canonical_order(spec):
    parsed = parse_spec(spec)
    assert tuple(diagram.partition for diagram in plan(spec).diagrams) == partitions(parsed.slots)
    assert plan(spec).biases == partitions(parsed.target)


def test_biases_are_the_maps_from_no_source():
    for spec in ONE_SET + TWO_SETS + MORE:
        target = " ".join(parse_spec(spec).target)
        assert plan(spec).n_biases == plan(f"-> {target}").n_maps


DECLARED = [dict(zip(("symmetric", "hollow"), values, strict=True)) for values in product([False, True], repeat=2)]


@pytest.mark.parametrize("declared", DECLARED)
def test_counted_maps_are_as_many_as_those_of_plan(declared):
    for spec in [*SPECS, "n n n n n n -> n", "n n n -> n n n", "a b c a -> c c b", "->"]:
        found = plan(spec, **declared)
        assert count_maps(found.spec, **declared) == found.n_maps, spec


def test_invariant_maps_of_symmetric_inputs_are_partitions_of_the_order():
    for order in range(1, 21):
        assert plan("n " * order + "->", symmetric=True).n_maps == partitions_of_number(order)


@pytest.mark.parametrize("k", [301, 2500, 10**6])
@pytest.mark.parametrize("declared", DECLARED)
def test_counts_do_not_fall_with_more_slots(k, declared):
    for target in ("", "n"):
        few, many = (count_maps(Spec(("n",) * order, tuple(target)), **declared) for order in (300, k))
        assert few <= many
        assert many > 10**15 or declared["hollow"]


def test_maps_of_hollow_inputs_of_many_slots_are_counted_exactly():
    many = Spec(("n",) * 2500, ("n",))
    assert count_maps(many, symmetric=False, hollow=True) == 2501
    assert count_maps(many, symmetric=True, hollow=True) == 2


def test_more_than_max_maps_are_refused():
    assert plan("n n n -> n n n", max_maps=203).n_maps == 203
    with pytest.raises(SpecError, match="has 203 maps; plans are built for up to 202"):
        plan("n n n -> n n n", max_maps=202)


def test_nine_slots_have_fewer_maps_than_the_default_and_ten_have_more():
    refuse_giants(Spec(("n",) * 5, ("n",) * 4))
    with pytest.raises(SpecError, match=f"has 115,975 maps; plans are built for up to {MOST_MAPS:,}"):
        refuse_giants(Spec(("n",) * 5, ("n",) * 5))
    refuse_giants(Spec(("n",) * 12, ()), symmetric=True)


@pytest.mark.parametrize("spec", ["n " * 2500 + "->", "-> " + "n " * 2500, "n " * 2500 + "-> " + "n " * 2500])
@pytest.mark.parametrize("declared", [{}, {"symmetric": True}])
def test_thousands_of_slots_are_refused_with_a_short_message(spec, declared):
    with pytest.raises(SpecError, match=r"has at least 10\^\d+ maps") as caught:
        plan(spec, **declared)
    assert max(map(len, str(caught.value).split("\n"))) < 200
    assert "2,500 slots" in str(caught.value)


@pytest.mark.parametrize("declared", [{}, {"hollow": True, "symmetric": True}])
def test_thousands_of_slots_with_few_maps_are_refused(declared):
    names = ("n",) * 2500 if declared else tuple(f"set{number}" for number in range(2500))
    with pytest.raises(SpecError, match="has 2,500 slots; plans are built for up to 500") as caught:
        plan(Spec(names, ()), **declared)
    assert max(map(len, str(caught.value).split("\n"))) < 200


def test_a_spec_is_refused_without_listing_its_maps(monkeypatch):
    def listing(*arguments, **options):
        raise AssertionError("partitions were listed")

    for module in ("bellnet.plan.diagram", "bellnet.nn.pool"):
        monkeypatch.setattr(sys.modules[module], "partitions", listing)
    for make in (
        lambda: plan("n " * 11 + "->"),
        lambda: plan("n " * 50 + "->", symmetric=True),
        lambda: EquivariantLinear("n " * 5 + "->" + " n" * 5, 1, 1),
        lambda: InvariantPool("n " * 11),
    ):
        with pytest.raises(SpecError, match="maps; plans are built for up to"):
            make()


def test_layers_and_networks_take_max_maps():
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


def test_a_copy_of_a_plan_does_not_check_max_maps_again():
    big = plan("n n n -> n n", max_maps=52)
    function, arguments = big.__reduce__()
    assert function is build
    assert build.__wrapped__(*arguments) == big
