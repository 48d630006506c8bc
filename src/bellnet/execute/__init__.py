"""Where torch begins: running plans on tensors."""

from bellnet.execute.engine import Engine
from bellnet.execute.listed import Supports
from bellnet.execute.nodes import Nodes
from bellnet.execute.weights import change_of_basis

__all__ = ["Engine", "Nodes", "Supports", "change_of_basis"]
