"""Tensors over nodes: padded, sparse, and their numbers of nodes."""

from bellnet.tensors.node_tensor import NodeCounts, cat
from bellnet.tensors.padded import Padded
from bellnet.tensors.sparse import Sparse
from bellnet.tensors.support import Support
from bellnet.tensors.tracing import is_concrete

__all__ = ["NodeCounts", "Padded", "Sparse", "Support", "cat", "is_concrete"]
