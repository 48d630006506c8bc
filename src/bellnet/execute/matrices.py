"""Tensors over nodes as batches of matrices, one for every graph, every node of shared slots and every channel.

Channels come last in a tensor, but matrix products want the numbers of one channel side by side. In memory the columns
of a matrix may come before its rows, where the slots of the tensor do.
"""

from collections.abc import Sequence
from functools import lru_cache
from math import prod
from typing import NamedTuple

from torch import Tensor

from bellnet.execute.moved import Order, moved
from bellnet.plan import split_letters
from bellnet.spec import Letters

BATCH, CHANNELS = "0", "1"
"""Stand for the axes that have no letters."""


class Lying(NamedTuple):
    """How the axes of a (batch, *axes, channels) tensor make matrices.

    Attributes:
        order: The axes that number the matrices, and those of a matrix, as they lie in memory.
        back: The inverse of that.
        ends: How many axes number the matrices, and how many come before the last group.
        turned: Whether the columns of a matrix lie before its rows.
    """

    order: Order
    back: Order
    ends: tuple[int, int]
    turned: bool

    @classmethod
    def of(cls, letters: str, shared: str, rows: str, columns: str) -> "Lying":
        """For a tensor with these letters, in the order that takes the least moving."""
        inner = "".join(letter for letter in letters if letter not in shared)
        turned = inner == columns + rows != rows + columns
        first, second = (columns, rows) if turned else (rows, columns)
        stands, outer = BATCH + letters + CHANNELS, BATCH + shared + CHANNELS
        wanted = outer + first + second
        order, back = tuple(map(stands.index, wanted)), tuple(map(wanted.index, stands))
        return cls(order, back, (len(outer), len(outer + first)), turned)

    def stays(self, shape: Sequence[int]) -> bool:
        """Whether a contiguous tensor of this shape consists of such matrices as it lies."""
        moving = [axis for axis in self.order if shape[axis] != 1]
        return moving == sorted(moving) or 0 in shape

    def matrices(self, tensor: Tensor) -> Tensor:
        """(matrices, rows, columns), copied unless they lie so already; for whoever needs no gradient."""
        return self._as_matrices(moved(tensor, self.order).contiguous())

    def matrices_plainly(self, tensor: Tensor) -> Tensor:
        """The same in operations that can be traced and differentiated."""
        return self._as_matrices(tensor.permute(self.order))

    def tensor_plainly(self, matrices: Tensor, shape: Sequence[int]) -> Tensor:
        """The tensor of this shape that has such matrices, in operations of that kind."""
        there = matrices.transpose(1, 2) if self.turned else matrices
        return there.reshape(self.in_order(shape)).permute(self.back)

    def _as_matrices(self, there: Tensor) -> Tensor:
        found = there.reshape(self.memory(there.shape))
        return found.transpose(1, 2) if self.turned else found

    def memory(self, shape: Sequence[int]) -> tuple[int, int, int]:
        """(matrices, rows, columns) of axes in order, or (matrices, columns, rows) if they are turned."""
        outer, inner = self.ends
        # Lists, since torch.compile does not know products of slices.
        return prod(list(shape[:outer])), prod(list(shape[outer:inner])), prod(list(shape[inner:]))

    def factors(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        """Whose product lies in memory as the matrices of this tensor do, if theirs is the product of x and y."""
        return (y.transpose(1, 2), x.transpose(1, 2)) if self.turned else (x, y)

    def in_order(self, shape: Sequence[int]) -> list[int]:
        """The lengths of a tensor's axes as they lie in memory."""
        return [shape[axis] for axis in self.order]


class Roles(NamedTuple):
    """How the two factors of a product and the product itself lie."""

    first: Lying
    second: Lying
    product: Lying


def roles(letters: Letters) -> Roles:
    """For tensors with these letters: those of all three number matrices, those of the factors alone are summed over.

    >>> roles(("ab", "bc", "ac")).first.order, roles(("ba", "bc", "ac")).first.turned
    ((0, 3, 1, 2), True)
    """
    x, y, product = letters
    shared, left, right, summed = split_letters(letters)
    return Roles(
        Lying.of(x, shared, left, summed), Lying.of(y, shared, summed, right), Lying.of(product, shared, left, right)
    )


known_roles = lru_cache(maxsize=256)(roles)
"""The same, found once; torch.compile warns of what is kept, so whoever may be traced takes the other."""
