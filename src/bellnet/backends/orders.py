"""Axes in another order."""

from torch import Tensor

from bellnet.plan import Permutation


def inverse(order: Permutation) -> Permutation:
    """What brings axes back that were brought into an order."""
    return tuple(map(order.index, range(len(order))))


def in_order(tensor: Tensor, order: Permutation) -> Tensor:
    """The axes between batch and channels in another order, as a view."""
    return tensor.permute(0, *[axis + 1 for axis in order], tensor.ndim - 1)
