"""Graphs of many kinds in, `Graph` out."""

import sys
import warnings
from collections.abc import Iterable, Sequence
from contextlib import suppress

from torch import Tensor

from bellnet.data.graph import Graph
from bellnet.data.kinds import (
    Given,
    Names,
    from_dense,
    from_networkx,
    from_pyg,
    from_scipy,
    pyg_members,
    settle,
    survey_networkx,
    survey_pyg,
)
from bellnet.data.kinds.networkx_graphs import USUAL as USUAL_IN_NETWORKX
from bellnet.data.kinds.pyg import USUAL as USUAL_IN_PYG
from bellnet.data.kinds.survey import Survey
from bellnet.errors import DataError

EXPECTED = (
    "a bellnet.data.Graph, a torch_geometric Data, a networkx graph, a scipy sparse matrix,\n"
    "or a dense numpy or torch array of shape (n, n) or (n, n, channels)"
)

DAMAGE = (AttributeError, LookupError, RuntimeError, TypeError, ValueError)
"""What other libraries say of graphs that contradict themselves."""


def as_graph(
    graph: object,
    *,
    node_attrs: Given = None,
    edge_attrs: Given = None,
    node_labels: Given = None,
    edge_labels: Given = None,
) -> Graph:
    """A graph of any kind as a `Graph`.

    In arrays and sparse matrices everything that is not zero (in sparse matrices: everything stored) is an edge, and
    its value is its feature, unless all values are 1. Nodes of networkx graphs are numbered in the order of
    `graph.nodes`.

    Of networkx graphs and of `Data`, attributes that are not named are used where their meaning is plain: under the
    usual name, or else all that every node, or every edge, has, numbers as features and texts as labels, in the order
    of their names. What is left out is said in a warning. What a `Data` has to predict (`y`, masks) is not used.

    Args:
        graph: A `Graph`, PyTorch Geometric `Data` or `HeteroData`, networkx graph, scipy sparse matrix, or dense array.
        node_attrs: The name or names of the node features, of networkx graphs (node attributes; usually "features") and
            of `Data` (its attributes; usually "x"). An empty list for none.
        edge_attrs: Likewise of edge features: usually "features" or else "weight", and "edge_attr" or else
            "edge_weight".
        node_labels: Likewise of the node labels: usually "label", and "node_labels". Labels may be text, which becomes
            an integer that depends on nothing but the text. Several names give several columns of labels.
        edge_labels: Likewise of the edge labels: usually "label", and "edge_type".

    >>> as_graph(torch.tensor([[0, 1], [1, 0]]))
    Graph(n=2, edges=2)
    """
    names = Names.of(node_attrs=node_attrs, edge_attrs=edge_attrs, node_labels=node_labels, edge_labels=edge_labels)
    by_kind, left = _choose([graph], names)
    found = convert(graph, by_kind.get(_library(graph), names), strict=True)
    tell("as_graph(graph)", left)
    return found


def as_graphs(
    graphs: Iterable[object],
    *,
    node_attrs: Given = None,
    edge_attrs: Given = None,
    node_labels: Given = None,
    edge_labels: Given = None,
    call: str = "as_graphs(graphs)",
) -> list[Graph]:
    """Many graphs, of any kind and mixed, as a list of `Graph`.

    Which attributes are used is decided for all graphs of the list alike.

    Args:
        graphs: A list of graphs, a PyTorch Geometric dataset or `Batch`, or an array (graphs, n, n) or
            (graphs, n, n, channels).
        node_attrs: See `as_graph`.
        edge_attrs: See `as_graph`.
        node_labels: See `as_graph`.
        edge_labels: See `as_graph`.
        call: How the warning of what is left out names the call.
    """
    return read(
        call,
        graphs,
        Names.of(node_attrs=node_attrs, edge_attrs=edge_attrs, node_labels=node_labels, edge_labels=edge_labels),
    )


