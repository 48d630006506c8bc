"""Partitions up to exchanges of slots: generated one by one, compared with the definition and with Burnside's lemma."""

from itertools import combinations, groupby, permutations, product
from math import factorial, prod

import pytest

from bellnet.combinatorics import bell, first_of_orbit, orbit_size, partitions

# Kinds and groups, slot by slot: slots with one letter and one digit may be exchanged.
SLOTS = [
    "",
    "n0",
    "n0 n0",
    "n0 n0 n0 n0 n0",
    "n0 n0 n1 n2",
    "n0 n0 n0 n1 n2",
    "n0 n1 n1 n1",
    "n0 n0 n1 n1",
    "n0 n0 n0 n1 n1 n1",
    "n0 n1 n2 n3 n4",
    "u0 u0 i0 i0",
    "u0 i0 u0 i0 u1 i1",
    "i0 u0 u0 i0 i1 u1 i1",
    "u0 u0 u0 i0 i1 u1",
    "a0 b0 a0 c0 c0 b1",
]


def _slots(text):
    words = text.split()
    return [word[0] for word in words], words


def _exchanges(groups):
    """All reorderings that keep every slot in its group, found by trying every reordering."""
    return [
        moved
        for moved in permutations(range(len(groups)))
        if all(groups[slot] == groups[place] for slot, place in enumerate(moved))
    ]


def _canonical(labels):
    number = {}
    return tuple(number.setdefault(label, len(number)) for label in labels)


def _orbit(partition, groups):
    return {_canonical(partition[slot] for slot in exchange) for exchange in _exchanges(groups)}


def _apart(partition, apart):
    return all(partition[one] != partition[other] for one, other in combinations(apart, 2))


def _whole_groups(groups):
    """Sets of slots that are made of groups, among them none and all."""
    names = sorted(set(groups))
    for chosen in product([False, True], repeat=len(names)):
        kept = {name for name, is_kept in zip(names, chosen, strict=True) if is_kept}
        yield [slot for slot, name in enumerate(groups) if name in kept]


@pytest.mark.parametrize("text", SLOTS)
def test_the_first_partition_of_every_orbit_is_returned_in_order(text):
    kinds, groups = _slots(text)
    everything = partitions(kinds)
    first = sorted({min(_orbit(partition, groups)) for partition in everything})
    for apart in _whole_groups(groups):
        assert partitions(kinds, groups=groups, apart=apart) == tuple(one for one in first if _apart(one, apart))


@pytest.mark.parametrize("text", SLOTS)
def test_slots_apart_need_no_groups(text):
    kinds, groups = _slots(text)
    for apart in _whole_groups(groups):
        kept = tuple(one for one in partitions(kinds) if _apart(one, apart))
        assert partitions(kinds, apart=apart) == kept


@pytest.mark.parametrize("text", SLOTS)
def test_the_first_of_an_orbit_and_its_size_are_those_of_the_definition(text):
    kinds, groups = _slots(text)
    for partition in partitions(kinds):
        orbit = _orbit(partition, groups)
        assert first_of_orbit(partition, groups) == min(orbit)
        assert orbit_size(partition, groups) == len(orbit)


@pytest.mark.parametrize("text", SLOTS)
def test_orbit_sizes_add_up_to_all_partitions(text):
    kinds, groups = _slots(text)
    sizes = (orbit_size(one, groups) for one in partitions(kinds, groups=groups))
    assert sum(sizes) == len(partitions(kinds))


def _n_fixed(exchange):
    """How many partitions an exchange leaves as they are: cycles of m slots are grouped, and turned by d ways."""
    lengths, seen = [], set()
    for slot in range(len(exchange)):
        length = 0
        while slot not in seen:
            seen.add(slot)
            slot, length = exchange[slot], length + 1
        if length:
            lengths.append(length)
    return _fixed_on(tuple(sorted(lengths)))


