"""The sparse executor: folds of tensors that hold values for listed tuples of nodes.

A folded tensor is (tuples of its shadow, channels). A sum adds up the tuples that are equal once a slot is dropped,
its transpose hands out; a diagonal selects tuples, its transpose adds to them; a swap looks every tuple up in another
order, and what is not listed is zero. Where everything stands depends on the supports alone and is found once.
"""

from collections.abc import Callable, Sequence
from functools import cached_property, partial
from itertools import accumulate
from typing import NamedTuple
from weakref import WeakKeyDictionary

import torch
from torch import Tensor

from bellnet.execute.column import Column
from bellnet.execute.executor import Place
from bellnet.execute.incidence import Incidence, JointIncidence, JointSum
from bellnet.execute.shadows import Shadows
from bellnet.execute.transforms import is_watched
from bellnet.plan import Program, ReadStep, Swap, WriteStep
from bellnet.tensors import Support
from bellnet.tensors.keeping import making_constants

_Joint = tuple[tuple[Incidence, ...], tuple[int, ...], int]
"""Incidences whose rows stand in one matrix: for each its first row there, and the step from each row to its next."""
PIECE_BYTES, FEWEST_ROWS = 2**21, 1024
"""All that a level adds to its rows is added up for so many at once, while the processor's cache holds them. The number
of rows is a multiple of 16."""


class Supports(NamedTuple):
    """The tuples that an input lists, those that the result is to list, and by what means divide.

    Attributes:
        lengths: The number of nodes of every node set, if all graphs have the same; else None.
        listed: Whether a mean divides by the number of listed tuples, or by that of all tuples of nodes.
    """

    source: Support
    target: Support
    lengths: tuple[int, ...] | None
    listed: bool

    @property
    def common_lengths(self) -> tuple[int, ...] | None:
        """The numbers of nodes that every mean divides by; None if they differ."""
        return None if self.listed else self.lengths


class Moved(NamedTuple):
    """A fold that is to be read or written: its rows, and which tuples of the other fold they belong to."""

    incidence: Incidence
    rows: Column