def read(call: str, graphs: Iterable[object], names: Names, wheres: Sequence[str] | None = None) -> list[Graph]:
    """Graphs with what their attributes plainly mean; what is left out of all of them is told in one warning.

    Args:
        call: How the warning names the call.
        graphs: As in `as_graphs`.
        names: What the caller has named.
        wheres: How messages call each graph.
    """
    known = list(members(graphs))
    by_kind, left = _choose(known, names)
    found = []
    for number, graph in enumerate(known):
        where = wheres[number] if wheres else f"graphs[{number}]"
        found.append(_convert_at(where, graph, by_kind.get(_library(graph), names), strict=True))
    tell(call, left)
    return found


def read_by(graphs: Iterable[object], names: Names) -> list[Graph]:
    """Graphs with the attributes of these names, the usual ones where there are none, and nothing else."""
    known = enumerate(members(graphs))
    return [_convert_at(f"graphs[{number}]", graph, names, strict=False) for number, graph in known]


def _convert_at(where: str, graph: object, names: Names, *, strict: bool) -> Graph:
    """One graph of many, whose place is said if it cannot be read."""
    try:
        return convert(graph, names, strict=strict)
    except DataError as reason:
        raise DataError(f"{where}: {reason}") from reason


def _choose(graphs: list[object], names: Names) -> tuple[dict[str, Names], list[str]]:
    """For each library the names to read by, and a sentence for every attribute that is left out."""
    kinds: dict[str, list[object]] = {"networkx": [], "torch_geometric": []}
    for graph in graphs:
        if (kind := _library(graph)) in kinds:
            kinds[kind].append(graph)
    chosen: dict[str, Names] = {}
    left: list[str] = []
    if kinds["networkx"]:
        survey = Survey(USUAL_IN_NETWORKX, apart=True)
        for graph in kinds["networkx"]:
            with suppress(*DAMAGE):  # it is refused when it is converted, with its place
                survey_networkx(graph, survey)
        chosen["networkx"], left = survey.choose(names)
    if kinds["torch_geometric"]:
        survey = Survey(USUAL_IN_PYG, apart=False)
        unclear = []
        for graph in kinds["torch_geometric"]:
            with suppress(*DAMAGE):
                unclear += survey_pyg(graph, survey)
        settle(unclear, survey)
        chosen["torch_geometric"], more = survey.choose(names)
        left += [sentence for sentence in more if sentence not in left]
    return chosen, left


def convert(graph: object, names: Names, *, strict: bool) -> Graph:
    """One graph, read by these names; if strict, names are refused where nothing has a name."""
    kind = _library(graph)
    if kind in ("networkx", "torch_geometric"):
        try:
            return from_networkx(graph, names) if kind == "networkx" else from_pyg(graph, names)
        except DataError:
            raise
        except DAMAGE as reason:
            raise DataError(
                f"as_graph(graph): this {_kind(graph)} cannot be read: {type(reason).__name__}: {reason}.\n"
                "It contradicts itself; make it anew."
            ) from reason
    if isinstance(graph, Graph):
        if strict:
            names.refuse("a bellnet.data.Graph")
        return graph
    if kind == "scipy":
        if strict:
            names.refuse("a scipy sparse matrix")
        return from_scipy(graph)
    if kind in ("numpy", "torch"):
        if strict:
            names.refuse("an array")
        return from_dense(graph)
    raise DataError(f"as_graph(graph): expected {EXPECTED}, not {_kind(graph)}.{_advice(graph)}")


def tell(call: str, left: list[str]) -> None:
    """Say what is left out, in one warning that points at the code which called bellnet."""
    if not left:
        return
    depth, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "bellnet":
        depth, frame = depth + 1, frame.f_back
    warnings.warn(
        f"{call}: some attributes are not used.\n" + "\n".join(left) + "\nTo choose, name what is to be used "
        "(node_attrs=, edge_attrs=, node_labels=, edge_labels=); [] uses nothing and is silent.",
        stacklevel=depth,
    )


def members(graphs: Iterable[object]) -> Iterable[object]:
    """The graphs of a list, a dataset, a batch or an array."""
    kind = _library(graphs)
    found = pyg_members(graphs) if kind == "torch_geometric" else None
    if found is not None:
        return found
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
