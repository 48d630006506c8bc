"""Diagrams: the equivariant maps themselves, each a partition of source slots and target slots.

A diagram is a read, a permutation and a write: a contraction of the source, a reordering of the blocks that cross from
source to target, and a contraction of the target used backwards.
"""

from dataclasses import dataclass
from functools import cached_property

from bellnet.combinatorics import Partition, canonical
from bellnet.plan.contraction import Contraction, letters
from bellnet.plan.words import outcome

Permutation = tuple[int, ...]
"""Axis j of what is written is axis swap[j] of what was read."""


@dataclass(frozen=True)
class Diagram:
    """A partition of all slots, source slots first; `source_sets` and `target_sets` say over what they run.

    `source` and `target` are the numbers of the two tensors, where there are several.

    >>> transpose = Diagram((0, 1, 1, 0), source_sets=(0, 0), target_sets=(0, 0))
    >>> transpose.name, transpose.permutation, transpose.describe()
    ('ab->ba', (1, 0), 'swap the axes')
    """

    partition: Partition
    source_sets: tuple[int, ...]
    target_sets: tuple[int, ...]
    source: int = 0
    target: int = 0

    def __str__(self) -> str:
        return self.name

    @property
    def name(self) -> str:
        """Source slots, arrow, target slots; slots with one letter hold the same node."""
        order = len(self.source_sets)
        return f"{letters(self.partition[:order])}->{letters(self.partition[order:])}"

    @cached_property
    def crossing(self) -> tuple[int, ...]:
        """The blocks with slots on both sides."""
        order = len(self.source_sets)
        return tuple(sorted(set(self.partition[:order]) & set(self.partition[order:])))

    @cached_property
    def contraction(self) -> Contraction:
        """The contraction of the source that keeps the crossing blocks."""
        return self._fold(self.partition[: len(self.source_sets)], self.source_sets, self.source)

    @cached_property
    def broadcast(self) -> Contraction:
        """The contraction of the target that keeps the crossing blocks."""
        return self._fold(self.partition[len(self.source_sets) :], self.target_sets, self.target)

    @cached_property
    def permutation(self) -> Permutation:
        """Where each axis of `write` is found among the axes of `read`."""
        order = len(self.source_sets)
        source, target = self.partition[:order], self.partition[order:]
        block_of_read = dict(zip(self.contraction.blocks, source, strict=True))
        block_of_write = dict(zip(self.broadcast.blocks, target, strict=True))
        axes = [block_of_read[block] for block in self.contraction.kept]
        return tuple(axes.index(block_of_write[block]) for block in self.broadcast.kept)

    def describe(self) -> str:
        """What the map does step by step, in words that no other map of the spec has."""
        order = len(self.source_sets)
        source, target = self.partition[:order], self.partition[order:]
        words = []
        if shared := _diagonals(source):
            words.append(f"take the {shared}")
        if summed := [block for block in dict.fromkeys(source) if block not in self.crossing]:
            words.append("sum over " + letters(summed))
        carried, written = (
            [block for block in dict.fromkeys(side) if block in self.crossing] for side in (source, target)
        )
        if carried != written:
            words.append("swap the axes" if len(carried) == 2 else "reorder the axes")
        if repeated := [block for block in dict.fromkeys(target) if block not in self.crossing]:
            words.append("repeat along " + letters(repeated))
        if shared := _diagonals(target):
            words.append(f"write on the {shared}")
        elif (carried and repeated) or (carried != written and len(carried) > 2):
            words[-1] += f" as {letters(target)}"  # which axis is whose
        return ", ".join(words) or "copy"

    def words(self, *, means: bool = True) -> str:
        """What comes out, in words that no other map of the spec has.

        Args:
            means: Whether sums are divided by the number of their terms, as layers do unless told otherwise.

        >>> row_means = Diagram((0, 1, 0, 0), source_sets=(0, 0), target_sets=(0, 0))
        >>> row_means.words(), row_means.describe()
        ('row means, on the diagonal', 'sum over b, write on the diagonal a')
        """
        order = len(self.source_sets)
        return outcome(self.partition[:order], self.partition[order:], means=means)

    def _fold(self, labels: Partition, sets: tuple[int, ...], tensor: int) -> Contraction:
        blocks = canonical(labels)
        kept = {block for block, label in zip(blocks, labels, strict=True) if label in self.crossing}
        return Contraction.keeping(blocks, sets, kept, tensor=tensor)


def _diagonals(side: Partition) -> str:
    """The letters that several slots of a side have; with more than two slots, also which slots those are."""
    shared = [block for block in dict.fromkeys(side) if side.count(block) > 1]
    of = f" of {letters(side)}" if len(side) > 2 else ""
    return f"diagonal{'s' * (len(shared) > 1)} {', '.join(letters([block]) for block in shared)}{of}" if shared else ""
