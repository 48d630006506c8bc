"""Layers as ordinary torch modules."""

from bellnet.nn.basis import change_basis
from bellnet.nn.linear import EquivariantLinear
from bellnet.nn.pool import InvariantPool

__all__ = ["EquivariantLinear", "InvariantPool", "change_basis"]
