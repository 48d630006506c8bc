"""Where torch begins: running programs on tensors."""

from bellnet.execute.autograd import run
from bellnet.execute.nodes import Nodes
from bellnet.execute.sparse import Supports
from bellnet.execute.weights import change_of_basis

__all__ = ["Nodes", "Supports", "change_of_basis", "run"]
