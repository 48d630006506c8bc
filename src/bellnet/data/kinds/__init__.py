"""Graphs of other libraries: how each kind is read and written."""

from bellnet.data.kinds.arrays import from_dense, from_scipy, to_dense, to_scipy
from bellnet.data.kinds.names import Given, Names
from bellnet.data.kinds.networkx_graphs import from_networkx, survey_networkx, to_networkx
from bellnet.data.kinds.pyg import from_pyg, pyg_members, settle, survey_pyg, to_pyg

__all__ = [
    "Given",
    "Names",
    "from_dense",
    "from_networkx",
    "from_pyg",
    "from_scipy",
    "pyg_members",
    "settle",
    "survey_networkx",
    "survey_pyg",
    "to_dense",
    "to_networkx",
    "to_pyg",
    "to_scipy",
]
