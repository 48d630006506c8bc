"""How partitions refine each other, and the Moebius function of that order."""

from math import factorial, prod

from bellnet.combinatorics.partitions import Partition


def is_finer(fine: Partition, coarse: Partition) -> bool:
    """Whether every block of `fine` lies inside a block of `coarse`; a partition is finer than itself.

    >>> is_finer((0, 1, 2), (0, 1, 0)), is_finer((0, 0, 1), (0, 1, 0))
    (True, False)
    """
    return len(set(zip(fine, coarse, strict=True))) == len(set(fine))


def moebius(fine: Partition, coarse: Partition) -> int:
    """The Moebius function of the interval from `fine` to `coarse`, zero if `fine` is not finer.

    A block of `coarse` that holds m blocks of `fine` contributes the factor (-1)^(m-1) (m-1)!.

    >>> moebius((0, 1, 2), (0, 0, 0))
    2
    """
    if not is_finer(fine, coarse):
        return 0
    held: dict[int, set[int]] = {}
    for block, holder in zip(fine, coarse, strict=True):
        held.setdefault(holder, set()).add(block)
    return prod((-1) ** (len(blocks) - 1) * factorial(len(blocks) - 1) for blocks in held.values())
