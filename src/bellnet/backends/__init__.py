"""Where torch begins: running plans on tensors."""

from bellnet.backends.between import Dropped, Moments, can_go_between, go_between, moments_of
from bellnet.backends.dense import DenseLayout
from bellnet.backends.engine import Executor
from bellnet.backends.joins import multiply_listed
from bellnet.backends.layout import Layout
from bellnet.backends.listed import SparseLayout
from bellnet.backends.nodes import Nodes
from bellnet.backends.orbit import Orbit
from bellnet.backends.orbits import pool_orbits
from bellnet.backends.products import multiply_dense
from bellnet.backends.transforms import wants_plain
from bellnet.backends.weights import change_of_basis

__all__ = [
    "DenseLayout",
    "Dropped",
    "Executor",
    "Layout",
    "Moments",
    "Nodes",
    "Orbit",
    "SparseLayout",
    "can_go_between",
    "change_of_basis",
    "go_between",
    "moments_of",
    "multiply_dense",
    "multiply_listed",
    "pool_orbits",
    "wants_plain",
]
