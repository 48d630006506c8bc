"""What declaring the input symmetric or hollow leaves of the maps."""

from itertools import permutations, product

import pytest

from bellnet import plan
from bellnet.combinatorics import partitions
from bellnet.spec import parse_spec

SPECS = [
    " ".join([*slots[:k], "->", *slots[k:]])
    for s in range(6)
    for slots in product("ui", repeat=s)
    if slots == tuple("u" * s) or (slots[0] == "u" and "i" in slots)
    for k in range(s + 1)
]


def _as_sets(partition):
    return frozenset(frozenset(slot for slot, b in enumerate(partition) if b == block) for block in set(partition))


def _classes(spec, *, symmetric, hollow):
    """Classes of partitions that source slots of one node set, exchanged at will, carry into each other."""
    asked = parse_spec(spec)
    k = len(asked.source)
    exchanges = [
        {**dict(enumerate(moved)), **{slot: slot for slot in range(k, len(asked.slots))}}
        for moved in permutations(range(k))
        if all(asked.source[slot] == asked.source[place] for slot, place in enumerate(moved)) and symmetric
    ] or [{slot: slot for slot in range(len(asked.slots))}]
    found = set()
    for partition in map(_as_sets, partitions(asked.slots)):
        if hollow and any(len([slot for slot in block if slot < k]) > 1 for block in partition):
            continue
        found.add(frozenset(frozenset(frozenset(e[slot] for slot in block) for block in partition) for e in exchanges))
    return found


@pytest.mark.parametrize("hollow", [False, True])
@pytest.mark.parametrize("symmetric", [False, True])
def test_one_diagram_of_each_class_remains(symmetric, hollow):
    for spec in SPECS:
        declared = plan(spec, symmetric=symmetric, hollow=hollow)
        classes = _classes(spec, symmetric=symmetric, hollow=hollow)
        assert declared.n_maps == len(classes), spec
        kept = [_as_sets(diagram.partition) for diagram in declared.diagrams]
        assert all(sum(partition in members for partition in kept) == 1 for members in classes), spec


def test_graphs_without_directions_have_eleven_maps_and_without_loops_six():
    assert plan("n n -> n n", symmetric=True).n_maps == 11
    assert plan("n n -> n n", symmetric=True, hollow=True).n_maps == 6
    assert plan("n n -> n n", hollow=True).n_maps == 10


def test_declarations_keep_the_canonical_order():
    for symmetric, hollow in product([False, True], repeat=2):
        for spec in ["n n -> n n", "n n n -> n", "u u i i -> u"]:
            kept = [diagram.partition for diagram in plan(spec, symmetric=symmetric, hollow=hollow).diagrams]
            assert kept == sorted(kept)


def test_declarations_about_the_input_leave_the_biases_alone():
    assert plan("n n -> n n", symmetric=True, hollow=True).biases == plan("n n -> n n").biases


def test_slots_of_different_node_sets_are_not_exchanged():
    assert plan("u i -> u i", symmetric=True, hollow=True).n_maps == plan("u i -> u i").n_maps == 4


def test_the_first_swap_of_every_level_changes_nothing():
    for symmetric, hollow in product([False, True], repeat=2):
        for spec in [*SPECS, "n n n -> n n n", "n n n n -> n n", "n n -> n n n n", "u u i i -> u i"]:
            for level in plan(spec, symmetric=symmetric, hollow=hollow).levels:
                assert level.swaps[0] == tuple(range(sum(level.rank))), (spec, symmetric, hollow)
                assert level.transposed().swaps[0] == level.swaps[0]
