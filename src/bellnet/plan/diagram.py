"""Diagrams: the basis of the equivariant linear maps, each a partition of source slots and target slots.

A diagram is a contraction of the source, a permutation of the blocks that cross from source to target, and a broadcast
to the target, that is, a contraction of the target transposed.
"""

from dataclasses import dataclass
from functools import cached_property

from bellnet.combinatorics import Partition, canonical
from bellnet.plan.contraction import Contraction, letters
from bellnet.plan.describe import outcome, steps_in_words

Permutation = tuple[int, ...]
"""Axis j of the broadcast is axis permutation[j] of the contraction, as for `torch.permute`."""


@dataclass(frozen=True)
class Diagram:
    """A partition of all slots, source slots first; `source_sets` and `target_sets` are the node sets of the slots.

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
        """The result of the map, in words that no other map of the spec has.

        Args:
            means: Whether sums are divided by the number of their terms, as layers do by default.

        >>> row_means = Diagram((0, 1, 0, 0), source_sets=(0, 0), target_sets=(0, 0))
        >>> row_means.words(), row_means.describe()
        ('row means, on the diagonal', 'sum over b, write on the diagonal a')
        """
        return outcome(*self._sides, means=means)

    def _contraction(self, labels: Partition, sets: tuple[int, ...], tensor: int) -> Contraction:
        blocks = canonical(labels)
        kept = {block for block, label in zip(blocks, labels, strict=True) if label in self.crossing}
        return Contraction.keeping(blocks, sets, kept, tensor=tensor)
