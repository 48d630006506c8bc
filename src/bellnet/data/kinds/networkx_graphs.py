"""networkx graphs."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import torch

from bellnet._utils.optional import require
from bellnet.data.columns import Columns
from bellnet.data.graph import Graph
from bellnet.data.kinds.names import Names
from bellnet.data.kinds.rows import Rows
from bellnet.data.kinds.survey import Survey
from bellnet.errors import DataError

if TYPE_CHECKING:
    import networkx

FEATURES, WEIGHT, LABEL = "features", "weight", "label"
USUAL = {
    "node_attrs": (FEATURES,),
    "edge_attrs": (FEATURES, WEIGHT),
    "node_labels": (LABEL,),
    "edge_labels": (LABEL,),
}


def survey_networkx(graph: Any, survey: Survey) -> None:
    """Take note of all attributes of nodes and edges."""
    survey.see_rows("node", (data for _, data in graph.nodes(data=True)))
    survey.see_rows("edge", (data for _, _, data in graph.edges(data=True)))


def from_networkx(graph: Any, names: Names) -> Graph:
    """The graph, its nodes numbered in the order of `graph.nodes`."""
    if graph.is_multigraph():
        raise DataError(
            "as_graph(graph): parallel edges have no place in a Graph, but this is a networkx "
            f"{type(graph).__name__}.\nMerge them first, for instance with networkx.Graph(graph) or "
            "networkx.DiGraph(graph)."
        )
    number = {node: place for place, node in enumerate(graph.nodes)}
    edges = [(number[source], number[target], data) for source, target, data in graph.edges(data=True)]
    directed = bool(graph.is_directed())
    if not directed:
        edges += [(target, source, data) for source, target, data in edges if source != target]
    node_wheres = [f"node {node!r}" for node in graph.nodes]
    wheres = [f"the edge between {node_wheres[source]} and {node_wheres[target]}" for source, target, _ in edges]
    return graph_of_rows(
        torch.tensor([(source, target) for source, target, _ in edges], dtype=torch.int64).reshape(-1, 2).T,
        Rows([data for _, data in graph.nodes(data=True)], node_wheres, "node"),
        Rows([data for _, _, data in edges], wheres, "edge"),
        names=names,
        directed=directed,
    )


def graph_of_rows(edge_index: torch.Tensor, nodes: Rows, edges: Rows, *, names: Names, directed: bool) -> Graph:
    """The graph of some attributes of nodes and edges.

    Args:
        edge_index: The two ends of every edge.
        nodes: The attributes of the nodes.
        edges: The attributes of the edges; of undirected ones in both directions.
        names: Which of them are used.
        directed: Whether edges have a direction.
    """
    usual = {
        role: next(((name,) for name in USUAL[role] if rows.has(name)), ())
        for role, rows in (("node_attrs", nodes), ("edge_attrs", edges), ("node_labels", nodes))
    }
    node_features, node = nodes.features(usual["node_attrs"] if names.node_attrs is None else names.node_attrs)
    edge_features, edge = edges.features(usual["edge_attrs"] if names.edge_attrs is None else names.edge_attrs)
    node_labels, texts = nodes.labels(usual["node_labels"] if names.node_labels is None else names.node_labels)
    edge_labels, edge_texts = edges.labels(names.edge_labels or ())
    return Graph(
        len(nodes.values),
        edge_index.contiguous(),
        edge_features=edge_features,
        node_features=node_features,
        node_labels=node_labels,
        directed=directed,
        edge_labels=edge_labels,
        columns=Columns(
            None if names.node_attrs is None or not nodes.values else node,
            None if names.edge_attrs is None or not edges.values else edge,
            names.node_labels if nodes.values else None,
            names.edge_labels if edges.values else None,
            tuple(sorted({**texts, **edge_texts}.items())),
        ),
    )


def to_networkx(graph: Graph) -> "networkx.Graph | networkx.DiGraph":
    """A networkx `Graph` or `DiGraph` with nodes 0 to n - 1. Needs the extra `graphs`.

    Node features become the node attribute "features". The only feature of an edge becomes the edge attribute "weight",
    several become "features". Labels become the attribute "label" of nodes and edges, or the one that they were read
    from, and texts where they stand for texts.
    """
    require("networkx", extra="graphs", call="to_networkx")
    import networkx

    found = networkx.DiGraph() if graph.directed else networkx.Graph()
    found.add_nodes_from(range(graph.n))
    for node, row in enumerate([] if graph.node_features is None else graph.node_features.tolist()):
        found.nodes[node][FEATURES] = tuple(row)
    for name, values in _label_columns(graph.node_labels, graph.columns.node_labels, graph):
        for node, value in enumerate(values):
            found.nodes[node][name] = value
    ends = graph.edge_index.T.tolist()
    found.add_edges_from(ends)
    if graph.edge_features is not None:
        for (source, target), row in zip(ends, graph.edge_features.tolist(), strict=True):
            found.edges[source, target].update({WEIGHT: row[0]} if len(row) == 1 else {FEATURES: tuple(row)})
    for name, values in _label_columns(graph.edge_labels, graph.columns.edge_labels, graph):
        for (source, target), value in zip(ends, values, strict=True):
            found.edges[source, target][name] = value
    return found


def _label_columns(
    labels: torch.Tensor | None, attributes: tuple[str, ...] | None, graph: Graph
) -> Iterator[tuple[str, list[int | str]]]:
    """The columns of labels, each with its name; those that stand for texts as texts."""
    if labels is None:
        return
    columns = labels.reshape(len(labels), -1).T.tolist() if len(labels) else []
    usual = (LABEL,) if len(columns) == 1 else tuple(f"{LABEL} {number}" for number in range(len(columns)))
    texts = dict(graph.columns.texts)
    for name, column in zip(attributes or usual, columns, strict=True):
        yield name, [texts.get(label, label) for label in column]
