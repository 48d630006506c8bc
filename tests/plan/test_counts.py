"""How many maps, biases, levels, contractions, permutations and broadcasts a plan has."""

from collections import Counter
from itertools import permutations, product
from math import comb, factorial, prod

import pytest

from bellnet import bell, plan
from bellnet.combinatorics import partitions, stirling2
from bellnet.spec import parse_spec

ONE_SET = [" ".join([*"n" * k, "->", *"n" * l]) for k in range(7) for l in range(7 - k)]
TWO_SETS = [
    " ".join([*slots[:k], "->", *slots[k:]])
    for s in range(2, 5)
    for slots in product("ui", repeat=s)
    if set(slots) == {"u", "i"}
    for k in range(s + 1)
]
MORE = ["u u i -> u i", "u u u i i -> i", "a b c -> c b a", "a a b -> b c c", "-> a b c a b", "u i u i u i ->"]


def n_folds(k, r):
    """The number of ways to split k slots into blocks and keep r of them."""
    return sum(stirling2(k, m) * comb(m, r) for m in range(k + 1))


@pytest.mark.parametrize("spec", ONE_SET + TWO_SETS + MORE)
def test_maps_and_biases_are_products_of_bell_numbers(spec):
    asked = parse_spec(spec)
    counts = plan(spec).n_maps, plan(spec).n_biases
    assert counts == (
        prod(bell(asked.slots.count(name)) for name in asked.node_sets),
        prod(bell(asked.target.count(name)) for name in asked.node_sets),
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
def test_counts_that_the_paper_and_the_documentation_give(spec, n_maps, n_biases):
    assert (plan(spec).n_maps, plan(spec).n_biases) == (n_maps, n_biases)


def test_the_plan_of_order_four_is_built_with_all_its_maps():
    big = plan("n n n n -> n n n n")
    assert big.n_maps == len(big.diagrams) == 4140
    assert [len(level.permutations) for level in big.levels] == [1, 1, 2, 6, 24]


@pytest.mark.parametrize("k", range(6))
@pytest.mark.parametrize("l", range(6))
def test_counting_by_rank_gives_the_bell_number(k, l):
    by_rank = (n_folds(k, r) * n_folds(l, r) * factorial(r) for r in range(min(k, l) + 1))
    assert sum(by_rank) == bell(k + l)


@pytest.mark.parametrize("spec", ONE_SET)
def test_each_rank_is_one_level_with_all_reads_swaps_and_writes(spec):
    k, l = map(len, (parse_spec(spec).source, parse_spec(spec).target))
    levels = plan(spec).levels
    assert plan(spec).n_products == len(levels) == min(k, l) + 1
    for r, level in enumerate(levels):
        assert level.rank == ((r,) if k + l else ())
        assert (len(level.contractions), len(level.broadcasts)) == (n_folds(k, r), n_folds(l, r))
        assert level.permutations == tuple(permutations(range(r)))
        assert level.n_maps == len(level.contractions) * len(level.permutations) * len(level.broadcasts)


@pytest.mark.parametrize("spec", TWO_SETS + MORE)
def test_with_several_node_sets_the_rank_is_a_vector_and_counts_multiply(spec):
    asked = parse_spec(spec)
    orders = [(asked.source.count(name), asked.target.count(name)) for name in asked.node_sets]
    levels = plan(spec).levels
    assert Counter(level.rank for level in levels) == Counter(product(*(range(min(k, l) + 1) for k, l in orders)))
    assert [sum(level.rank) for level in levels] == sorted(sum(level.rank) for level in levels)
    for level in levels:
        ranked = list(zip(orders, level.rank, strict=True))
        assert len(level.contractions) == prod(n_folds(k, r) for (k, _), r in ranked)
        assert len(level.broadcasts) == prod(n_folds(l, r) for (_, l), r in ranked)
        assert len(level.permutations) == prod(factorial(r) for _, r in ranked)


@pytest.mark.parametrize("spec", ["n n -> n n", "u i -> i u", "u u i -> u i", "n n n ->"])
def test_diagrams_and_biases_come_in_canonical_order(spec):
    asked = parse_spec(spec)
    assert tuple(diagram.partition for diagram in plan(spec).diagrams) == partitions(asked.slots)
    assert plan(spec).biases == partitions(asked.target)


def test_the_bias_of_a_layer_is_the_plan_of_its_target_alone():
    for spec in ONE_SET + TWO_SETS + MORE:
        target = " ".join(parse_spec(spec).target)
        assert plan(spec).n_biases == plan(f"-> {target}").n_maps
