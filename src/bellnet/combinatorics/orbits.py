"""Orbits of partitions under exchanges of slots: two partitions are in one if their blocks are made of the same groups.

`groups` gives the group of every slot, as in `partitions`: slots of one group may be exchanged.
"""

from collections import Counter
from collections.abc import Hashable, Sequence
from math import factorial, inf, prod

from bellnet.combinatorics.partitions import Partition, blocks_of, canonical


def first_of_orbit(partition: Partition, groups: Sequence[Hashable]) -> Partition:
    """The first partition in canonical order that exchanges of slots of one group make of this one.

    >>> first_of_orbit((0, 1, 1, 0), "aabb")
    (0, 1, 0, 1)
    >>> first_of_orbit((0, 1, 1, 0), "aabc")
    (0, 1, 0, 1)
    """
    if len(set(groups)) == len(groups):
        return partition
    numbers = canonical(groups)
    # A block that has more of a group comes before one that has less: the end of a word stands behind all groups.
    words = sorted((*(numbers[slot] for slot in block), inf) for block in blocks_of(partition))
    blocks_with: dict[float, list[int]] = {}
    for block, word in enumerate(words):
        for number in word:
            blocks_with.setdefault(number, []).append(block)
    hands_out = {number: iter(blocks) for number, blocks in blocks_with.items()}
    return canonical(next(hands_out[number]) for number in numbers)


def orbit_size(partition: Partition, groups: Sequence[Hashable]) -> int:
    """How many partitions exchanges of slots of one group make of this one, itself included.

    >>> orbit_size((0, 0, 1, 1), "aaaa"), orbit_size((0, 1, 0, 1), "aabc")
    (3, 2)
    """
    if len(set(groups)) == len(groups):
        return 1
    words = Counter(frozenset(Counter(groups[slot] for slot in block).items()) for block in blocks_of(partition))
    exchanges: int = prod(factorial(size) for size in Counter(groups).values())
    inside: int = prod(factorial(n_slots) ** n_blocks for word, n_blocks in words.items() for _, n_slots in word)
    return exchanges // (inside * prod(factorial(n_blocks) for n_blocks in words.values()))
