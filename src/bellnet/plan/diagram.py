"""Diagrams: the basis of the equivariant linear maps, each a partition of source slots and target slots.

A diagram is a contraction of the source, a permutation of the blocks that cross from source to target, and a broadcast
to the target, that is, a contraction of the target transposed. The words for a diagram are of matrices, with rows,
columns and a diagonal; for tensors of higher order they use the letters of its name.
"""

from dataclasses import dataclass
from functools import cached_property

from bellnet.combinatorics import Partition, canonical
from bellnet.plan.contraction import Contraction, Permutation, letters


@dataclass(frozen=True)
class Diagram:
    """A partition of all slots, source slots first; `source_sets` and `target_sets` are the node sets of the slots.

    `source` and `target` are the numbers of the two tensors, where there are several.

    >>> transpose = Diagram((0, 1, 1, 0), source_sets=(0, 0), target_sets=(0, 0))
    >>> transpose.name, transpose.permutation, transpose.describe()
    ('ab->ba', (1, 0), 'permute the axes')
    """

    partition: Partition
    source_sets: tuple[int, ...]
    target_sets: tuple[int, ...]
    source: int = 0
    target: int = 0

    def __str__(self) -> str:
        return self.name

    @property
    def _sides(self) -> tuple[Partition, Partition]:
        """The blocks of the source slots and of the target slots."""
        order = len(self.source_sets)
        return self.partition[:order], self.partition[order:]

    @property
    def name(self) -> str:
        """Source slots, arrow, target slots; slots with one letter hold the same node."""
        source, target = self._sides
        return f"{letters(source)}->{letters(target)}"

    @cached_property
    def crossing(self) -> tuple[int, ...]:
        """The blocks with slots on both sides."""
        source, target = self._sides
        return tuple(sorted(set(source) & set(target)))

    @cached_property
    def contraction(self) -> Contraction:
        """The contraction of the source that keeps the crossing blocks."""
        return self._contraction(self._sides[0], self.source_sets, self.source)

    @cached_property
    def broadcast(self) -> Contraction:
        """The contraction of the target that keeps the crossing blocks."""
        return self._contraction(self._sides[1], self.target_sets, self.target)

    @cached_property
    def permutation(self) -> Permutation:
        """For every axis of `broadcast` its position among the axes of `contraction`."""
        source, target = self._sides
        block_in_source = dict(zip(self.contraction.blocks, source, strict=True))
        block_in_target = dict(zip(self.broadcast.blocks, target, strict=True))
        axes = [block_in_source[block] for block in self.contraction.kept]
        return tuple(axes.index(block_in_target[block]) for block in self.broadcast.kept)

    def describe(self) -> str:
        """The steps of the map, in words that no other map of the spec has."""
        return steps_in_words(*self._sides)

    def words(self, *, means: bool = True) -> str:
        """The result of the map, in words that no other map of the spec has; `means` if sums are divided, as in layers.

        >>> row_means = Diagram((0, 1, 0, 0), source_sets=(0, 0), target_sets=(0, 0))
        >>> row_means.words(), row_means.describe()
        ('row means, on the diagonal', 'sum over b, place on the diagonal a')
        """
        return outcome(*self._sides, means=means)

    def _contraction(self, labels: Partition, sets: tuple[int, ...], tensor: int) -> Contraction:
        blocks = canonical(labels)
        kept = {block for block, label in zip(blocks, labels, strict=True) if label in self.crossing}
        return Contraction.keeping(blocks, sets, kept, tensor=tensor)


def steps_in_words(source: Partition, target: Partition) -> str:
    """The steps of the map between slots of these blocks, in words that no other map of the spec has.

    >>> steps_in_words((0, 1), (0, 0))
    'sum over b, place on the diagonal a'
    """
    words = []
    if shared := _diagonals(source):
        words.append(f"take the {shared}")
    if summed := [block for block in dict.fromkeys(source) if block not in target]:
        words.append("sum over " + letters(summed))
    crossing = [block for block in dict.fromkeys(source) if block in target]
    in_target = [block for block in dict.fromkeys(target) if block in source]
    if crossing != in_target:
        words.append("permute the axes")
    if repeated := [block for block in dict.fromkeys(target) if block not in source]:
        words.append("repeat along " + letters(repeated))
    if shared := _diagonals(target):
        words.append(f"place on the {shared}")
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
