"""Graphs of many kinds in, `Graph` out."""

from collections.abc import Iterable, Sequence

from torch import Tensor

from bellnet.data.graph import Graph
from bellnet.data.kinds import from_dense, from_networkx, from_pyg, from_scipy, pyg_members
from bellnet.data.kinds.names import Names
from bellnet.errors import DataError

EXPECTED = (
    "a bellnet.data.Graph, a torch_geometric Data, a networkx graph, a scipy sparse matrix,\n"
    "or a dense numpy or torch array of shape (n, n) or (n, n, channels)"
)


def as_graph(
    graph: object,
    *,
    node: str | Sequence[str] | None = None,
    edge: str | Sequence[str] | None = None,
    label: str | None = None,
) -> Graph:
    """A graph of any kind as a `Graph`.

    In arrays and sparse matrices everything that is not zero (in sparse matrices: everything stored) is an edge, and
    its value is its feature, unless all values are 1. Nodes of networkx graphs are numbered in the order of
    `graph.nodes`.

    Args:
        graph: A `Graph`, PyTorch Geometric `Data`, networkx graph, scipy sparse matrix, or dense array.
        node: The name or names of the node features, of networkx graphs (node attributes; "features" if there is
            one) and of `Data` (its attributes; "x" if there is one).
        edge: Likewise of edge features: "features" or else "weight", and "edge_attr" or else "edge_weight".
        label: Likewise of the node labels: "label", and "node_labels". Labels of networkx nodes may be text, which
            becomes a whole number that depends on nothing but the text.

    >>> as_graph(torch.tensor([[0, 1], [1, 0]]))
    Graph(n=2, edges=2)
    """
    names = Names.of(node, edge, label)
    if isinstance(graph, Graph):
        names.refuse("a bellnet.data.Graph")
        return graph
    kind = _library(graph)
    if kind == "networkx":
        return from_networkx(graph, names)
    if kind == "torch_geometric":
        return from_pyg(graph, names)
    if kind == "scipy":
        names.refuse("a scipy sparse matrix")
        return from_scipy(graph)
    if kind in ("numpy", "torch"):
        names.refuse("an array")
        return from_dense(graph)
    raise DataError(f"as_graph(graph): expected {EXPECTED}, not {_kind(graph)}.{_advice(graph)}")


def as_graphs(
    graphs: Iterable[object],
    *,
    node: str | Sequence[str] | None = None,
    edge: str | Sequence[str] | None = None,
    label: str | None = None,
) -> list[Graph]:
    """Many graphs, of any kind and mixed, as a list of `Graph`.

    Args:
        graphs: A list of graphs, a PyTorch Geometric dataset or `Batch`, or an array (graphs, n, n) or
            (graphs, n, n, channels).
        node: See `as_graph`.
        edge: See `as_graph`.
        label: See `as_graph`.
    """
    names = {"node": node, "edge": edge, "label": label}
    found = []
    for number, graph in enumerate(_members(graphs)):
        try:
            found.append(as_graph(graph, **names))  # type: ignore[arg-type]
        except DataError as reason:
            raise DataError(f"graphs[{number}]: {reason}") from reason
    return found


def _members(graphs: Iterable[object]) -> Iterable[object]:
    kind = _library(graphs)
    members = pyg_members(graphs) if kind == "torch_geometric" else None
    if members is not None:
        return members
    single = isinstance(graphs, Graph) or kind in ("networkx", "scipy", "torch_geometric")
    if kind in ("numpy", "torch"):
        single = getattr(graphs, "ndim", 0) in (0, 2)  # along one axis numpy may hold objects
    if single or isinstance(graphs, str) or not isinstance(graphs, Iterable):
        raise DataError(
            f"as_graphs(graphs): expected a list of graphs, a PyTorch Geometric dataset or Batch, or an array "
            f"(graphs, n, n), not {_kind(graphs)}.\nFor one graph pass a list of one: [graph]."
        )
    return graphs


def _library(thing: object) -> str:
    """The library that a graph comes from, found without importing it."""
    if isinstance(thing, Tensor):
        return "torch"
    for parent in type(thing).__mro__:
        top = parent.__module__.partition(".")[0]
        if top in ("networkx", "scipy", "numpy", "torch_geometric"):
            return top
    return ""


def _kind(thing: object) -> str:
    return f"{type(thing).__module__}.{type(thing).__qualname__}"


def _advice(thing: object) -> str:
    if isinstance(thing, list | tuple):
        return "\nFor many graphs call as_graphs; for a matrix in nested lists pass torch.tensor(rows)."
    return ""
