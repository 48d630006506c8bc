"""Products with few channels, done as products with more.

A matrix library takes its matrices in tiles of sixteen columns or so. With eight channels half of a tile is idle, and
the tall product of a layer runs at a quarter of its speed. Several rows that lie side by side in memory are then
taken for one longer row, and the matrix is repeated along a diagonal: more multiplications, in less time.
"""

import torch
from torch import Tensor

from bellnet.execute.transforms import is_watched

_TILE = 16
_MANY_ROWS = 8192  # below this the time saved is less than it takes to repeat the matrix


def gains(weight: Tensor, rows: int) -> bool:
    """Whether the product of so many rows with matrices (..., in, out) gains by widening them."""
    return _rows_together(weight, rows) > 1


def widen(weight: Tensor, rows: int) -> Tensor:
    """Matrices (..., in, out) as block-diagonal ones, if the product with so many rows gains by it.

    Args:
        weight: The matrices.
        rows: The rows that are to be multiplied by each.

    Returns:
        (..., m * in, m * out), where m divides the rows. See `product`. The zeros in them meet the numbers of other
        rows, so those must be finite.
    """
    *several, inner, outer = weight.shape
    together = _rows_together(weight, rows)
    if together == 1:
        return weight
    wide = weight.new_zeros(*several, together, inner, together, outer)
    wide.diagonal(0, -4, -2).copy_(weight.unsqueeze(-1))
    return wide.view(*several, together * inner, together * outer)


def product(rows: Tensor, matrix: Tensor, into: Tensor | None = None) -> Tensor:
    """Rows times a widened matrix, in a shape that the caller may view otherwise; written into memory if given."""
    rows = rows.reshape(-1, matrix.shape[0])
    return rows @ matrix if into is None else torch.mm(rows, matrix, out=into.view(-1, matrix.shape[1]))


def add_product(total: Tensor, rows: Tensor, matrix: Tensor) -> None:
    """Add rows times a widened matrix into a contiguous tensor, in place."""
    total.view(-1, matrix.shape[1]).addmm_(rows.reshape(-1, matrix.shape[0]), matrix)


def columns_by_columns(left: Tensor, right: Tensor) -> Tensor:
    """`left.mT @ right` for two tall matrices."""
    together = _rows_together(right, right.shape[0])
    if together == 1:
        return left.mT @ right
    inner, outer = left.shape[1], right.shape[1]
    wide = left.reshape(-1, together * inner).mT @ right.reshape(-1, together * outer)
    return wide.view(together, inner, together, outer).diagonal(0, 0, 2).sum(-1)


def _rows_together(matrix: Tensor, rows: int) -> int:
    """How many rows to take for one: a power of two."""
    width = matrix.shape[-1]
    if is_watched():  # others are to see the product as it is, for any number of rows
        return 1
    if not 1 < width < _TILE or rows < _MANY_ROWS or matrix.device.type != "cpu":
        return 1
    together = 1
    while together * width < _TILE and rows % (2 * together) == 0:
        together *= 2
    return together
