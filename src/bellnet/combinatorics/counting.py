"""How many partitions there are: Stirling numbers of the second kind and Bell numbers."""

from functools import cache


@cache
def stirling2(elements: int, blocks: int) -> int:
    """The number of ways to split `elements` things into exactly `blocks` non-empty blocks.

    >>> [stirling2(4, m) for m in range(5)]
    [0, 1, 7, 6, 1]
    """
    if elements == blocks:
        return 1
    if blocks <= 0 or blocks > elements:
        return 0
    return blocks * stirling2(elements - 1, blocks) + stirling2(elements - 1, blocks - 1)


def bell(elements: int) -> int:
    """The number of ways to split `elements` things into non-empty blocks.

    >>> [bell(s) for s in range(9)]
    [1, 1, 2, 5, 15, 52, 203, 877, 4140]
    """
    return sum(stirling2(elements, blocks) for blocks in range(elements + 1))
