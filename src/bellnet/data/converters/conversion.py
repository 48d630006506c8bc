"""`as_graph` and `as_graphs`: graphs of all kinds as `Graph`.

The attributes that are read are chosen for all graphs of a list alike; a warning names those that are not.
"""

import sys
import warnings
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Unpack

from torch import Tensor

from bellnet.data.attributes import DAMAGE, Given, GivenNames, Names
from bellnet.data.converters.arrays import from_dense, from_scipy
from bellnet.data.converters.networkx_graphs import from_networkx, survey_networkx
from bellnet.data.converters.pyg import from_pyg, pyg_members, survey_pyg
from bellnet.data.graph import Graph
from bellnet.errors import DataError, OptionError, type_name

if TYPE_CHECKING:
    from bellnet.data.encoding import Encoding


def as_graph(
    graph: object,
    *,
    node_attrs: Given = None,
    edge_attrs: Given = None,
    node_labels: Given = None,
    edge_labels: Given = None,
) -> Graph:
    """A graph of any kind as a `Graph`.

    The edges of an array are its nonzero entries, those of a sparse matrix its stored entries; their values are edge
    features, unless all are 1. Nodes of networkx graphs are numbered in the order of `graph.nodes`.

    By default the attribute with the default name is read, or, if there is none, all attributes that every node (or
    edge) has, numbers as features and texts as labels, in alphabetical order. A warning names the attributes that are
    not used. Targets of a `Data` (`y`, masks) are never used.

    Args:
        graph: A `Graph`, PyTorch Geometric `Data` or `HeteroData`, networkx graph, scipy sparse matrix, or dense array.
        node_attrs: The name or names of the attributes that are node features, an empty list for none. The default name
            is "features" in networkx graphs, "x" in `Data`.
        edge_attrs: The same for edge features; by default "features" or "weight", and "edge_attr" or "edge_weight".
        node_labels: The same for node labels; by default "label", and "node_labels". A text label becomes an integer
            that depends on the text alone. Several names give several columns of labels.
        edge_labels: The same for edge labels; by default "label", and "edge_type".

    >>> as_graph(torch.tensor([[0, 1], [1, 0]]))
    Graph(n=2, edges=2)
    """
    names = Names.of(node_attrs=node_attrs, edge_attrs=edge_attrs, node_labels=node_labels, edge_labels=edge_labels)
    by_kind, unused = _choose([graph], names)
    found = convert(graph, by_kind.get(_library(graph), names), strict=True)
    warn_unused("as_graph(graph)", unused)
    return found


def as_graphs(graphs: Iterable[object], *, call: str = "as_graphs(graphs)", **names: Unpack[GivenNames]) -> list[Graph]:
    """Many graphs, of any kinds, as a list of `Graph`; all are read by the same attributes.

    Args:
        graphs: A list of graphs, a PyTorch Geometric dataset or `Batch`, or an array (graphs, n, n) or
            (graphs, n, n, channels).
        call: The call in the warning about attributes that are not used.
        **names: `node_attrs`, `edge_attrs`, `node_labels` and `edge_labels`, see `as_graph`.
    """
    return read(call, graphs, Names.of(**names))


def read(call: str, graphs: Iterable[object], names: Names, wheres: Sequence[str] | None = None) -> list[Graph]:
    """Graphs with their attributes by name or by default, and one warning about attributes that are not used.

    `call` is for the warning, `wheres` has the position of each graph for errors.
    """
    known = list(members(graphs))
    by_kind, unused = _choose(known, names)
    found = []
    for number, graph in enumerate(known):
        where = wheres[number] if wheres else f"graphs[{number}]"
        found.append(_convert_at(where, graph, by_kind.get(_library(graph), names), strict=True))
    warn_unused(call, unused)
    return found


def read_by(graphs: Iterable[object], names: Names) -> list[Graph]:
    """Graphs with the attributes of these names, or of the default names, and no others."""
    known = enumerate(members(graphs))
    return [_convert_at(f"graphs[{number}]", graph, names, strict=False) for number, graph in known]


def _convert_at(where: str, graph: object, names: Names, *, strict: bool) -> Graph:
    """One graph of many, whose position is in the error if it cannot be read."""
    try:
        return convert(graph, names, strict=strict)
    except DataError as reason:
        raise DataError(f"{where}: {reason}") from reason


