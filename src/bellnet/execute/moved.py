"""Axes in another order, in memory as well.

Where one group of neighbouring axes changes place with the group behind it, the copy is a transposition of matrices,
and torch has one that uses vectors under another name: `channel_shuffle` of tensors with one pixel. On a CPU it takes a
quarter of the time of the usual copy, which goes number by number.
"""

from functools import lru_cache
from math import prod

import torch
from torch import Tensor

Order = tuple[int, ...]


def moved(tensor: Tensor, order: Order) -> Tensor:
    """The axes of a tensor in another order: a view, or a contiguous copy where vectors can make it; no gradient."""
    view = tensor.permute(order)
    if view.is_contiguous() or not _has_vectors(tensor):
        return view
    groups = _exchanged(order)
    if groups is None:
        return view
    first, second = groups
    shape = tensor.shape
    outer, rows, columns = prod(shape[:first]), prod(shape[first:second]), prod(shape[second:])
    pixels = tensor.reshape(outer, 1, 1, rows * columns).permute(0, 3, 1, 2)
    return torch.channel_shuffle(pixels, rows).view(view.shape)


def _has_vectors(tensor: Tensor) -> bool:
    return tensor.device.type == "cpu" and tensor.numel() > 0 and tensor.is_floating_point()


@lru_cache(maxsize=256)
def _exchanged(order: Order) -> tuple[int, int] | None:
    """Where two neighbouring groups begin that change places, the second up to the end; None if it is not so simple.

    >>> _exchanged((0, 3, 1, 2)), _exchanged((0, 2, 3, 1)), _exchanged((2, 1, 0)), _exchanged((0, 1))
    ((1, 3), (1, 2), None, None)
    """
    first = next((axis for axis, place in enumerate(order) if axis != place), None)
    if first is None:
        return None
    second, n_axes = order[first], len(order)
    return (first, second) if order == (*range(first), *range(second, n_axes), *range(first, second)) else None
