"""Set partitions: their number, their list, their lattice, and their orbits under exchanges of slots.

Standard library only. A partition of the slots 0, 1, ..., s-1 is written as its restricted growth string: for each
slot the number of its block, blocks numbered in order of first appearance. `(0, 1, 0)` puts slots 0 and 2 together.
Some functions take the group of every slot: slots of one group may be exchanged.
"""

from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Sequence
from functools import lru_cache
from itertools import accumulate
from math import factorial, inf, prod

Partition = tuple[int, ...]
"""A set partition as its restricted growth string."""

Word = tuple[int, ...]
"""The groups of the slots of a block, in order."""


def stirling2(elements: int, blocks: int) -> int:
    """The number of ways to split `elements` elements into exactly `blocks` non-empty blocks.

    >>> [stirling2(4, m) for m in range(5)]
    [0, 1, 7, 6, 1]
    """
    return _stirling_row(elements)[blocks] if 0 <= blocks <= elements else 0


@lru_cache(maxsize=64)
def _stirling_row(elements: int) -> tuple[int, ...]:
    row = [1]
    for _ in range(elements):
        row = [blocks * more + fewer for blocks, (more, fewer) in enumerate(zip([*row, 0], [0, *row], strict=True))]
    return tuple(row)


def bell(elements: int) -> int:
    """The number of ways to split `elements` elements into non-empty blocks.

    >>> [bell(s) for s in range(9)]
    [1, 1, 2, 5, 15, 52, 203, 877, 4140]
    """
    row = [1]
    for _ in range(elements):
        row = list(accumulate(row, initial=row[-1]))
    return row[0]


@lru_cache(maxsize=512)
def partitions_of_number(number: int) -> int:
    """The number of ways to write `number` as a sum of positive integers, in any order.

    >>> [partitions_of_number(k) for k in range(9)]
    [1, 1, 2, 3, 5, 7, 11, 15, 22]
    """
    ways = [1] + [0] * number
    for part in range(1, number + 1):
        for total in range(part, number + 1):
            ways[total] += ways[total - part]
    return ways[number]


def partitions(
    kinds: Sequence[Hashable], *, groups: Sequence[Hashable] | None = None, apart: Collection[int] = ()
) -> tuple[Partition, ...]:
    """All partitions of the slots in which slots of one block are of one kind, sorted.

    With a single kind there are Bell(len(kinds)) of them; with several kinds the counts multiply.

    Args:
        kinds: The kind of every slot.
        groups: The group of every slot. Of the partitions that differ by an exchange of slots of one group only the
            first is returned, and the others are not generated. The slots of a group are of one kind and follow each
            other among the slots of that kind.
        apart: Slots no two of which share a block; all slots of a group or none.

    >>> partitions("nnn")
    ((0, 0, 0), (0, 0, 1), (0, 1, 0), (0, 1, 1), (0, 1, 2))
    >>> partitions("uiu")
    ((0, 1, 0), (0, 1, 2))
    >>> partitions("nnn", groups="aab")
    ((0, 0, 0), (0, 0, 1), (0, 1, 0), (0, 1, 2))
    """
    numbers = canonical(range(len(kinds)) if groups is None else groups)
    kind_of = dict(zip(numbers, kinds, strict=True))
    groups_apart = {numbers[slot] for slot in apart}
    before = dict.fromkeys(numbers, -1)
    found: list[tuple[Partition, tuple[Word, ...]]] = [((), ())]
    for slot, number in enumerate(numbers):
        same, before[number] = before[number], slot
        longer = []
        for string, words in found:
            # The first of an orbit assigns the slots of a group to the blocks in order, and of blocks with the same
            # word to the earlier one. A block of its own is always allowed, so every beginning has a continuation.
            for block in range(string[same] if same >= 0 else 0, len(words)):
                word = words[block]
                if (
                    kind_of[word[0]] == kinds[slot]
                    and not (number in groups_apart and not groups_apart.isdisjoint(word))
                    and words.index(word) == block
                ):
                    longer.append(((*string, block), (*words[:block], (*word, number), *words[block + 1 :])))
            longer.append(((*string, len(words)), (*words, (number,))))
        found = longer
    return tuple(string for string, _ in found)


def canonical(labels: Iterable[Hashable]) -> Partition:
    """The partition that puts equal labels together.

    >>> canonical("xyxz")
    (0, 1, 0, 2)
    """
    number: dict[Hashable, int] = {}
    return tuple([number.setdefault(label, len(number)) for label in labels])


def blocks_of(partition: Partition) -> tuple[tuple[int, ...], ...]:
    """The blocks as tuples of slots, in order of first appearance.

    >>> blocks_of((0, 1, 0))
    ((0, 2), (1,))
    """
    blocks: list[list[int]] = [[] for _ in range(max(partition, default=-1) + 1)]
    for slot, block in enumerate(partition):
        blocks[block].append(slot)
    return tuple(tuple(block) for block in blocks)


def is_finer(fine: Partition, coarse: Partition) -> bool:
    """Whether every block of `fine` lies inside a block of `coarse`; a partition is finer than itself.

    >>> is_finer((0, 1, 2), (0, 1, 0)), is_finer((0, 0, 1), (0, 1, 0))
    (True, False)
    """
    return len(set(zip(fine, coarse, strict=True))) == len(set(fine))


def moebius(fine: Partition, coarse: Partition) -> int:
    """The Moebius function of the interval from `fine` to `coarse`, zero if `fine` is not finer.

    A block of `coarse` that contains m blocks of `fine` contributes the factor (-1)^(m-1) (m-1)!.

    >>> moebius((0, 1, 2), (0, 0, 0))
    2
    """
    if not is_finer(fine, coarse):
        return 0
    inside: dict[int, set[int]] = {}
    for block, outer in zip(fine, coarse, strict=True):
        inside.setdefault(outer, set()).add(block)
    return prod((-1) ** (len(blocks) - 1) * factorial(len(blocks) - 1) for blocks in inside.values())


def first_of_orbit(partition: Partition, groups: Sequence[Hashable]) -> Partition:
    """The first partition in canonical order among those that exchanges of slots of one group make of this one.

    >>> first_of_orbit((0, 1, 1, 0), "aabb")
    (0, 1, 0, 1)
    >>> first_of_orbit((0, 1, 1, 0), "aabc")
    (0, 1, 0, 1)
    """
    if len(set(groups)) == len(groups):
        return partition
    numbers = canonical(groups)
    # A block that has more of a group comes before one that has less: the end of a word sorts after all groups.
    words = sorted((*(numbers[slot] for slot in block), inf) for block in blocks_of(partition))
    blocks_with: dict[float, list[int]] = {}
    for block, word in enumerate(words):
        for number in word:
            blocks_with.setdefault(number, []).append(block)
    next_block = {number: iter(blocks) for number, blocks in blocks_with.items()}
    return canonical(next(next_block[number]) for number in numbers)


def orbit_size(partition: Partition, groups: Sequence[Hashable]) -> int:
    """The number of partitions that exchanges of slots of one group make of this one, itself included.

    >>> orbit_size((0, 0, 1, 1), "aaaa"), orbit_size((0, 1, 0, 1), "aabc")
    (3, 2)
    """
    if len(set(groups)) == len(groups):
        return 1
    words = Counter(frozenset(Counter(groups[slot] for slot in block).items()) for block in blocks_of(partition))
    exchanges: int = prod(factorial(size) for size in Counter(groups).values())
    inside: int = prod(factorial(n_slots) ** n_blocks for word, n_blocks in words.items() for _, n_slots in word)
    return exchanges // (inside * prod(factorial(n_blocks) for n_blocks in words.values()))
