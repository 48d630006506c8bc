"""Products of the rows of a bundle with the matrix of every swap, added up; and the gradient of that.

Fresh memory costs more than most of what is computed in it. So products are accumulated into one tensor, and of the
two sides of a product the narrower one is copied into the swapped order.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from bellnet.execute.narrow import add_columns_by_columns, add_product, product, widen
from bellnet.plan import Swap

Swaps = Sequence[Swap]
"""Axis j of what is written is axis swap[j] of what was read; the first swap of a level is none."""


def accumulate(
    total: Tensor | None,
    read: Tensor,
    matrices: Sequence[Tensor],
    *,
    swaps: Swaps,
    totals: Tensor,
    bias: Tensor | None = None,
    into: Tensor | None = None,
) -> Tensor:
    """Add what was read, times the matrix of every swap, to a total.

    Args:
        total: (batch, *axes, out), contiguous, which is written into; None makes one.
        read: (batch, *axes, in).
        matrices: For every swap (in, out).
        swaps: The swaps.
        totals: The sums of all rows of every graph, which are finite only if all rows are.
        bias: (out), for the total that is made.
        into: Memory for the total that is made, if there is some.
    """
    inner, outer = matrices[0].shape
    rows = read.reshape(-1, inner)
    wide = widen(matrices, rows.shape[0], totals)
    if total is not None:
        add_product(total, rows, wide[0])
    elif bias is not None:
        first = torch.addmm(bias, rows, matrices[0], out=None if into is None else into.view(-1, outer))
        total = first if read.ndim == 2 else first.view(*read.shape[:-1], outer)
    else:
        first = product(rows, wide[0], into)
        total = into if into is not None else first if read.ndim == 2 else first.view(*read.shape[:-1], outer)
    spare: Tensor | None = None
    for swap, matrix in zip(swaps[1:], wide[1:], strict=True):
        if inner <= outer:
            spare = swapped_rows(read, swap, spare)
            add_product(total, spare, matrix)
        else:
            total.add_(in_order(product(rows, matrix).view(*read.shape[:-1], outer), swap))
    return total


def pull(
    total: Tensor | None,
    gradient: Tensor,
    read: Tensor,
    *,
    matrices: Sequence[Tensor] | None,
    swaps: Swaps,
    totals: Tensor,
    of_matrices: Sequence[Tensor],
    into: Tensor | None = None,
) -> Tensor | None:
    """Pull a gradient back through `accumulate`.

    Args:
        total: To which the gradient of what was read is added; None makes one.
        gradient: (batch, *axes, out), of the total there.
        read: What was read there.
        matrices: As there; None if the gradient of what was read is not wanted.
        swaps: As there.
        totals: As there, but of the gradient.
        of_matrices: For every swap (in, out), to which the gradient of its matrix is added.
        into: Memory for the total that is made, if there is some.
    """
    inner, outer = of_matrices[0].shape
    rows, pulled = read.reshape(-1, inner), gradient.reshape(-1, outer)
    wide = [] if matrices is None else widen([matrix.mT for matrix in matrices], rows.shape[0], totals)
    add_columns_by_columns(of_matrices[0], rows, pulled)
    if matrices is not None:
        if total is None:
            first = product(pulled, wide[0], into)
            total = into if into is not None else first.view(*gradient.shape[:-1], inner)
        else:
            add_product(total, pulled, wide[0])
    spare: Tensor | None = None
    for number, swap in enumerate(swaps[1:], 1):
        back = tuple(swap.index(axis) for axis in range(len(swap)))
        if outer <= inner:
            spare = swapped_rows(gradient, back, spare)
            add_columns_by_columns(of_matrices[number], rows, spare)
            if total is not None:
                add_product(total, spare, wide[number])
        else:
            if total is not None:
                total.add_(in_order(product(pulled, wide[number]).view(*gradient.shape[:-1], inner), back))
            spare = swapped_rows(read, swap, spare)
            add_columns_by_columns(of_matrices[number], spare, pulled)
    return total


def swapped_rows(tensor: Tensor, swap: Swap, spare: Tensor | None) -> Tensor:
    """The axes between batch and channels in another order, copied into the rows of a matrix."""
    swapped = in_order(tensor, swap)
    if spare is None:
        return swapped.reshape(-1, tensor.shape[-1])
    spare.view(swapped.shape).copy_(swapped)
    return spare


def in_order(tensor: Tensor, order: Swap) -> Tensor:
    """The axes between batch and channels in another order, as a view."""
    return tensor.permute(0, *[axis + 1 for axis in order], tensor.ndim - 1)
