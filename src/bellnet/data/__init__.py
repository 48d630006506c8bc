"""Graphs of many kinds, padded and sparse batches of them, and data sets."""

from bellnet.data import generated, graphml, sparse_inputs, tu
from bellnet.data.converters.arrays import to_dense, to_scipy
from bellnet.data.converters.conversion import as_graph, as_graphs, problems
from bellnet.data.converters.networkx_graphs import to_networkx
from bellnet.data.converters.pyg import to_pyg
from bellnet.data.encoding import Encoding
from bellnet.data.graph import Graph, GraphSet, undirected
from bellnet.data.loader import Loader, at_edges, in_order, to_padded, to_sparse
from bellnet.data.tables import from_tables

__all__ = [
    "Encoding",
    "Graph",
    "GraphSet",
    "Loader",
    "as_graph",
    "as_graphs",
    "at_edges",
    "from_tables",
    "generated",
    "graphml",
    "in_order",
    "problems",
    "sparse_inputs",
    "to_dense",
    "to_networkx",
    "to_padded",
    "to_pyg",
    "to_scipy",
    "to_sparse",
    "tu",
    "undirected",
]
