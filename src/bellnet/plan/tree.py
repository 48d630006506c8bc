"""Trees: all folds of one tensor that a plan uses, each one step away from another.

Folds that a level mixes together lie side by side, as the columns of one bundle. Walked downwards, from the whole
tensor to its total, a tree reads: every step sums over an axis, or takes a diagonal. Walked upwards it writes: every
step repeats, or puts on a diagonal. The two are transposes of each other.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, NamedTuple

from bellnet.plan.fold import Fold


class Branch(NamedTuple):
    """Neighbouring columns of a bundle that come by the same step from neighbouring columns of its parent.

    Attributes:
        kind: Whether an axis is summed over, or two are made to agree.
        axes: The axis that goes; or the one that stays and the one that goes.
        node_set: The node set of the axis that goes.
        parent: The number of the parent bundle.
        parent_start: The first of its columns.
        start: The first column here.
        n_columns: How many there are.
    """

    kind: Literal["sum", "diagonal"]
    axes: tuple[int, ...]
    node_set: int
    parent: int
    parent_start: int
    start: int
    n_columns: int


@dataclass(frozen=True)
class Bundle:
    """Folds of one rank, side by side.

    Attributes:
        folds: One for each column.
        branches: Where they come from, in the order of the columns; none for the whole tensor.
        axis_sets: The node set of every axis.
        dropped_sets: For every column the node sets that are summed over.
    """

    folds: tuple[Fold, ...]
    branches: tuple[Branch, ...]
    axis_sets: tuple[int, ...]
    dropped_sets: tuple[tuple[int, ...], ...]

    @classmethod
    def of(cls, folds: tuple[Fold, ...], place: dict[Fold, tuple[int, int]]) -> "Bundle":
        """From its folds; `place` has the bundle and column of every fold."""
        dropped = tuple(fold.dropped_sets for fold in folds)
        return cls(folds, _branches(folds, place), folds[0].axis_sets, dropped)


@dataclass(frozen=True, eq=False)
class Tree:
    """The bundles of one tensor, parents first; bundle 0 is the whole tensor.

    Attributes:
        sets: The node set of every slot.
        bundles: All of them.
        levels: For every level of the plan the number of its bundle.
        axes: The node set of every axis of the whole tensor, axes being grouped by node set.
        order: For every axis of the whole tensor its slot.
    """

    sets: tuple[int, ...]
    bundles: tuple[Bundle, ...]
    levels: tuple[int, ...]
    axes: tuple[int, ...]
    order: tuple[int, ...]

    @classmethod
    @lru_cache(maxsize=512)
    def of(cls, sets: tuple[int, ...], levels: tuple[tuple[Fold, ...], ...]) -> "Tree":
        """The tree that has the folds of every level as a bundle, and whatever lies above them.

        The same for the same: what is found for a tree, of a support for instance, then serves both sides of a layer.
        """
        whole = Fold.identity(sets)
        on_levels = [folds for folds in levels if folds != (whole,)]
        needed = _with_ancestors([fold for folds in on_levels for fold in folds], whole)
        alone = [(fold,) for fold in needed if not any(fold in folds for folds in on_levels)]
        columns = [(whole,), *sorted([*on_levels, *alone], key=lambda folds: -folds[0].rank)]
        place = {fold: (number, column) for number, folds in enumerate(columns) for column, fold in enumerate(folds)}
        bundles = tuple(Bundle.of(folds, place) for folds in columns)
        return cls(sets, bundles, tuple(place[folds[0]][0] for folds in levels), whole.axis_sets, whole.kept)


def _with_ancestors(folds: Iterable[Fold], whole: Fold) -> list[Fold]:
    """The folds and all they are computed from, but for the whole tensor."""
    found: dict[Fold, None] = {}
    for fold in folds:
        while fold != whole and fold not in found:
            found[fold] = None
            assert fold.step is not None
            fold = fold.step.parent
    return list(found)


def _branches(folds: tuple[Fold, ...], place: dict[Fold, tuple[int, int]]) -> tuple[Branch, ...]:
    branches: list[Branch] = []
    for column, fold in enumerate(folds):
        if fold.step is None:
            continue
        kind, axes, node_set = fold.step.kind, fold.step.axes, fold.step.node_set
        parent, parent_column = place[fold.step.parent]
        last = branches[-1] if branches else None
        alike = last is not None and last[:4] == (kind, axes, node_set, parent)
        if last is not None and alike and parent_column == last.parent_start + last.n_columns:
            branches[-1] = last._replace(n_columns=last.n_columns + 1)
        else:
            branches.append(Branch(kind, axes, node_set, parent, parent_column, column, 1))
    return tuple(branches)
