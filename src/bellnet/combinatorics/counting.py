"""How many partitions there are: Stirling numbers of the second kind, Bell numbers, and partitions of a number."""

from functools import lru_cache
from itertools import accumulate


def stirling2(elements: int, blocks: int) -> int:
    """The number of ways to split `elements` things into exactly `blocks` non-empty blocks.

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
    """The number of ways to split `elements` things into non-empty blocks.

    >>> [bell(s) for s in range(9)]
    [1, 1, 2, 5, 15, 52, 203, 877, 4140]
    """
    row = [1]
    for _ in range(elements):
        row = list(accumulate(row, initial=row[-1]))
    return row[0]


@lru_cache(maxsize=512)
def partitions_of_number(number: int) -> int:
    """The number of ways to write `number` as a sum of positive numbers, whatever their order.

    >>> [partitions_of_number(k) for k in range(9)]
    [1, 1, 2, 3, 5, 7, 11, 15, 22]
    """
    ways = [1] + [0] * number
    for part in range(1, number + 1):
        for total in range(part, number + 1):
            ways[total] += ways[total - part]
    return ways[number]
