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
from bellnet.execute.shadows import Shadow, Shadows
from bellnet.plan import Tree
from bellnet.tensors import Support

_Joint = tuple[tuple[Incidence, ...], tuple[int, ...], int]
"""Incidences whose rows stand in one matrix: for each its first row there, and the step from each row to its next."""


class Column(NamedTuple):
    """One fold of a bundle, and which of its tuples belong to which of the fold that it is moved to or from."""

    incidence: Incidence
    bundle: Tensor
    number: int
    n_columns: int

    @property
    def width(self) -> int:
        """The number of channels."""
        return self.bundle.shape[-1] // self.n_columns

    @property
    def values(self) -> Tensor:
        """The fold by itself, as a view."""
        return self.bundle.narrow(-1, self.number * self.width, self.width)


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
    """Reads and writes the folds of values on the tuples of a support."""

    def __init__(self, tree: Tree, support: Support) -> None:
        self.tree = tree
        self.columns = [len(bundle.folds) for bundle in tree.bundles]
        self.shadows = Shadows(support, tree)
        self._sums: dict[_Joint, JointSum] = {}
        self._hands: dict[_Joint, JointIncidence] = {}

    @classmethod
    def on(cls, tree: Tree, support: Support) -> "ListedSide":
        """The side of a tree, kept with the support."""
        return support.once(("side", tree), lambda: cls(tree, support))

    def shadow(self, number: int) -> Shadow:
        """The tuples of a bundle."""
        return self.shadows.bundles[number]

    def read(self, whole: Tensor) -> list[Tensor]:
        """All bundles, the whole tensor first; sums are not divided."""
        bundles = [whole.float() if whole.dtype in (torch.float16, torch.bfloat16) else whole]
        for number, bundle in enumerate(self.tree.bundles[1:], 1):
            columns = []
            for branch in bundle.branches:
                for column in range(branch.n_columns):
                    incidence = self.shadows.moves[number, branch.start + column]
                    place = branch.parent_start + column
                    columns.append(Column(incidence, bundles[branch.parent], place, self.columns[branch.parent]))
            bundles.append(self._add_up(columns))
        return bundles

    def _add_up(self, columns: list[Column]) -> Tensor:
        incidences = [column.incidence for column in columns]
        apart = any(one.is_one for one in incidences) or all(one.is_empty for one in incidences)
        if apart or len(columns) == 1 or not _is_one_bundle(columns):
            folds = [column.incidence.add_up(column.values) for column in columns]
            return folds[0] if len(folds) == 1 else torch.cat(folds, -1)
        rows, joint = _one_below_the_other(columns)
        if joint not in self._sums:
            self._sums[joint] = JointSum(*joint)
        return self._sums[joint].add_up(rows)

    def write(self, bundles: list[Tensor | None]) -> Begun:
        """The transpose of reading, up to the whole tensor: all bundles but that one may be written into."""
        arriving: list[list[tuple[int, str, Column]]] = [[] for _ in bundles]
        for number in range(len(bundles) - 1, 0, -1):
            total = bundles[number]
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
                width = total.shape[-1] // self.columns[number]
                for place, kind, column in arriving[number]:
                    under = total.narrow(-1, place * width, width)
                    if kind == "sum":
                        column.incidence.add_handed_out(under, column.values)
                    else:
                        column.incidence.add_to_parts(column.values, under)
            for branch in self.tree.bundles[number].branches:
                for offset in range(branch.n_columns):
                    place = branch.start + offset
                    moved = Column(self.shadows.moves[number, place], total, place, self.columns[number])
                    arriving[branch.parent].append((branch.parent_start + offset, branch.kind, moved))
        return self._begun(arriving[0])

    def _begun(self, arriving: list[tuple[int, str, Column]]) -> Begun:
        """What arrives at one fold that nothing was written to yet."""
        sums = [column for _, kind, column in arriving if kind == "sum"]
        diagonals = [column for _, kind, column in arriving if kind == "diagonal"]
        if not sums or sums[0].incidence.is_empty:
            return Begun(None, diagonals)
        rows, joint = _one_below_the_other(sums)
        if joint not in self._hands:
            self._hands[joint] = JointIncidence(*joint)
        return Begun(partial(self._hands[joint].hand_out, rows), diagonals)


def _is_one_bundle(columns: Sequence[Column]) -> bool:
    return all(column.bundle is columns[0].bundle for column in columns)


def _one_below_the_other(columns: Sequence[Column]) -> tuple[Tensor, _Joint]:
    """Folds as the rows of one matrix, and where each stands in it; nothing is copied if they are in one bundle."""
    incidences = tuple(column.incidence for column in columns)
    if _is_one_bundle(columns):
        together, several = columns[0].bundle, columns[0].n_columns
        rows = together.view(len(together) * several, columns[0].width)
        return rows, (incidences, tuple(column.number for column in columns), several)
    starts = accumulate((len(column.bundle) for column in columns[:-1]), initial=0)
    return torch.cat([column.values for column in columns]), (incidences, tuple(starts), 1)
