"""Where torch begins: running plans on tensors."""

from bellnet.execute.between import Dropped, Moments, can_go_between, go_between, moments_of
from bellnet.execute.dense import Dense
from bellnet.execute.engine import Engine
from bellnet.execute.joins import multiply_listed
from bellnet.execute.layout import Layout
from bellnet.execute.listed import Supports
from bellnet.execute.nodes import Nodes
from bellnet.execute.orbit import Orbit
from bellnet.execute.orbits import pool_orbits
from bellnet.execute.products import multiply_dense
from bellnet.execute.transforms import wants_plain
from bellnet.execute.weights import change_of_basis

__all__ = [
    "Dense",
    "Dropped",
    "Engine",
    "Layout",
    "Moments",
    "Nodes",
    "Orbit",
    "Supports",
    "can_go_between",
    "change_of_basis",
    "go_between",
    "moments_of",
    "multiply_dense",
    "multiply_listed",
    "pool_orbits",
    "wants_plain",
]
