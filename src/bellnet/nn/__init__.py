"""Layers as ordinary torch modules."""

from bellnet.nn.change_basis import change_basis
from bellnet.nn.linear import EquivariantLinear
from bellnet.nn.message_passing import from_message_passing
from bellnet.nn.networks import EquivariantNet, InvariantNet
from bellnet.nn.pointwise import ChannelDropout, EntryNorm, Pointwise
from bellnet.nn.pool import InvariantPool
from bellnet.nn.ppgn import PPGN
from bellnet.nn.product import Product

__all__ = [
    "PPGN",
    "ChannelDropout",
    "EntryNorm",
    "EquivariantLinear",
    "EquivariantNet",
    "InvariantNet",
    "InvariantPool",
    "Pointwise",
    "Product",
    "change_basis",
    "from_message_passing",
]
