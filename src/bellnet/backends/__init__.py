"""Where torch begins: running plans on tensors."""

from bellnet.backends.between import DropoutMask, Moments, can_fuse_norm, fused_norm_relu, moments_of
from bellnet.backends.dense import DenseLayout
from bellnet.backends.engine import Executor
from bellnet.backends.joins import multiply_sparse
from bellnet.backends.layout import Layout
from bellnet.backends.listed import SparseLayout
from bellnet.backends.nodes import Nodes
from bellnet.backends.orbit import Orbit
from bellnet.backends.orbits import pool_orbits
from bellnet.backends.products import multiply_dense
from bellnet.backends.transforms import is_traced
from bellnet.backends.weights import change_of_basis

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
