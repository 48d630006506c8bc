"""Learning on graphs, hypergraphs and relational tensors without caring how the nodes are numbered."""

from bellnet import data, errors, testing
from bellnet.combinatorics import bell
from bellnet.memory import keep_freed_memory
from bellnet.nn import (
    ChannelDropout,
    EntryNorm,
    EquivariantLinear,
    EquivariantNet,
    InvariantNet,
    InvariantPool,
    Pointwise,
    change_basis,
    from_message_passing,
)
from bellnet.plan import Diagram, Plan, plan
from bellnet.spec import Spec
from bellnet.tensors import Padded, Sparse

__version__ = "0.1.0"

__all__ = [
    "ChannelDropout",
    "Diagram",
    "EntryNorm",
    "EquivariantLinear",
    "EquivariantNet",
    "InvariantNet",
    "InvariantPool",
    "Padded",
    "Plan",
    "Pointwise",
    "Sparse",
    "Spec",
    "bell",
    "change_basis",
    "data",
    "errors",
    "from_message_passing",
    "keep_freed_memory",
    "plan",
    "testing",
]
