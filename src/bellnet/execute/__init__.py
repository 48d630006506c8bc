"""Where torch begins: running plans on tensors."""

from bellnet.execute.engine import Engine
from bellnet.execute.listed import Supports
from bellnet.execute.nodes import Nodes
from bellnet.execute.orbits import Orbit, pool_orbits
from bellnet.execute.weights import change_of_basis

__all__ = ["Engine", "Nodes", "Orbit", "Supports", "change_of_basis", "pool_orbits"]
