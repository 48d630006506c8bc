"""Which partitions there are, in their canonical order."""

from collections.abc import Collection, Hashable, Iterable, Sequence

Partition = tuple[int, ...]
"""A set partition as its restricted growth string."""

Word = tuple[int, ...]
"""What a block is made of: the group of each of its slots, in order."""


def partitions(
    kinds: Sequence[Hashable], *, groups: Sequence[Hashable] | None = None, apart: Collection[int] = ()
) -> tuple[Partition, ...]:
    """All partitions of the slots in which slots of one block are of one kind, sorted.

    With a single kind there are Bell(len(kinds)) of them; with several the counts multiply.

    Args:
        kinds: The kind of every slot.
        groups: The group of every slot. Of partitions that differ by an exchange of slots of one group only the first
            is listed, and the others are not made either. The slots of a group are of one kind and follow each other
            among the slots of that kind.
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
    kept_apart = {numbers[slot] for slot in apart}
    before = dict.fromkeys(numbers, -1)
    found: list[tuple[Partition, tuple[Word, ...]]] = [((), ())]
    for slot, number in enumerate(numbers):
        same, before[number] = before[number], slot
        longer = []
        for string, words in found:
            # The first of an orbit hands the slots of a group to the blocks in order, and of blocks that are made of
            # the same groups to the earlier one. A block of its own is always allowed: whatever is begun leads on.
            for block in range(string[same] if same >= 0 else 0, len(words)):
                word = words[block]
                if (
                    kind_of[word[0]] == kinds[slot]
                    and not (number in kept_apart and not kept_apart.isdisjoint(word))
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
