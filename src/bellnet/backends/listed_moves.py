"""The moves of sparse tensors in torch's operations.

A sum adds up the tuples that are equal once a slot is dropped, its transpose hands out; a diagonal selects tuples, its
transpose adds to them.
"""

from typing import Protocol

import torch
from torch import Tensor

from bellnet.backends.incidence import Incidence
from bellnet.backends.projections import Projections
from bellnet.plan import StackStep


class Lookup(Protocol):
    """Where the tuples of one side are found on the other."""

    def __call__(self, level: int, number: int, *, back: bool) -> Incidence | None:
        """For a permutation of a level; None if the rows are the same."""


class SparsePrimitives:
    """For values of listed tuples.

    Args:
        sides: Where the tuples of source and target stand.
        lookup: Where they are found on the other side.
        in_place: Whether to write in place, and to add up in ways that cannot be differentiated.
    """

    def __init__(self, sides: tuple[Projections, Projections], lookup: Lookup, *, in_place: bool = False) -> None:
        self.sides, self.lookup, self.in_place = sides, lookup, in_place

    def contraction(self, side: int, number: int, branch: StackStep, parent: Tensor) -> Tensor:
        """The contractions of a branch of a stack, from those of its parent."""
        incidence = self.sides[side].moves[number, branch.start]
        wide = parent.to(torch.promote_types(parent.dtype, torch.float32))
        return incidence.add_up(wide) if self.in_place else incidence.add_up_plainly(wide)

    def spread(self, side: int, number: int, branch: StackStep, child: Tensor, onto: Tensor | None) -> Tensor:
        """What the parent of a contraction gets from it, and what that has already."""
        incidence = self.sides[side].moves[number, branch.start]
        if onto is None:
            return child.clone() if incidence.is_same and self.in_place else incidence.hand_out(child)
        if not self.in_place:
            return onto + incidence.hand_out(child)
        incidence.add_to_parts(child, onto)
        return onto

    def permuted(self, level: int, number: int, rows: Tensor, *, back: bool) -> Tensor:
        """What was read on a level, for one of its permutations, at the tuples of the other side."""
        found = self.lookup(level, number, back=back)
        return rows if found is None else found.hand_out(rows)

    def zeros(self, side: int, root: int, like: Tensor, width: int) -> Tensor:
        """A whole tensor without values."""
        return like.new_zeros(self.sides[side].stacks[root].n_rows, width)

    def clean(self, side: int, root: int, whole: Tensor) -> Tensor:
        """The tensor as it is: nothing is listed that is no tuple of nodes."""
        return whole
