"""What comes out of a map, in words: what is read of the input, and where it is written.

Matrices have rows, columns and a diagonal; of more slots the letters of the map's name tell which is which.
"""

from bellnet.combinatorics import Partition
from bellnet.plan.contraction import letters


def outcome(source: Partition, target: Partition, *, means: bool) -> str:
    """The words for the map between slots of these blocks, which no other map of the spec has.

    Args:
        source: The block of every source slot.
        target: The block of every target slot, numbered on.
        means: Whether what is summed over is divided by the number of its terms.

    >>> outcome((0, 1), (0, 0), means=True)
    'row means, on the diagonal'
    """
    if source == target and len(set(source)) == len(source):
        return "the input, unchanged"
    if (source, target) == ((0, 1), (1, 0)):
        return "the transpose"
    where = _where(source, target)
    return _read(source, target, "mean" if means else "sum") + (where and f", {where}")


def _read(source: Partition, target: Partition, mean: str) -> str:
    if not source:
        return "one value"
    blocks = list(dict.fromkeys(source))
    dropped = [block for block in blocks if block not in target]
    diagonal = _diagonal(source)
    if not dropped:
        return diagonal or ("the entries" if len(source) > 1 else "the values")
    if dropped == blocks:
        of = diagonal or "all entries" * (len(source) > 1)
        return f"the {mean}" + (of and f" of {of}")
    if len(source) == 2:
        return f"{'row' if dropped[0] == source[1] else 'column'} {mean}s"
    return f"{mean}s over {letters(dropped)}" + (diagonal and f" of {diagonal}")


def _where(source: Partition, target: Partition) -> str:
    if diagonal := _diagonal(target):
        return f"on {diagonal}"
    carried = tuple(block for block in dict.fromkeys(source) if block in target)
    if carried == target:
        return ""
    if len(carried) == len(target):
        return "transposed" if len(target) == 2 else f"as {letters(target)}"
    if not carried:
        return "everywhere" if len(target) > 1 else "at every node"
    if len(target) == 2:
        return f"along the {'rows' if carried[0] == target[0] else 'columns'}"
    return f"repeated as {letters(target)}"


def _diagonal(side: Partition) -> str:
    """The diagonal on which a side is, with its letters where there are several; "" for all entries."""
    n_blocks = len(set(side))
    return "" if n_blocks == len(side) else "the diagonal" + f" {letters(side)}" * (n_blocks > 1)