def _choose(graphs: list[object], names: Names) -> tuple[dict[str, Names], list[str]]:
    """For each library the names to read, and a sentence for each attribute that is not used."""
    chosen: dict[str, Names] = {}
    unused: list[str] = []
    for kind, survey in (("networkx", survey_networkx), ("torch_geometric", survey_pyg)):
        if of_kind := [graph for graph in graphs if _library(graph) == kind]:
            chosen[kind], more = survey(of_kind).choose(names)
            unused += [sentence for sentence in more if sentence not in unused]
    return chosen, unused


def convert(graph: object, names: Names, *, strict: bool) -> Graph:
    """One graph, read by these names; if strict, names are errors for kinds without named attributes."""
    kind = _library(graph)
    if kind in ("networkx", "torch_geometric"):
        try:
            return from_networkx(graph, names) if kind == "networkx" else from_pyg(graph, names)
        except DataError:
            raise
        except DAMAGE as reason:
            raise DataError(
                f"as_graph(graph): this {type_name(graph)} cannot be read: {type(reason).__name__}: {reason}.\n"
                "It is inconsistent; create it again."
            ) from reason
    arrays = {"scipy": "a scipy sparse matrix", "numpy": "an array", "torch": "an array"}
    unnamed = "a bellnet.data.Graph" if isinstance(graph, Graph) else arrays.get(kind)
    if unnamed is None:
        is_list = isinstance(graph, list | tuple)
        raise DataError(
            "as_graph(graph): expected a bellnet.data.Graph, torch_geometric Data, networkx graph, scipy sparse matrix,"
            f"\nor dense numpy or torch array of shape (n, n) or (n, n, channels), not {type_name(graph)}."
            + "\nFor many graphs call as_graphs; for a matrix in nested lists pass torch.tensor(rows)."
            * is_list
        )
    if strict and names.given:
        raise DataError(
            f"as_graph(graph, {names.given[0]}=...): {unnamed} has no named attributes.\n"
            f"Leave out {', '.join(names.given)}."
        )
    if isinstance(graph, Graph):
        return graph
    return from_scipy(graph) if kind == "scipy" else from_dense(graph)


def warn_unused(call: str, unused: list[str]) -> None:
    """Warns of attributes that are not used, at the line that called bellnet."""
    if not unused:
        return
    depth, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "bellnet":
        depth, frame = depth + 1, frame.f_back
    warnings.warn(
        f"{call}: some attributes are not used.\n" + "\n".join(unused) + "\nChoose with node_attrs=, edge_attrs=, "
        "node_labels= and edge_labels=; [] uses none, without a warning.",
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
            f"(graphs, n, n), not {type_name(graphs)}.\nFor one graph pass a list of one: [graph]."
        )
    return graphs


def _library(thing: object) -> str:
    """The library of a graph, found without importing it."""
    if isinstance(thing, Tensor):
        return "torch"
    for parent in type(thing).__mro__:
        top = parent.__module__.partition(".")[0]
        if top in ("networkx", "scipy", "numpy", "torch_geometric"):
            return top
    return ""


def problems(
    graphs: Iterable[object], *, encoding: "Encoding | None" = None, **names: Unpack[GivenNames]
) -> dict[int, str]:
    """The indices of all graphs that cannot be used, each with the reason.

    These are graphs that cannot be read, graphs without nodes, and with an encoding those that lack what it reads.

    Args:
        graphs: As in `as_graphs`.
        encoding: The encoding of the graphs, such as `encoding_` of an estimator.
        **names: `node_attrs`, `edge_attrs`, `node_labels` and `edge_labels`, see `as_graph`: attributes that all nodes
            or edges need; not with `encoding`, which has them.

    >>> problems([torch.ones(2, 2), torch.ones(2, 3)])
    {1: 'as_graph(array): expected shape (n, n) or (n, n, channels), but it is (2, 3).'}
    """
    given = given_without("problems", encoding, names)
    found = {}
    for index, graph in enumerate(members(graphs)):
        try:
            [known] = [convert(graph, given, strict=True)] if encoding is None else encoding.read([graph])
        except DataError as reason:
            message = str(reason).removeprefix("graphs[0]: ")
            found[index] = "it " + message.removeprefix("graphs[0] ") if message.startswith("graphs[0] ") else message
            continue
        if not known.n:
            found[index] = "it has no nodes."
        elif encoding is not None and (differs := encoding.mismatch(known)):
            found[index] = f"it has {differs[1]}."
    return found


def given_without(call: str, encoding: "Encoding | None", names: GivenNames) -> Names:
    """The names of a caller; an `OptionError` if there is an encoding, which has its own."""
    given = Names.of(**names)
    if encoding is not None and given.given:
        raise OptionError(f"{call}: an encoding reads the attributes of its fit; leave out {', '.join(given.given)}.")
    return given
