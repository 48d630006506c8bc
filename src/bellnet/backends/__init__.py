"""Running plans on tensors."""

from bellnet.backends.dense_layout import DenseLayout, Nodes
from bellnet.backends.executor import Executor, Layout
from bellnet.backends.fused_norm import DropoutMask, Moments, can_fuse_norm, fused_norm_relu, moments_of
from bellnet.backends.level_matrices import change_of_basis
from bellnet.backends.pooling import Orbit, pool_orbits
from bellnet.backends.products import multiply_dense
from bellnet.backends.sparse_layout import SparseLayout
from bellnet.backends.sparse_products import multiply_sparse
from bellnet.tensors.tracing import is_traced

__all__ = [
    "DenseLayout",
    "DropoutMask",
    "Executor",
    "Layout",
    "Moments",
    "Nodes",
    "Orbit",
    "SparseLayout",
    "can_fuse_norm",
    "change_of_basis",
    "fused_norm_relu",
    "is_traced",
    "moments_of",
    "multiply_dense",
    "multiply_sparse",
    "pool_orbits",
]
