"""Tensors that know their nodes."""

from bellnet.tensors.node_counts import NodeCounts
from bellnet.tensors.padded import Padded
from bellnet.tensors.sparse import Sparse
from bellnet.tensors.support import Support
from bellnet.tensors.tracing import is_concrete

__all__ = ["NodeCounts", "Padded", "Sparse", "Support", "is_concrete"]
