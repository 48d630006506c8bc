"""What the loop asks of an executor: the moves that depend on how a tensor holds its values."""

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from torch import Tensor

from bellnet.execute.column import Column
from bellnet.plan import ReadStep, Swap, WriteStep

Place = slice | None
"""Some rows of a matrix; None is all."""


class Executor(Protocol):
    """The moves, for one kind of tensor. The first axis of a folded tensor, or all but the last, are its rows."""

    @property
    def transposed(self) -> "Executor":
        """The executor of the transposed program."""

    def read(self, step: ReadStep, parent: Column, *, mean: bool) -> Any:
        """Fold the parent once more; `mean` divides a sum by the number of its terms, unless `divide` does.

        What comes back is for `side_by_side`.
        """

    def side_by_side(self, reads: Sequence[Any]) -> tuple[Tensor, list[Column]]:
        """Folds that have the same axes, in one tensor, and where each is to be read from."""

    def divide(self, level: int, tensor: Tensor) -> Tensor:
        """Divide the folds of a level, side by side in the channels, by what `read` and `write` have not yet."""

    def write(self, step: WriteStep, child: Column, *, mean: bool) -> Any:
        """The transpose of reading by a sum: a term that `gather` and `add` can add to the parent."""

    def write_diagonal(self, step: WriteStep, child: Column, parent: Column) -> Column:
        """The transpose of reading a diagonal: the parent with the child added, which may be done in place."""

    def gather(self, sets: tuple[int, ...], terms: Sequence[Any]) -> Callable[[Place], Tensor]:
        """A function that gives the sum of terms at one of `places`: a new contiguous tensor over these node sets."""

    def add(self, total: Column, terms: Sequence[Any]) -> Column:
        """The sum of a fold and terms; the fold is nobody else's and may be written into."""

    def places(self, tensor: Tensor, level: int, width: int) -> Sequence[Place]:
        """Where to mix what was read on a level, one place after the other; each begins at a multiple of 16.

        `width` is the number of channels that are mixed.
        """

    def rows(
        self, tensor: Tensor, level: int, swap: Swap, place: Place = None, spare: Tensor | None = None
    ) -> Tensor | None:
        """What was read on a level, where the level writes, axes swapped: the rows of a matrix; None if all are zero.

        A copy may be written into `spare` if that is given.
        """

    def spare(self, tensor: Tensor) -> Tensor | None:
        """Memory for swapped copies of what was read on a level, if they are large."""

    def memory(self, tensor: Tensor, level: int, width: int) -> Tensor | None:
        """Memory for what a level mixes from this tensor, where it is better not to take fresh one."""

    def swap(self, tensor: Tensor, level: int, swap: Swap, place: Place = None) -> Tensor | None:
        """As `rows`, but with the axes of the tensor."""

    def shape(self, tensor: Tensor, level: int) -> tuple[int, ...]:
        """The shape, without channels, of what the level mixes from what was read."""

    def in_order(self, tensor: Tensor, order: Swap) -> Tensor:
        """The axes of input or output in another order."""

    def clean(self, tensor: Tensor, sets: tuple[int, ...]) -> Tensor:
        """Zero what lies outside the nodes."""
