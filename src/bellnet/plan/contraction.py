"""Contractions: from a tensor over k nodes to a tensor over r nodes, and the trees that compute many of them.

A contraction groups the k axes into blocks and keeps r of them. Forward, it takes the entries whose indices agree
within each block and sums over the dropped blocks. Transposed, it is a broadcast: it expands along the dropped blocks
and places the result on the same diagonal. No tensors here.

A tree has all contractions that a plan uses of the tensors on one side, each one sum or diagonal away from another one.
Contractions that a level mixes together are the columns of one stack; a whole tensor may be a column, too.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from string import ascii_letters
from typing import Literal, NamedTuple

from bellnet.combinatorics import Partition, canonical

Permutation = tuple[int, ...]
"""Axis j of the broadcast is axis permutation[j] of the contraction, as for `torch.permute`."""


def inverse(order: Permutation) -> Permutation:
    """The inverse permutation."""
    return tuple(map(order.index, range(len(order))))


@dataclass(frozen=True)
class Contraction:
    """Which slots agree (`blocks`), over which node set each slot runs (`sets`), and which blocks are kept.

    The kept blocks are the axes of the contracted tensor: grouped by node set, then in order of first appearance.
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
        """The number of axes of the contracted tensor."""
        return len(self.kept)

    @cached_property
    def set_of_block(self) -> dict[int, int]:
        """The node set over which each block runs."""
        return dict(zip(self.blocks, self.sets, strict=True))

    @cached_property
    def dropped(self) -> tuple[int, ...]:
        """The blocks that a contraction sums over and a broadcast expands along."""
        return tuple(block for block in self.set_of_block if block not in self.kept)

    @property
    def dropped_sets(self) -> tuple[int, ...]:
        """The node set of every dropped block."""
        return tuple(self.set_of_block[block] for block in self.dropped)

    @property
    def axis_sets(self) -> tuple[int, ...]:
        """The node set of every axis of the contracted tensor."""
        return tuple(self.set_of_block[block] for block in self.kept)

    @property
    def contraction_name(self) -> str:
        """In letters: "aab->b" takes the diagonal of the first two slots and sums over it."""
        return f"{letters(self.blocks)}->{letters(self.kept)}"

    @property
    def broadcast_name(self) -> str:
        """The transpose, in letters."""
        return f"{letters(self.kept)}->{letters(self.blocks)}"

    @cached_property
    def step(self) -> "Step | None":
        """The one step that computes this contraction from one of higher rank; none for the identity.

        A dropped block is summed over last; where none is dropped, the step is a diagonal of a finer contraction.
        Contractions with the same first steps so share their intermediate results.
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
    """A sum of the parent over one axis, or its diagonal of two axes, which takes the position of the first."""

    kind: Literal["sum", "diagonal"]
    parent: Contraction
    axes: tuple[int, ...]

    @property
    def node_set(self) -> int:
        """The node set of the axis that is removed."""
        return self.parent.axis_sets[self.axes[-1]]


def letters(blocks: Iterable[int]) -> str:
    """Blocks as letters: 0 is a, 1 is b; beyond Z as numbers in brackets."""
    return "".join(ascii_letters[block] if block < len(ascii_letters) else f"[{block}]" for block in blocks)


class StackStep(NamedTuple):
    """Neighbouring columns of a stack, computed by one step from neighbouring columns of its parent."""

    kind: Literal["sum", "diagonal", "copy"]  # a copy is of a whole tensor
    axes: tuple[int, ...]  # the axis that is removed, after the one that stays for a diagonal; none for a copy
    node_set: int  # of the axis that is removed; -1 for a copy
    parent: int  # the number of the parent stack
    parent_start: int  # the first of its columns
    start: int  # the first column here
    n_columns: int


class ContractionStack:
    """Contractions of one rank, side by side as columns, and the steps that compute them; none for a whole tensor."""

    def __init__(self, contractions: tuple[Contraction, ...], steps: tuple[StackStep, ...]) -> None:
        self.contractions = contractions
        self.steps = steps
        self.axis_sets = contractions[0].axis_sets
        self.dropped_sets = tuple(contraction.dropped_sets for contraction in contractions)
        self.tensors = tuple(contraction.tensor for contraction in contractions)

    def width(self, channels: Sequence[int], start: int = 0, stop: int | None = None) -> int:
        """The channels of all columns together, or of some, for tensors with these numbers of channels."""
        return sum(channels[tensor] for tensor in self.tensors[start:stop])


@dataclass(frozen=True, eq=False)
class ContractionTree:
    """The stacks of one tensor or of several, parents first; the first ones are the whole tensors."""

    roots: tuple[Contraction, ...]  # the identity of every tensor, which groups its axes by node set
    stacks: tuple[ContractionStack, ...]
    levels: tuple[int, ...]  # for every level of the plan the number of its stack

    @classmethod
    @lru_cache(maxsize=512)
    def of(cls, shapes: tuple[tuple[int, ...], ...], levels: tuple[tuple[Contraction, ...], ...]) -> "ContractionTree":
        """The tree that has the contractions of every level as a stack, and all that they are computed from.

        Equal arguments give the same object, so that both sides of a layer share what is cached for it. For each tensor
        `shapes` has the node set of every slot.
        """
        wholes = [(Contraction.identity(sets, tensor=tensor),) for tensor, sets in enumerate(shapes)]
        on_levels = [contractions for contractions in levels if contractions not in wholes]
        needed = _with_ancestors([contraction for contractions in on_levels for contraction in contractions])
        between = [
            (contraction,)
            for contraction in needed
            if not any(contraction in contractions for contractions in on_levels)
        ]
        columns = [*wholes, *sorted([*on_levels, *between], key=lambda contractions: -contractions[0].rank)]
        position = {
            contraction: (number, column)
            for number, contractions in enumerate(columns)
            for column, contraction in enumerate(contractions)
        }
        position.update({whole: (number, 0) for number, (whole,) in enumerate(wholes)})
        stacks = tuple(
            ContractionStack(contractions, () if number < len(wholes) else _steps(contractions, position))
            for number, contractions in enumerate(columns)
        )
        return cls(
            tuple(whole for (whole,) in wholes), stacks, tuple(columns.index(contractions) for contractions in levels)
        )


def _with_ancestors(contractions: Iterable[Contraction]) -> list[Contraction]:
    """The contractions and all they are computed from, except whole tensors."""
    found: dict[Contraction, None] = {}
    for contraction in contractions:
        while contraction.step is not None and contraction not in found:
            found[contraction] = None
            contraction = contraction.step.parent
    return list(found)


def _steps(
    contractions: tuple[Contraction, ...], position: dict[Contraction, tuple[int, int]]
) -> tuple[StackStep, ...]:
    """The steps of a stack; `position` has the stack and column of every contraction."""
    steps: list[StackStep] = []
    for column, contraction in enumerate(contractions):
        if contraction.step is None:
            steps.append(StackStep("copy", (), -1, position[contraction][0], 0, column, 1))
            continue
        kind, axes, node_set = contraction.step.kind, contraction.step.axes, contraction.step.node_set
        parent, parent_column = position[contraction.step.parent]
        last = steps[-1] if steps else None
        same_step = last is not None and last[:4] == (kind, axes, node_set, parent)
        if last is not None and same_step and parent_column == last.parent_start + last.n_columns:
            steps[-1] = last._replace(n_columns=last.n_columns + 1)
        else:
            steps.append(StackStep(kind, axes, node_set, parent, parent_column, column, 1))
    return tuple(steps)