def _fixed_on(lengths):
    """Partitions fixed by a permutation with these cycles: the blocks that meet the first cycle are d blocks that it
    turns round, for d a divisor of its length; cycles that meet the same blocks are multiples of d, set in d ways."""
    if not lengths:
        return 1
    first, *others = lengths
    total = 0
    for n_blocks in (d for d in range(1, first + 1) if first % d == 0):
        fitting = [place for place, length in enumerate(others) if length % n_blocks == 0]
        for count in range(len(fitting) + 1):
            for joined in combinations(fitting, count):
                rest = tuple(length for place, length in enumerate(others) if place not in joined)
                total += n_blocks**count * _fixed_on(rest)
    return total


def _by_burnside(*group_sizes):
    """The number of orbits of partitions of one kind, as the mean number of fixed partitions."""
    starts = [sum(group_sizes[:place]) for place in range(len(group_sizes))]
    ways = [permutations(range(start, start + size)) for start, size in zip(starts, group_sizes, strict=True)]
    fixed = sum(_n_fixed(sum(moved, ())) for moved in product(*ways))
    return fixed // prod(map(factorial, group_sizes))


def _n_orbits(*group_sizes):
    groups = [number for number, size in enumerate(group_sizes) for _ in range(size)]
    return len(partitions("n" * len(groups), groups=groups))


def test_the_number_of_partitions_that_an_exchange_fixes():
    for exchange in permutations(range(5)):
        fixed = [one for one in partitions("nnnnn") if _canonical(one[slot] for slot in exchange) == one]
        assert _n_fixed(exchange) == len(fixed)


ONE_SIDE = [(k, *[1] * l) for k in range(6) for l in range(4)]
BOTH_SIDES = [(2, 2), (3, 2), (3, 3), (4, 2), (4, 3), (4, 4)]


@pytest.mark.parametrize("sizes", [*ONE_SIDE, *BOTH_SIDES])
def test_the_number_of_orbits_is_that_of_burnsides_lemma(sizes):
    assert _n_orbits(*sizes) == _by_burnside(*sizes)


def test_orbits_with_two_groups_are_bipartite_partitions():
    # The sequence A002774 of the On-Line Encyclopedia of Integer Sequences.
    assert [_n_orbits(k, k) for k in range(6)] == [1, 2, 9, 31, 109, 339]


def test_orbits_with_one_group_are_partitions_of_a_number():
    # The sequence A000041 of the On-Line Encyclopedia of Integer Sequences.
    published = [1, 1, 2, 3, 5, 7, 11, 15, 22, 30, 42, 56, 77, 101, 135, 176, 231, 297, 385, 490, 627]
    assert [_n_orbits(k) for k in range(len(published))] == published


@pytest.mark.parametrize("sizes", [(12,), (9, 1, 1), (6, 6), (5, 1, 1, 1), (3, 3, 3), (1,) * 7])
def test_every_partition_of_the_first_slots_has_a_continuation(sizes):
    groups = [number for number, size in enumerate(sizes) for _ in range(size)]
    whole = partitions("n" * len(groups), groups=groups)
    for length in range(len(groups) + 1):
        begun = partitions("n" * length, groups=groups[:length])
        assert set(begun) == {partition[:length] for partition in whole}


@pytest.mark.parametrize("sizes", [(12,), (9, 1, 1), (6, 6), (5, 1, 1, 1), (1,) * 7])
def test_comparisons_are_few_for_every_partition(sizes):
    compared = []

    class Kind:
        """A kind that counts how often it is compared, once for every block that a slot might join."""

        def __eq__(self, other):
            compared.append(other)
            return type(other) is Kind

        __hash__ = object.__hash__

    groups = [number for number, size in enumerate(sizes) for _ in range(size)]
    found = partitions([Kind() for _ in groups], groups=groups)
    assert len(found) == _n_orbits(*sizes)
    assert 0 < len(compared) <= len(groups) ** 2 * len(found)


def test_partitions_of_many_slots_are_found_where_there_are_few():
    assert partitions(range(1000)) == (tuple(range(1000)),)
    assert partitions("n" * 1000, apart=range(1000)) == (tuple(range(1000)),)


def test_groups_of_one_slot_have_no_exchanges():
    for kinds in ("nnnn", "uiu", "uuii"):
        assert partitions(kinds, groups=range(len(kinds))) == partitions(kinds)
        assert len(partitions(kinds)) == prod(bell(len(list(same))) for _, same in groupby(sorted(kinds)))
