"""Which partitions there are, in their canonical order."""

from collections.abc import Hashable, Iterable, Sequence

Partition = tuple[int, ...]
"""A set partition as its restricted growth string."""


def partitions(kinds: Sequence[Hashable]) -> tuple[Partition, ...]:
    """All partitions of the slots in which slots of one block are of one kind, sorted.

    With a single kind there are Bell(len(kinds)) of them; with several the counts multiply.

    >>> partitions("nnn")
    ((0, 0, 0), (0, 0, 1), (0, 1, 0), (0, 1, 1), (0, 1, 2))
    >>> partitions("uiu")
    ((0, 1, 0), (0, 1, 2))
    """
    found: list[Partition] = []

    def extend(string: Partition, kind_of_block: tuple[Hashable, ...]) -> None:
        if len(string) == len(kinds):
            found.append(string)
            return
        kind = kinds[len(string)]
        for block, block_kind in enumerate(kind_of_block):
            if block_kind == kind:
                extend((*string, block), kind_of_block)
        extend((*string, len(kind_of_block)), (*kind_of_block, kind))

    extend((), ())
    return tuple(found)


def canonical(labels: Iterable[Hashable]) -> Partition:
    """The partition that puts equal labels together.

    >>> canonical("xyxz")
    (0, 1, 0, 2)
    """
    number: dict[Hashable, int] = {}
    return tuple(number.setdefault(label, len(number)) for label in labels)


def blocks_of(partition: Partition) -> tuple[tuple[int, ...], ...]:
    """The blocks as tuples of slots, in order of first appearance.

    >>> blocks_of((0, 1, 0))
    ((0, 2), (1,))
    """
    blocks: list[list[int]] = [[] for _ in range(max(partition, default=-1) + 1)]
    for slot, block in enumerate(partition):
        blocks[block].append(slot)
    return tuple(tuple(block) for block in blocks)
