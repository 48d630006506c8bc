"""Products with few channels, done as products with more.

A matrix library takes its matrices in tiles of sixteen columns or so. With eight channels half of a tile is idle, and
the tall product of a layer runs at a quarter of its speed. Several rows that lie side by side in memory are then
taken for one longer row, and the matrix is repeated along a diagonal: more multiplications, in less time.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

TILE = 16
MANY_ROWS = 8192
"""Below this the time saved is less than it takes to repeat the matrix."""


def widen(matrices: Sequence[Tensor], rows: int, totals: Tensor) -> Sequence[Tensor]:
    """Matrices (in, out) as block-diagonal ones (m * in, m * out), if products with so many rows gain by it.

    The number m divides the rows. See `product`. The zeros meet the numbers of neighbouring rows, perhaps of another
    graph, so all of them must be finite: `totals`, sums of all rows of every graph, would show it if one was not.
    """
    together = _rows_together(matrices[0], rows)
    if together == 1 or not bool(totals.isfinite().all()):
        return matrices
    return [_widened(matrix, together) for matrix in matrices]


def product(rows: Tensor, matrix: Tensor, into: Tensor | None = None) -> Tensor:
    """Rows times a widened matrix, in a shape that the caller may view otherwise; written into memory if given."""
    if rows.shape[1] != matrix.shape[0]:
        rows = rows.reshape(-1, matrix.shape[0])
    return torch.mm(rows, matrix) if into is None else torch.mm(rows, matrix, out=into.view(-1, matrix.shape[1]))


def add_product(total: Tensor, rows: Tensor, matrix: Tensor) -> None:
    """Add rows times a widened matrix into a contiguous tensor, in place."""
    if rows.shape[1] != matrix.shape[0]:
        rows = rows.reshape(-1, matrix.shape[0])
    total.view(-1, matrix.shape[1]).addmm_(rows, matrix)


def add_columns_by_columns(total: Tensor, left: Tensor, right: Tensor) -> None:
    """Add `left.mT @ right`, for two tall matrices, in place."""
    together = _rows_together(right, right.shape[0])
    if together == 1:
        total.addmm_(left.mT, right)
        return
    inner, outer = total.shape
    wide = left.reshape(-1, together * inner).mT @ right.reshape(-1, together * outer)
    total.add_(wide.view(together, inner, together, outer).diagonal(0, 0, 2).sum(-1))


def is_narrow(width: int) -> bool:
    """Whether tall products gain by it if their result has so many columns."""
    return 1 < width < TILE


def _widened(matrix: Tensor, together: int) -> Tensor:
    inner, outer = matrix.shape
    wide = matrix.new_zeros(together, inner, together, outer)
    wide.diagonal(0, 0, 2).copy_(matrix.unsqueeze(-1))
    return wide.view(together * inner, together * outer)


def _rows_together(matrix: Tensor, rows: int) -> int:
    """How many rows to take for one: a power of two."""
    width = matrix.shape[-1]
    if rows < MANY_ROWS or not is_narrow(width) or matrix.device.type != "cpu":
        return 1
    together = 1
    while together * width < TILE and rows % (2 * together) == 0:
        together *= 2
    return together
