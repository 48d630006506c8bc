"""Data to learn from: graphs of many kinds in, padded or sparse batches out, and sets that need no download."""

from bellnet.data import generated, graphml, sparse, tu
from bellnet.data.batches import to_padded, to_sparse
from bellnet.data.convert import as_graph, as_graphs
from bellnet.data.encode import Encoding
from bellnet.data.graph import Graph, undirected
from bellnet.data.kinds import to_dense, to_networkx, to_pyg, to_scipy
from bellnet.data.loader import Loader
from bellnet.data.per_graph import at_edges, in_order
from bellnet.data.sets import GraphSet
from bellnet.data.tables import from_tables
from bellnet.data.unusable import problems

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
    "sparse",
    "to_dense",
    "to_networkx",
    "to_padded",
    "to_pyg",
    "to_scipy",
    "to_sparse",
    "tu",
    "undirected",
]
