"""The folds of sparse tensors, which hold values for listed tuples of nodes.

A bundle is (tuples of its shadow, columns * channels). A sum adds up the tuples that are equal once a slot is dropped,
its transpose hands out; a diagonal selects tuples, its transpose adds to them. A row of several columns is several rows
of one column, so that all columns are moved in one pass.
"""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import accumulate
from typing import NamedTuple

import torch
from torch import Tensor

from bellnet.execute.incidence import Incidence, JointIncidence, JointSum
from bellnet.execute.pool import Share
from bellnet.execute.shadows import Shadow, Shadows
from bellnet.plan import Tree
from bellnet.tensors import Support

Widths = tuple[int, ...]
"""The channels of every tensor."""

_Joint = tuple[tuple[Incidence, ...], tuple[int, ...], int]
"""Incidences whose rows stand in one matrix: for each its first row there, and the step from each row to its next."""


class Column(NamedTuple):
    """One fold of a bundle, and which of its tuples belong to which of the fold that it is moved to or from.

    Attributes:
        incidence: What belongs to what.
        bundle: All folds of the bundle.
        start: The first of its numbers in a row.
        width: How many numbers it has there, that is the number of channels.
        number: If all columns are so wide, which one it is and how many there are; else None.
    """

    incidence: Incidence
    bundle: Tensor
    start: int
    width: int
    number: tuple[int, int] | None

    @property
    def values(self) -> Tensor:
        """The fold by itself, as a view."""
        return self.bundle.narrow(-1, self.start, self.width)


class Begun(NamedTuple):
    """What lower folds give to the whole tensor.

    Attributes:
        at: The sum of what they hand out to all tuples, or to some of them; None if that is nothing.
        on_diagonals: What is to be added to some tuples at the end.
    """

    at: Callable[[slice | None], Tensor] | None
    on_diagonals: list[Column]

    def finish(self, whole: Tensor) -> Tensor:
        """Add what lies on diagonals, in place."""
        for column in self.on_diagonals:
            column.incidence.add_to_parts(column.values, whole)
        return whole


class ListedSide:
    """Reads and writes the folds of values on the tuples of a support, or of several."""

    def __init__(self, tree: Tree, supports: Sequence[Support]) -> None:
        self.tree, self.n_roots = tree, len(tree.roots)
        self.shadows = Shadows(supports, tree)
        self._sums: dict[_Joint, JointSum] = {}
        self._hands: dict[_Joint, JointIncidence] = {}

    @classmethod
    def on(cls, tree: Tree, supports: Sequence[Support]) -> "ListedSide":
        """The side of a tree, kept with the supports."""
        first, *others = supports
        return first.once_with(others, ("side", tree), lambda: cls(tree, supports))

    def shadow(self, number: int) -> Shadow:
        """The tuples of a bundle."""
        return self.shadows.bundles[number]

    def memory(self) -> list[Share]:
        """For every whole tensor, if it is large."""
        return [self.shadow(root).memory for root in range(self.n_roots)]

    def _column(self, moved: tuple[int, int], bundle: Tensor, place: tuple[int, int], channels: Widths) -> Column:
        """A fold at a place, a bundle and a column there, that is moved as another place says."""
        number, column = place
        within = self.tree.bundles[number]
        even = len(set(within.tensors)) == 1 or len(set(channels)) == 1
        start, width = within.width(channels, 0, column), channels[within.tensors[column]]
        return Column(self.shadows.moves[moved], bundle, start, width, (column, len(within.folds)) if even else None)

    def read(self, wholes: Sequence[Tensor]) -> list[Tensor]:
        """All bundles, the whole tensors first; sums are not divided."""
        channels = tuple([whole.shape[-1] for whole in wholes])
        bundles = [whole.float() if whole.dtype in (torch.float16, torch.bfloat16) else whole for whole in wholes]
        for number, bundle in enumerate(self.tree.bundles[self.n_roots :], self.n_roots):
            runs: list[list[Column]] = []
            for branch in bundle.branches:
                for column in range(branch.n_columns):
                    place = branch.parent, branch.parent_start + column
                    moved = self._column((number, branch.start + column), bundles[branch.parent], place, channels)
                    if runs and runs[-1][0].bundle is moved.bundle:
                        runs[-1].append(moved)
                    else:
                        runs.append([moved])
            parts = [part for run in runs for part in self._add_up(run)]
            bundles.append(parts[0] if len(parts) == 1 else torch.cat(parts, -1))
        return bundles

    def _add_up(self, columns: list[Column]) -> list[Tensor]:
        """What becomes of columns of one bundle, in pieces that stand side by side."""
        incidences = [column.incidence for column in columns]
        apart = any(one.is_one or one.is_same for one in incidences) or all(one.is_empty for one in incidences)
        if apart or len(columns) == 1 or columns[0].number is None:
            return [column.incidence.add_up(column.values) for column in columns]
        rows, joint = _one_below_the_other(columns)
        if joint not in self._sums:
            self._sums[joint] = JointSum(*joint)
        return [self._sums[joint].add_up(rows)]

    def write(self, bundles: list[Tensor | None], channels: Widths) -> list[Begun]:
        """The transpose of reading, up to the whole tensors: all bundles but those may be written into."""
        arriving: list[list[tuple[int, str, Column]]] = [[] for _ in bundles]
        for number in range(len(bundles) - 1, self.n_roots - 1, -1):
            total, bundle = bundles[number], self.tree.bundles[number]
            if total is None:
                if not arriving[number]:
                    continue
                begun = self._begun(arriving[number])
                first = arriving[number][0][2]
                total = (
                    first.values.new_zeros(self.shadow(number).n_rows, first.width)
                    if begun.at is None
                    else begun.at(None)
                )
                begun.finish(total)
            else:
                for place, kind, column in arriving[number]:
                    under = total.narrow(-1, bundle.width(channels, 0, place), column.width)
                    if kind == "diagonal":
                        column.incidence.add_to_parts(column.values, under)
                    else:
                        column.incidence.add_handed_out(under, column.values)
            for branch in bundle.branches:
                for offset in range(branch.n_columns):
                    here = number, branch.start + offset
                    moved = self._column(here, total, here, channels)
                    arriving[branch.parent].append((branch.parent_start + offset, branch.kind, moved))
        return [self._begun(terms) for terms in arriving[: self.n_roots]]

    def _begun(self, arriving: list[tuple[int, str, Column]]) -> Begun:
        """What arrives at one fold that nothing was written to yet."""
        sums = [column for _, kind, column in arriving if kind != "diagonal"]
        diagonals = [column for _, kind, column in arriving if kind == "diagonal"]
        if not sums or sums[0].incidence.is_empty:
            return Begun(None, diagonals)
        rows, joint = _one_below_the_other(sums)
        if joint not in self._hands:
            self._hands[joint] = JointIncidence(*joint)
        return Begun(partial(self._hands[joint].hand_out, rows), diagonals)


def _one_below_the_other(columns: Sequence[Column]) -> tuple[Tensor, _Joint]:
    """Folds as the rows of one matrix, and where each stands in it; nothing is copied if they are in one bundle."""
    incidences = tuple(column.incidence for column in columns)
    numbers = [column.number for column in columns if column.number is not None and column.bundle is columns[0].bundle]
    if len(numbers) == len(columns):
        together, several = columns[0].bundle, numbers[0][1]
        rows = together.view(len(together) * several, columns[0].width)
        return rows, (incidences, tuple(number for number, _ in numbers), several)
    starts = accumulate((len(column.bundle) for column in columns[:-1]), initial=0)
    return torch.cat([column.values for column in columns]), (incidences, tuple(starts), 1)
