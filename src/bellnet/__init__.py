"""Learning on graphs, hypergraphs and relational tensors without caring how the nodes are numbered."""

from bellnet import errors, testing
from bellnet.combinatorics import bell
from bellnet.nn import EquivariantLinear, InvariantPool, change_basis
from bellnet.plan import Diagram, Plan, plan
from bellnet.spec import Spec
from bellnet.tensors import Padded

__version__ = "0.1.0"

__all__ = [
    "Diagram",
    "EquivariantLinear",
    "InvariantPool",
    "Padded",
    "Plan",
    "Spec",
    "bell",
    "change_basis",
    "errors",
    "plan",
    "testing",
]
