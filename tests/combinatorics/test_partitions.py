from itertools import combinations, pairwise, product
from math import prod

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bellnet.combinatorics import bell, blocks_of, canonical, partitions

KINDS = ["", "n", "nn", "nnn", "nnnn", "nnnnn", "nnnnnn", "ui", "uiu", "uuii", "uiui", "uuuii", "abc", "aabbcc"]


def _by_trying_all_labels(kinds):
    """All partitions, from all labellings of the slots in which slots of different kinds have different labels."""
    found = set()
    for labels in product(range(len(kinds)), repeat=len(kinds)):
        number = {}
        found.add(tuple(number.setdefault(pair, len(number)) for pair in zip(kinds, labels, strict=True)))
    return found


@pytest.mark.parametrize("kinds", KINDS)
def test_partitions_are_complete_and_none_is_listed_twice(kinds):
    listed = partitions(kinds)
    assert len(listed) == len(set(listed))
    assert set(listed) == _by_trying_all_labels(kinds)


@pytest.mark.parametrize("kinds", KINDS)
def test_partitions_are_sorted(kinds):
    assert all(earlier < later for earlier, later in pairwise(partitions(kinds)))


@pytest.mark.parametrize("kinds", KINDS)
def test_partitions_are_restricted_growth_strings(kinds):
    for partition in partitions(kinds):
        for slot, block in enumerate(partition):
            assert 0 <= block <= max(partition[:slot], default=-1) + 1


@pytest.mark.parametrize("kinds", KINDS)
def test_slots_of_different_kinds_never_share_a_block(kinds):
    for partition in partitions(kinds):
        for one, other in combinations(range(len(kinds)), 2):
            assert partition[one] != partition[other] or kinds[one] == kinds[other]


@pytest.mark.parametrize("kinds", KINDS)
def test_there_are_a_product_of_bell_numbers_of_them(kinds):
    assert len(partitions(kinds)) == prod(bell(kinds.count(kind)) for kind in set(kinds))


def test_kinds_may_be_anything_that_can_be_compared():
    assert partitions([3, ("x", 1), 3]) == partitions("uiu") == ((0, 1, 0), (0, 1, 2))


@given(st.lists(st.integers(0, 5), max_size=6))
def test_canonical_puts_together_exactly_the_equal_labels(labels):
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
