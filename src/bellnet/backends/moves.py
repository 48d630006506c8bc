"""What a layout does to tensors over tuples of nodes: the moves that plans are made of.

Every move has a side: 0 for the source of a plan, 1 for its target. Backwards the two are exchanged, and with them the
way of every swap.
"""

from typing import Protocol

from torch import Tensor

from bellnet.plan import StackStep


class Primitives(Protocol):
    """The moves of a layout. They may write in place, unless they are to be differentiated and traced."""

    def contraction(self, side: int, number: int, branch: StackStep, parent: Tensor) -> Tensor:
        """The contractions of a branch of a stack, from those of its parent; half precision sums are widened."""

    def spread(self, side: int, number: int, branch: StackStep, child: Tensor, onto: Tensor | None) -> Tensor:
        """The transpose for one contraction: what its parent gets from it, and what that has already, if anything."""

    def permuted(self, level: int, number: int, rows: Tensor, *, back: bool) -> Tensor:
        """What was read on a level, for one of its permutations, where the other side has it."""

    def zeros(self, side: int, root: int, like: Tensor, width: int) -> Tensor:
        """A whole tensor without values."""

    def clean(self, side: int, root: int, whole: Tensor) -> Tensor:
        """A whole tensor with zeros where there is no node."""
