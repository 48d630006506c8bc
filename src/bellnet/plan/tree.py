"""Trees: all contractions that a plan uses of the tensors on one side, each one step away from another.

Contractions that a level mixes together lie side by side, as the columns of one stack. Walked downwards, from the whole
tensor to its total, a tree reads: every step sums over an axis, or takes a diagonal. Walked upwards it writes: every
step repeats, or puts on a diagonal. The two are transposes of each other.

Several tensors are several roots. Contractions of one rank lie in one stack, whichever tensor they are of; a whole
tensor is a column like others there, a copy of its root.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, NamedTuple

from bellnet.plan.contraction import Contraction


class Branch(NamedTuple):
    """Neighbouring columns of a stack that come by the same step from neighbouring columns of its parent.

    Attributes:
        kind: Whether an axis is summed over, or two are made to agree, or a whole tensor is copied.
        axes: The axis that goes; or the one that stays and the one that goes; none for a copy.
        node_set: The node set of the axis that goes; -1 for a copy.
        parent: The number of the parent stack.
        parent_start: The first of its columns.
        start: The first column here.
        n_columns: How many there are.
    """

    kind: Literal["sum", "diagonal", "copy"]
    axes: tuple[int, ...]
    node_set: int
    parent: int
    parent_start: int
    start: int
    n_columns: int


@dataclass(frozen=True)
class ContractionStack:
    """Contractions of one rank, side by side.

    Attributes:
        contractions: One for each column.
        branches: Where they come from, in the order of the columns; none for the whole tensor.
        axis_sets: The node set of every axis.
        dropped_sets: For every column the node sets that are summed over.
        tensors: For every column which of the tensors it is a contraction of.
    """

    contractions: tuple[Contraction, ...]
    branches: tuple[Branch, ...]
    axis_sets: tuple[int, ...]
    dropped_sets: tuple[tuple[int, ...], ...]
    tensors: tuple[int, ...]

    @classmethod
    def of(
        cls, contractions: tuple[Contraction, ...], place: dict[Contraction, tuple[int, int]], *, is_root: bool = False
    ) -> "ContractionStack":
        """From its contractions; `place` has the stack and column of every contraction."""
        dropped = tuple(contraction.dropped_sets for contraction in contractions)
        branches = () if is_root else _branches(contractions, place)
        return cls(
            contractions,
            branches,
            contractions[0].axis_sets,
            dropped,
            tuple(contraction.tensor for contraction in contractions),
        )

    def width(self, channels: Sequence[int], start: int = 0, stop: int | None = None) -> int:
        """How many numbers its columns have in a row, or some of them, if the tensors have so many channels."""
        return sum(channels[tensor] for tensor in self.tensors[start:stop])


class Root(NamedTuple):
    """One of the tensors of a tree.

    Attributes:
        sets: The node set of every slot.
        axes: The node set of every axis, axes being grouped by node set.
        order: For every axis its slot.
    """

    sets: tuple[int, ...]
    axes: tuple[int, ...]
    order: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Tree:
    """The stacks of one tensor or of several, parents first; the first ones are the whole tensors.

    Attributes:
        roots: The tensors.
        stacks: All of them.
        levels: For every level of the plan the number of its stack.
    """

    roots: tuple[Root, ...]
    stacks: tuple[ContractionStack, ...]
    levels: tuple[int, ...]

    @classmethod
    @lru_cache(maxsize=512)
    def of(cls, shapes: tuple[tuple[int, ...], ...], levels: tuple[tuple[Contraction, ...], ...]) -> "Tree":
        """The tree that has the contractions of every level as a stack, and whatever lies above them.

        The same for the same: what is found for a tree, of a support for instance, then serves both sides of a layer.

        Args:
            shapes: For every tensor the node set of every slot.
            levels: For every level its contractions.
        """
        wholes = [(Contraction.identity(sets, tensor=tensor),) for tensor, sets in enumerate(shapes)]
        on_levels = [contractions for contractions in levels if contractions not in wholes]
        needed = _with_ancestors([contraction for contractions in on_levels for contraction in contractions])
        alone = [
            (contraction,)
            for contraction in needed
            if not any(contraction in contractions for contractions in on_levels)
        ]
        columns = [*wholes, *sorted([*on_levels, *alone], key=lambda contractions: -contractions[0].rank)]
        place = {
            contraction: (number, column)
            for number, contractions in enumerate(columns)
            for column, contraction in enumerate(contractions)
        }
        place.update({whole: (number, 0) for number, (whole,) in enumerate(wholes)})
        stacks = tuple(
            ContractionStack.of(contractions, place, is_root=number < len(wholes))
            for number, contractions in enumerate(columns)
        )
        roots = tuple(Root(whole.sets, whole.axis_sets, whole.kept) for (whole,) in wholes)
        return cls(roots, stacks, tuple(columns.index(contractions) for contractions in levels))


def _with_ancestors(contractions: Iterable[Contraction]) -> list[Contraction]:
    """The contractions and all they are computed from, but for whole tensors."""
    found: dict[Contraction, None] = {}
    for contraction in contractions:
        while contraction.step is not None and contraction not in found:
            found[contraction] = None
            contraction = contraction.step.parent
    return list(found)


def _branches(contractions: tuple[Contraction, ...], place: dict[Contraction, tuple[int, int]]) -> tuple[Branch, ...]:
    branches: list[Branch] = []
    for column, contraction in enumerate(contractions):
        if contraction.step is None:
            branches.append(Branch("copy", (), -1, place[contraction][0], 0, column, 1))
            continue
        kind, axes, node_set = contraction.step.kind, contraction.step.axes, contraction.step.node_set
        parent, parent_column = place[contraction.step.parent]
        last = branches[-1] if branches else None
        alike = last is not None and last[:4] == (kind, axes, node_set, parent)
        if last is not None and alike and parent_column == last.parent_start + last.n_columns:
            branches[-1] = last._replace(n_columns=last.n_columns + 1)
        else:
            branches.append(Branch(kind, axes, node_set, parent, parent_column, column, 1))
    return tuple(branches)