class Listed:
    """The moves of the sparse executor, for the supports of source and target.

    Args:
        program: What it runs.
        source: The shadows of the source.
        target: The shadows of the target.
        summed: The shadows on which sums are divided: those of the source, or, transposed, of the target.
        listed: Whether a mean divides by the number of listed tuples, or by that of all tuples of nodes.
    """

    def __init__(self, program: Program, source: Shadows, target: Shadows, summed: Shadows, *, listed: bool) -> None:
        self.program = program
        self.source, self.target, self.summed = source, target, summed
        self.listed = listed
        places = zip(program.write_steps, reversed(program.transposed.read_steps), strict=False)
        self._writes: dict[WriteStep, Incidence] = {step: target.moves[read] for step, read in places}
        self._factors: dict[tuple[int, torch.dtype], Tensor | None] = {}
        self._joint_sums: dict[_Joint, JointSum] = {}
        self._joints: dict[_Joint, JointIncidence] = {}
        self._lookups: dict[tuple[int, Swap], Incidence | None] = {}

    @classmethod
    def on(cls, program: Program, supports: Supports) -> "Listed":
        """The executor for two supports, kept with the first as long as the second is there."""
        source, target, _, listed = supports
        kept: WeakKeyDictionary[Support, dict[tuple[Program, bool], Listed]]
        kept = source.once("executors", WeakKeyDictionary)
        executors = kept.setdefault(target, {})
        if (program, listed) not in executors:
            with making_constants():
                read = _shadows(source, program)
                executors[program, listed] = cls(
                    program, read, _shadows(target, program.transposed), read, listed=listed
                )
        return executors[program, listed]

    @cached_property
    def transposed(self) -> "Listed":
        """The executor of the transposed program."""
        return Listed(self.program.transposed, self.target, self.source, self.summed, listed=self.listed)

    def read(self, step: ReadStep, parent: Column, *, mean: bool) -> Moved:
        """What folds the parent once more."""
        return Moved(self.source.moves[step], parent)

    def side_by_side(self, reads: Sequence[Moved]) -> tuple[Tensor, list[Column]]:
        """Folds in one tensor, added up in one pass where they are read from one tensor."""
        incidences = [read.incidence for read in reads]
        apart = is_watched() or any(one.is_one for one in incidences) or all(one.is_empty for one in incidences)
        if apart or len(reads) == 1 or not _is_one_tensor(reads):
            folds = [read.incidence.add_up(_summable(read.rows.tensor)) for read in reads]
            together = folds[0] if len(folds) == 1 else torch.cat(folds, -1)
        else:
            rows, joint = _one_below_the_other(reads)
            if joint not in self._joint_sums:
                self._joint_sums[joint] = JointSum(*joint)
            together = self._joint_sums[joint].add_up(_summable(rows))
        return together, [Column(together, place, len(reads)) for place in range(len(reads))]

    def divide(self, level: int, tensor: Tensor) -> Tensor:
        """Turn the sums side by side on a level into means."""
        key = level, tensor.dtype
        if key not in self._factors:
            with making_constants():
                factors = self.summed.listed_factors(level) if self.listed else self.summed.dense_factors(level)
                self._factors[key] = factors if factors is None else factors.to(tensor.dtype)
        factors = self._factors[key]
        if factors is None:
            return tensor
        apart = tensor.reshape(*factors.shape, tensor.shape[-1] // factors.shape[-1])
        return (apart * factors.unsqueeze(-1)).reshape(tensor.shape)

    def write(self, step: WriteStep, child: Column, *, mean: bool) -> Moved:
        """The transpose of reading by a sum: what is to be handed out to the parent."""
        return Moved(self._writes[step], child)

    def write_diagonal(self, step: WriteStep, child: Column, parent: Column) -> Column:
        """The transpose of reading a diagonal: add the child to the tuples on the diagonal, in place."""
        self._writes[step].add_to_parts(child.tensor, parent.tensor)
        return parent

    def gather(self, sets: tuple[int, ...], terms: Sequence[Moved]) -> Callable[[Place], Tensor]:
        """A function that gives the sum of what is handed out to a fold, in one pass."""
        if is_watched() or terms[0].incidence.is_empty:
            handed = [term.incidence.hand_out(term.rows.tensor) for term in terms]
            total = sum(handed[1:], handed[0])
            return lambda place: total  # there is one place then
        rows, joint = _one_below_the_other(terms)
        if joint not in self._joints:
            self._joints[joint] = JointIncidence(*joint)
        return partial(self._joints[joint].hand_out, rows)

    def add(self, total: Column, terms: Sequence[Moved]) -> Column:
        """The total and what is handed out to it; the total may be written into."""
        for incidence, rows in terms:
            added = incidence.add_handed_out(total.tensor, rows.tensor)
            total = Column(added) if is_watched() else total
        return total

    def places(self, tensor: Tensor, level: int, width: int) -> Sequence[Place]:
        """Some rows after the other, unless they are few or somebody is watching."""
        n_rows = self.target.levels[level].n_rows
        some = PIECE_BYTES // (tensor.element_size() * max(tensor.shape[-1], width))
        some = max(some - some % 16, FEWEST_ROWS)
        if is_watched() or n_rows <= some or tensor.device.type != "cpu":
            return (None,)
        return [slice(start, min(start + some, n_rows)) for start in range(0, n_rows, some)]

    def rows(
        self, tensor: Tensor, level: int, swap: Swap, place: Place = None, spare: Tensor | None = None
    ) -> Tensor | None:
        """The reads of a level at the tuples where it writes, axes swapped."""
        lookup = self._lookup(level, swap)
        if lookup is None:
            return tensor if place is None else tensor[place]
        return lookup.find(tensor, place)

    def spare(self, tensor: Tensor) -> Tensor | None:
        """None: pieces are small."""
        return None

    def memory(self, tensor: Tensor, level: int, width: int) -> Tensor | None:
        """Memory for what a level mixes from this tensor, if that is large and nobody is watching."""
        tuples = self.target.levels[level]
        return None if is_watched() else tuples.memory.empty(tuples.n_rows, width, tensor)

    def swap(self, tensor: Tensor, level: int, swap: Swap, place: Place = None) -> Tensor | None:
        """What was mixed at the tuples of the source, at the tuples of the target."""
        return self.rows(tensor, level, swap, place)

    def shape(self, tensor: Tensor, level: int) -> tuple[int, ...]:
        """The shape, without channels, of what a level mixes from this tensor."""
        return (self.target.levels[level].n_rows,)

    def in_order(self, tensor: Tensor, order: Swap) -> Tensor:
        """The rows as they are: which slot is which axis concerns the tuples only."""
        return tensor

    def clean(self, tensor: Tensor, sets: tuple[int, ...]) -> Tensor:
        """The tensor as it is: nothing is listed that is no tuple of nodes."""
        return tensor

    def _lookup(self, level: int, swap: Swap) -> Incidence | None:
        key = level, swap
        if key not in self._lookups:
            with making_constants():
                self._lookups[key] = self.source.levels[level].lookup(swap, self.target.levels[level])
        return self._lookups[key]


def _is_one_tensor(moved: Sequence[Moved]) -> bool:
    return all(one.rows.together is moved[0].rows.together for one in moved)


def _one_below_the_other(moved: Sequence[Moved]) -> tuple[Tensor, _Joint]:
    """Folds as the rows of one matrix, and where each stands in it; nothing is copied if they are in one tensor."""
    incidences, columns = tuple(one.incidence for one in moved), [one.rows for one in moved]
    if _is_one_tensor(moved):
        together, _, several = columns[0]
        rows = together.view(len(together) * several, together.shape[-1] // several)
        return rows, (incidences, tuple(column.place for column in columns), several)
    starts = accumulate((len(column.together) for column in columns[:-1]), initial=0)
    return torch.cat([column.tensor for column in columns]), (incidences, tuple(starts), 1)


def _summable(rows: Tensor) -> Tensor:
    """Sums of many half-precision numbers overflow or lose their small terms."""
    return rows.float() if rows.dtype in (torch.float16, torch.bfloat16) else rows


def _shadows(support: Support, program: Program) -> Shadows:
    return support.once(("shadows", program), lambda: Shadows(support, program))
