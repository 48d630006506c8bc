"""Learning on graphs, hypergraphs and relational tensors without caring how the nodes are numbered.

What needs torch is imported when it is first asked for: torch takes seconds, and not everybody who plans a layer or
reads the help of a command has use for it.
"""

import sys
from importlib import import_module
from typing import TYPE_CHECKING

from bellnet import errors
from bellnet._utils.memory import keep_freed_memory
from bellnet.combinatorics import bell
from bellnet.plan import Diagram, Plan, plan
from bellnet.spec import Spec

if TYPE_CHECKING:
    from bellnet import data, testing
    from bellnet.nn import (
        PPGN,
        ChannelDropout,
        EntryNorm,
        EquivariantLinear,
        EquivariantNet,
        InvariantNet,
        InvariantPool,
        Pointwise,
        Product,
        change_basis,
        from_message_passing,
    )
    from bellnet.tensors import Padded, Sparse, cat

__version__ = "0.1.0"

__all__ = [
    "PPGN",
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
    "Product",
    "Sparse",
    "Spec",
    "bell",
    "cat",
    "change_basis",
    "data",
    "errors",
    "from_message_passing",
    "keep_freed_memory",
    "plan",
    "testing",
]

_OF_TENSORS = ("Padded", "Sparse", "cat")
_WITHOUT_TORCH = ("_utils",)
_PARTS = (*_WITHOUT_TORCH, "data", "backends", "nn", "tensors", "testing")

if not TYPE_CHECKING:  # to a type checker the module would have whatever one asks for

    def __getattr__(name: str) -> object:
        if name not in __all__ and name not in _PARTS:
            raise AttributeError(f"module 'bellnet' has no attribute {name!r}", name=name, obj=sys.modules[__name__])
        if name not in _WITHOUT_TORCH:
            import_module("bellnet._utils.optional").import_torch()
        if name in _PARTS:
            return import_module(f"bellnet.{name}")
        found = getattr(import_module("bellnet.tensors" if name in _OF_TENSORS else "bellnet.nn"), name)
        globals()[name] = found
        return found

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__, *_PARTS})
