"""Converters between `Graph` and graphs of other libraries: networkx, PyTorch Geometric, scipy, arrays."""

from bellnet.data.converters.arrays import to_dense, to_scipy
from bellnet.data.converters.conversion import as_graph, as_graphs
from bellnet.data.converters.networkx_graphs import to_networkx
from bellnet.data.converters.pyg import to_pyg

__all__ = ["as_graph", "as_graphs", "to_dense", "to_networkx", "to_pyg", "to_scipy"]
