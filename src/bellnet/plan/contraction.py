"""Contractions: the ways to see a tensor over k nodes as a tensor over r nodes.

A contraction groups the k slots into blocks and keeps r of them. Forwards, it takes the entries whose slots agree
inside each block and sums over the blocks it drops. Backwards, it is the transpose: it repeats along the dropped blocks
and writes on that same diagonal. Nothing here touches a tensor.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from string import ascii_letters
from typing import Literal

from bellnet.combinatorics import Partition, canonical


@dataclass(frozen=True)
class Contraction:
    """Which slots agree (`blocks`), over which node set each slot runs (`sets`), and which blocks are kept.

    The kept blocks are the axes of the folded tensor: grouped by node set, then in order of first appearance.
    `tensor` is the number of the tensor, among several on one side of a map.

    >>> contraction = Contraction(blocks=(0, 1), sets=(0, 0), kept=(0,))
    >>> contraction.contraction_name, contraction.broadcast_name, contraction.rank
    ('ab->a', 'a->ab', 1)
    """

    blocks: Partition
    sets: tuple[int, ...]
    kept: tuple[int, ...]
    tensor: int = 0

    @classmethod
    def keeping(
        cls, blocks: Partition, sets: tuple[int, ...], kept: Iterable[int], *, tensor: int = 0
    ) -> "Contraction":
        """The contraction that keeps these blocks, its axes put in order."""
        set_of = dict(zip(blocks, sets, strict=True))
        return cls(blocks, sets, tuple(sorted(kept, key=lambda block: (set_of[block], block))), tensor)

    @classmethod
    def identity(cls, sets: tuple[int, ...], *, tensor: int = 0) -> "Contraction":
        """The contraction that changes nothing: every slot its own block, all of them kept."""
        blocks = tuple(range(len(sets)))
        return cls.keeping(blocks, sets, blocks, tensor=tensor)

    @property
    def rank(self) -> int:
        """The number of axes of the folded tensor."""
        return len(self.kept)

    @cached_property
    def set_of_block(self) -> dict[int, int]:
        """The node set over which each block runs."""
        return dict(zip(self.blocks, self.sets, strict=True))

    @cached_property
    def dropped(self) -> tuple[int, ...]:
        """The blocks that are summed over, or repeated along."""
        return tuple(block for block in self.set_of_block if block not in self.kept)

    @property
    def dropped_sets(self) -> tuple[int, ...]:
        """The node set of every block that is summed over."""
        return tuple(self.set_of_block[block] for block in self.dropped)

    @property
    def axis_sets(self) -> tuple[int, ...]:
        """The node set of every axis of the folded tensor."""
        return tuple(self.set_of_block[block] for block in self.kept)

    @property
    def contraction_name(self) -> str:
        """Forwards, in letters: "aab->b" takes the diagonal of the first two slots and sums over it."""
        return f"{letters(self.blocks)}->{letters(self.kept)}"

    @property
    def broadcast_name(self) -> str:
        """Backwards, in letters."""
        return f"{letters(self.kept)}->{letters(self.blocks)}"

    @cached_property
    def step(self) -> "Step | None":
        """The one step that computes this contraction from one of higher rank; none for the identity.

        A dropped block is summed over last; where none is dropped, two blocks of a finer contraction are made to agree.
        Contractions that begin alike so share their beginnings.
        """
        if self.dropped:
            block = self.dropped[0]
            parent = Contraction.keeping(self.blocks, self.sets, (*self.kept, block), tensor=self.tensor)
            return Step("sum", parent, (parent.kept.index(block),))
        for slot in reversed(range(len(self.blocks))):
            block = self.blocks[slot]
            if self.blocks.index(block) < slot:
                apart = canonical(-1 if other == slot else label for other, label in enumerate(self.blocks))
                parent = Contraction.keeping(apart, self.sets, set(apart), tensor=self.tensor)
                first, second = parent.kept.index(apart[self.blocks.index(block)]), parent.kept.index(apart[slot])
                return Step("diagonal", parent, (first, second))
        return None


@dataclass(frozen=True)
class Step:
    """How it comes from its parent: by a sum over one axis, or by the diagonal of two (kept at the first)."""

    kind: Literal["sum", "diagonal"]
    parent: Contraction
    axes: tuple[int, ...]

    @property
    def node_set(self) -> int:
        """The node set of the axis that goes."""
        return self.parent.axis_sets[self.axes[-1]]


def letters(blocks: Iterable[int]) -> str:
    """Blocks as letters: 0 is a, 1 is b; beyond Z as numbers in brackets."""
    return "".join(ascii_letters[block] if block < len(ascii_letters) else f"[{block}]" for block in blocks)
