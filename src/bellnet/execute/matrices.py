"""Tensors over nodes as batches of matrices, one for every graph, every node of shared slots and every channel.

Channels come last in a tensor, but torch's matrix products want the numbers of one channel side by side. All of this
can be traced and differentiated.
"""

from collections.abc import Sequence
from math import prod
from typing import NamedTuple

from torch import Tensor

from bellnet.plan import split_letters
from bellnet.spec import Letters

BATCH, CHANNELS = "0", "1"
"""Stand for the axes that have no letters."""


class Lying(NamedTuple):
    """How the axes of a (batch, *axes, channels) tensor make matrices.

    Attributes:
        order: The axes that number the matrices, those of their rows and those of their columns.
        back: The inverse of that.
        ends: How many axes number the matrices, and how many come before those of the columns.
    """

    order: tuple[int, ...]
    back: tuple[int, ...]
    ends: tuple[int, int]

    @classmethod
    def of(cls, letters: str, shared: str, rows: str, columns: str) -> "Lying":
        """For a tensor with these letters."""
        stands, outer = BATCH + letters + CHANNELS, BATCH + shared + CHANNELS
        wanted = outer + rows + columns
        order, back = tuple(map(stands.index, wanted)), tuple(map(wanted.index, stands))
        return cls(order, back, (len(outer), len(outer + rows)))

    def matrices(self, tensor: Tensor) -> Tensor:
        """(matrices, rows, columns)."""
        there, (outer, inner) = tensor.permute(self.order), self.ends
        # Lists, since torch.compile does not know products of slices.
        shape = list(there.shape)
        return there.reshape(prod(shape[:outer]), prod(shape[outer:inner]), prod(shape[inner:]))

    def tensor(self, matrices: Tensor, shape: Sequence[int]) -> Tensor:
        """The tensor of this shape that has such matrices."""
        return matrices.reshape([shape[axis] for axis in self.order]).permute(self.back)


class Roles(NamedTuple):
    """How the two factors of a product and the product itself lie."""

    first: Lying
    second: Lying
    product: Lying


def roles(letters: Letters) -> Roles:
    """For tensors with these letters: those of all three number matrices, those of the factors alone are summed over.

    >>> roles(("ab", "bc", "ac")).first.order, roles(("ba", "bc", "ac")).first.order
    ((0, 3, 1, 2), (0, 3, 2, 1))
    """
    x, y, product = letters
    shared, left, right, summed = split_letters(letters)
    return Roles(
        Lying.of(x, shared, left, summed), Lying.of(y, shared, summed, right), Lying.of(product, shared, left, right)
    )
