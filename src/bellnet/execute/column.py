"""Folds that lie side by side in the channels of one tensor, so that one product mixes them all."""

from typing import NamedTuple

from torch import Tensor


class Column(NamedTuple):
    """One of them.

    Attributes:
        together: (..., n_columns * channels): all of them.
        place: Which one it is.
        n_columns: How many there are.
    """

    together: Tensor
    place: int = 0
    n_columns: int = 1

    @property
    def tensor(self) -> Tensor:
        """The fold by itself, as a view."""
        if self.n_columns == 1:
            return self.together
        width = self.together.shape[-1] // self.n_columns
        return self.together.narrow(-1, self.place * width, width)
