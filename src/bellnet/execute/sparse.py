"""The sparse executor: folds of tensors that hold values for listed tuples of nodes.

A folded tensor is (tuples of its shadow, channels). A sum adds up the tuples that are equal once a slot is dropped,
its transpose hands out; a diagonal selects tuples, its transpose adds to them; a swap looks every tuple up in another
order, and what is not listed is zero. Where everything stands depends on the supports alone and is found once.
"""

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import NamedTuple
from weakref import WeakKeyDictionary

import torch
from torch import Tensor

from bellnet.execute.incidence import Incidence, JointIncidence
from bellnet.execute.shadows import Shadows
from bellnet.execute.transforms import making_constants
from bellnet.plan import Program, ReadStep, Swap, WriteStep
from bellnet.tensors import Support

PIECE_BYTES = 2**21
"""Reordered rows are made and used in pieces of memory that is used again; fresh memory for all would cost more."""


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


class Written(NamedTuple):
    """What arrives at a fold of the target: rows, and which tuples of the fold they are handed out to."""

    incidence: Incidence
    rows: Tensor


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
        self._joints: dict[tuple[Incidence, ...], JointIncidence] = {}
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

    def read(self, step: ReadStep, parent: Tensor, *, mean: bool) -> Tensor:
        """Fold the parent once more."""
        if parent.dtype in (torch.float16, torch.bfloat16):
            parent = parent.float()  # sums of many such numbers overflow or lose their small terms
        return self.source.moves[step].add_up(parent)

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

    def write(self, step: WriteStep, child: Tensor, *, mean: bool) -> Written:
        """The transpose of reading by a sum: what is to be handed out to the parent."""
        return Written(self._writes[step], child)

    def write_diagonal(self, step: WriteStep, child: Tensor, parent: Tensor) -> None:
        """The transpose of reading a diagonal: add the child to the tuples on the diagonal, in place."""
        self._writes[step].add_to_parts(child, parent)

    def gather(self, sets: tuple[int, ...], terms: Sequence[Written]) -> Tensor:
        """The sum of what is handed out to a fold, as a new tensor."""
        incidences = tuple(incidence for incidence, _ in terms)
        if incidences not in self._joints:
            self._joints[incidences] = JointIncidence(incidences)
        return self._joints[incidences].hand_out([rows for _, rows in terms])

    def add(self, total: Tensor, terms: Sequence[Written]) -> Tensor:
        """The total and what is handed out to it; the total may be written into."""
        for incidence, rows in terms:
            total = incidence.add_handed_out(total, rows)
        return total

    def rows(self, tensor: Tensor, level: int, swap: Swap) -> Tensor:
        """The reads of a level at the tuples where it writes, axes swapped."""
        lookup = self._lookup(level, swap)
        return tensor if lookup is None else lookup.hand_out(tensor)

    def pieces(
        self, tensor: Tensor, level: int, swap: Swap, spare: Tensor | None = None
    ) -> Iterator[tuple[slice | None, Tensor]]:
        """The same, piece after piece, each with its place; pieces that are zero are left out."""
        lookup = self._lookup(level, swap)
        if lookup is None:
            yield None, tensor
        else:
            n_rows = PIECE_BYTES // (tensor.element_size() * tensor.shape[-1])
            yield from lookup.hand_out_by_pieces(tensor, max(n_rows - n_rows % 16, 1024))

    def spare(self, tensor: Tensor) -> Tensor | None:
        """None: pieces are small."""
        return None

    def swap(self, tensor: Tensor, level: int, swap: Swap) -> Tensor:
        """What was mixed at the tuples of the source, at the tuples of the target."""
        return self.rows(tensor, level, swap)

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


def _shadows(support: Support, program: Program) -> Shadows:
    return support.once(("shadows", program), lambda: Shadows(support, program))
