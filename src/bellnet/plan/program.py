"""Programs: what an executor is handed, a flat list of numbered steps.

A program can be transposed, and the transposed program is its own gradient.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple

from bellnet.plan.diagram import Swap
from bellnet.plan.fold import Fold
from bellnet.plan.level import Level


class ReadStep(NamedTuple):
    """Compute one fold of the source from an earlier one; step i makes fold i + 1, and fold 0 is the whole tensor."""

    kind: Literal["sum", "diagonal"]
    parent: int
    axes: tuple[int, ...]
    node_set: int


class WriteStep(NamedTuple):
    """Finish one fold of the target and hand it on to its parent, a later one; the last is the whole tensor.

    `level` and `column` say which level mixes into this fold, and at which of its columns; level -1 is none.
    """

    level: int
    column: int
    sets: tuple[int, ...]
    kind: Literal["sum", "diagonal", "done"]
    parent: int
    axes: tuple[int, ...]
    node_set: int


@dataclass(frozen=True, eq=False)
class Program:
    """The steps of a plan. Node sets go by number.

    `mean` says where sums become means: dividing by the number of terms belongs to the reads, and so to the writes
    of the transposed program. None divides nowhere. `read_together` are the numbers of the folds that are read from
    others, those of a level together, those of no level alone; what a fold is read from comes before it.
    """

    source: tuple[int, ...]
    target: tuple[int, ...]
    levels: tuple[Level, ...]
    mean: Literal["reads", "writes"] | None
    source_order: Swap
    target_order: Swap
    read_steps: tuple[ReadStep, ...]
    level_reads: tuple[tuple[int, ...], ...]
    read_together: tuple[tuple[int, ...], ...]
    level_swaps: tuple[tuple[Swap, ...], ...]
    write_steps: tuple[WriteStep, ...]

    @classmethod
    def of(
        cls,
        source: tuple[int, ...],
        target: tuple[int, ...],
        levels: tuple[Level, ...],
        mean: Literal["reads", "writes"] | None,
    ) -> "Program":
        """Number the steps that these levels need."""
        read_folds = _with_ancestors((fold for level in levels for fold in level.reads), source)[::-1]
        write_folds = _with_ancestors((fold for level in levels for fold in level.writes), target)
        numbers = {fold: number for number, fold in enumerate(read_folds)}
        level_reads = tuple(tuple(numbers[fold] for fold in level.reads) for level in levels)
        target_axes = Fold.identity(target).kept
        return cls(
            source,
            target,
            levels,
            mean,
            source_order=Fold.identity(source).kept,
            target_order=tuple(target_axes.index(slot) for slot in range(len(target))),
            read_steps=tuple(_read_step(fold, numbers) for fold in read_folds[1:]),
            level_reads=level_reads,
            read_together=_together(level_reads, len(read_folds)),
            level_swaps=tuple(level.swaps for level in levels),
            write_steps=_write_steps(levels, write_folds),
        )

    @property
    def target_axes(self) -> tuple[int, ...]:
        """The node set of every axis of what a run returns, before `target_order` puts the axes into their slots."""
        return tuple(sorted(self.target))

    @cached_property
    def transposed(self) -> "Program":
        """The program of the transposed map, which takes gradients at the target to gradients at the source."""
        mean: Literal["reads", "writes"] | None = None
        if self.mean is not None:
            mean = "writes" if self.mean == "reads" else "reads"
        return Program.of(self.target, self.source, tuple(level.transposed() for level in self.levels), mean)


def _with_ancestors(folds: Iterable[Fold], sets: tuple[int, ...]) -> list[Fold]:
    """The folds and all they are computed from, lowest rank first; the identity comes last."""
    found = {Fold.identity(sets): None}
    for fold in folds:
        while fold not in found:
            found[fold] = None
            if fold.step is not None:
                fold = fold.step.parent
    return sorted(found, key=lambda fold: fold.rank)


def _together(level_reads: tuple[tuple[int, ...], ...], n_folds: int) -> tuple[tuple[int, ...], ...]:
    on_levels = [numbers for numbers in level_reads if numbers != (0,)]
    alone = set(range(1, n_folds)).difference(*on_levels)
    return tuple(sorted([*on_levels, *((number,) for number in alone)]))  # numbers rise as the rank falls


def _read_step(fold: Fold, numbers: dict[Fold, int]) -> ReadStep:
    step = fold.step
    assert step is not None
    return ReadStep(step.kind, numbers[step.parent], step.axes, step.node_set)


def _write_steps(levels: tuple[Level, ...], folds: list[Fold]) -> tuple[WriteStep, ...]:
    numbers = {fold: number for number, fold in enumerate(folds)}
    places = {fold: (number, column) for number, level in enumerate(levels) for column, fold in enumerate(level.writes)}
    found = []
    for fold in folds:
        level, column = places.get(fold, (-1, 0))
        step = fold.step
        if step is None:
            found.append(WriteStep(level, column, fold.axis_sets, "done", -1, (), -1))
        else:
            parent = numbers[step.parent]
            found.append(WriteStep(level, column, fold.axis_sets, step.kind, parent, step.axes, step.node_set))
    return tuple(found)
