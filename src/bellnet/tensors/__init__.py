"""Tensors that know their nodes."""

from bellnet.tensors.looking import can_look_at
from bellnet.tensors.node_counts import NodeCounts
from bellnet.tensors.padded import Padded
from bellnet.tensors.sparse import Sparse
from bellnet.tensors.support import Support

__all__ = ["NodeCounts", "Padded", "Sparse", "Support", "can_look_at"]
