from itertools import combinations, pairwise, product
from math import prod

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bellnet.combinatorics import bell, blocks_of, canonical, partitions

KINDS = ["", "n", "nn", "nnn", "nnnn", "nnnnn", "nnnnnn", "ui", "uiu", "uuii", "uiui", "uuuii", "abc", "aabbcc"]


def _by_all_labels(kinds):
    """All partitions, from all labellings of the slots in which slots of different kinds have different labels."""
    found = set()
    for labels in product(range(len(kinds)), repeat=len(kinds)):
        number = {}
        found.add(tuple(number.setdefault(pair, len(number)) for pair in zip(kinds, labels, strict=True)))
    return found


@pytest.mark.parametrize("kinds", KINDS)
def test_partitions_are_complete_and_distinct(kinds):
    found = partitions(kinds)
    assert len(found) == len(set(found))
    assert set(found) == _by_all_labels(kinds)


@pytest.mark.parametrize("kinds", KINDS)
def test_partitions_are_sorted_restricted_growth_strings(kinds):
    assert all(earlier < later for earlier, later in pairwise(partitions(kinds)))
    for partition in partitions(kinds):
        for slot, block in enumerate(partition):
            assert 0 <= block <= max(partition[:slot], default=-1) + 1


@pytest.mark.parametrize("kinds", KINDS)
def test_the_number_of_partitions_is_a_product_of_bell_numbers(kinds):
    assert len(partitions(kinds)) == prod(bell(kinds.count(kind)) for kind in set(kinds))


def test_kinds_may_be_any_hashable_objects():
    assert partitions([3, ("x", 1), 3]) == partitions("uiu") == ((0, 1, 0), (0, 1, 2))


@given(st.lists(st.integers(0, 5), max_size=6))
def test_canonical_has_one_block_for_every_label(labels):
    partition = canonical(labels)
    assert partition in partitions("n" * len(labels))
    for one, other in combinations(range(len(labels)), 2):
        assert (partition[one] == partition[other]) == (labels[one] == labels[other])
    assert canonical(partition) == partition


@pytest.mark.parametrize("kinds", KINDS)
def test_the_blocks_of_a_partition_are_its_slots_sorted_by_first_appearance(kinds):
    for partition in partitions(kinds):
        blocks = blocks_of(partition)
        assert sorted(slot for block in blocks for slot in block) == list(range(len(kinds)))
        assert [block[0] for block in blocks] == sorted(block[0] for block in blocks)
        for number, block in enumerate(blocks):
            assert list(block) == sorted(block)
            assert {partition[slot] for slot in block} == {number}
