"""Single maps in words: the steps that compute them, and what comes out.

Matrices have rows, columns and a diagonal; for tensors of higher order the words use the letters of the map's name.
"""

from bellnet.combinatorics import Partition
from bellnet.plan.contraction import letters


def steps_in_words(source: Partition, target: Partition) -> str:
    """The steps of the map between slots of these blocks, in words that no other map of the spec has.

    Args:
        source: The block of every source slot.
        target: The block of every target slot, numbered on.

    >>> steps_in_words((0, 1), (0, 0))
    'sum over b, write on the diagonal a'
    """
    words = []
    if shared := _diagonals(source):
        words.append(f"take the {shared}")
    if summed := [block for block in dict.fromkeys(source) if block not in target]:
        words.append("sum over " + letters(summed))
    crossing = [block for block in dict.fromkeys(source) if block in target]
    in_target = [block for block in dict.fromkeys(target) if block in source]
    if crossing != in_target:
        words.append("swap the axes" if len(crossing) == 2 else "reorder the axes")
    if repeated := [block for block in dict.fromkeys(target) if block not in source]:
        words.append("repeat along " + letters(repeated))
    if shared := _diagonals(target):
        words.append(f"write on the {shared}")
    elif (crossing and repeated) or (crossing != in_target and len(crossing) > 2):
        words[-1] += f" as {letters(target)}"  # which axis is which
    return ", ".join(words) or "copy"


def _diagonals(side: Partition) -> str:
    """The letters that several slots of a side share; with more than two slots, also which slots those are."""
    shared = [block for block in dict.fromkeys(side) if side.count(block) > 1]
    of = f" of {letters(side)}" if len(side) > 2 else ""
    return f"diagonal{'s' * (len(shared) > 1)} {', '.join(letters([block]) for block in shared)}{of}" if shared else ""


def outcome(source: Partition, target: Partition, *, means: bool) -> str:
    """The result of the map between slots of these blocks, in words that no other map of the spec has.

    Args:
        source: The block of every source slot.
        target: The block of every target slot, numbered on.
        means: Whether sums are divided by the number of their terms.

    >>> outcome((0, 1), (0, 0), means=True)
    'row means, on the diagonal'
    """
    if source == target and len(set(source)) == len(source):
        return "the input, unchanged"
    if (source, target) == ((0, 1), (1, 0)):
        return "the transpose"
    where = _where(source, target)
    return _contracted(source, target, "mean" if means else "sum") + (where and f", {where}")


def _contracted(source: Partition, target: Partition, mean: str) -> str:
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
    """The diagonal of a side, with its letters where there are several; "" for all entries."""
    n_blocks = len(set(side))
    return "" if n_blocks == len(side) else "the diagonal" + f" {letters(side)}" * (n_blocks > 1)
