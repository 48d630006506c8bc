"""networkx graphs."""

import hashlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from bellnet.data.graph import Graph
from bellnet.data.kinds.names import Names
from bellnet.errors import DataError
from bellnet.extras import require

if TYPE_CHECKING:
    import networkx

FEATURES, WEIGHT, LABEL = "features", "weight", "label"


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
    nodes = [data for _, data in graph.nodes(data=True)]
    node_wheres = [f"node {node!r}" for node in graph.nodes]
    wheres = [f"the edge between {node_wheres[source]} and {node_wheres[target]}" for source, target, _ in edges]
    edge_data = [data for _, _, data in edges]
    edge_names = _usual(edge_data, (FEATURES, WEIGHT)) if names.edge is None else names.edge
    node_names = _usual(nodes, (FEATURES,)) if names.node is None else names.node
    return Graph(
        len(nodes),
        torch.tensor([(source, target) for source, target, _ in edges], dtype=torch.int64)
        .reshape(-1, 2)
        .T.contiguous(),
        edge_features=_features(edge_data, wheres, edge_names, "edge"),
        node_features=_features(nodes, node_wheres, node_names, "node"),
        node_labels=_labels(nodes, node_wheres, names.label),
        directed=directed,
    )


def to_networkx(graph: Graph) -> "networkx.Graph | networkx.DiGraph":
    """A networkx `Graph` or `DiGraph` with nodes 0 to n - 1. Needs the extra `graphs`.

    Node features become the node attribute "features", node labels "label". The only feature of an edge becomes the
    edge attribute "weight", several become "features".
    """
    require("networkx", extra="graphs", call="to_networkx")
    import networkx

    found = networkx.DiGraph() if graph.directed else networkx.Graph()
    found.add_nodes_from(range(graph.n))
    for name, values in ((FEATURES, graph.node_features), (LABEL, graph.node_labels)):
        for node, value in enumerate([] if values is None else values.tolist()):
            found.nodes[node][name] = tuple(value) if isinstance(value, list) else value
    found.add_edges_from(graph.edge_index.T.tolist())
    if graph.edge_features is not None:
        for (source, target), row in zip(graph.edge_index.T.tolist(), graph.edge_features.tolist(), strict=True):
            found.edges[source, target].update({WEIGHT: row[0]} if len(row) == 1 else {FEATURES: tuple(row)})
    return found


def _usual(attributes: Sequence[Mapping[str, object]], names: tuple[str, ...]) -> tuple[str, ...]:
    """The first of the usual names that occurs at all."""
    for name in names:
        if any(name in data for data in attributes):
            return (name,)
    return ()


def _features(
    attributes: Sequence[Mapping[str, object]], wheres: Sequence[str], names: tuple[str, ...], owner: str
) -> Tensor | None:
    if not names:
        return None
    rows: list[list[float]] = []
    for data, where in zip(attributes, wheres, strict=True):
        row: list[float] = []
        for name in names:
            row += _numbers(data, name, where, owner)
        if rows and len(row) != len(rows[0]):
            raise DataError(
                f"as_graph(graph): all {owner}s must have equally many features, but {wheres[0]} has {len(rows[0])} "
                f"and {where} has {len(row)}."
            )
        rows.append(row)
    return torch.tensor(rows, dtype=torch.float64).reshape(len(rows), -1 if rows else len(names))


def _numbers(data: Mapping[str, object], name: str, where: str, owner: str) -> list[float]:
    if name not in data:
        there = ", ".join(map(repr, data)) or "none"
        raise DataError(
            f"as_graph(graph): {where} has no attribute {name!r} (it has {there}).\n"
            f"Give every {owner} one, or name others: as_graph(graph, {owner}=...)."
        )
    value = data[name]
    try:
        with suppress(TypeError, ValueError, RuntimeError):
            return torch.as_tensor(value, dtype=torch.float64).flatten().tolist()
    except OverflowError as reason:
        # The number is not shown: it may have more digits than Python writes.
        raise DataError(
            f"as_graph(graph): attribute {name!r} of {where} is beyond all numbers of 64 bits with floating point.\n"
            "Scale the attribute, or leave it out."
        ) from reason
    raise DataError(
        f"as_graph(graph): attribute {name!r} of {where} must be a number or a list of numbers, not {value!r}."
    )


def _labels(nodes: Sequence[Mapping[str, object]], wheres: Sequence[str], name: str | None) -> Tensor | None:
    if name is None and not any(LABEL in data for data in nodes):
        return None
    wanted = LABEL if name is None else name
    labels = []
    for data, where in zip(nodes, wheres, strict=True):
        if wanted not in data:
            raise DataError(
                f"as_graph(graph): {where} has no attribute {wanted!r}.\n"
                "Give every node a label, or name another attribute: as_graph(graph, label=...)."
            )
        labels.append(_label(data[wanted], wanted, where))
    return torch.tensor(labels, dtype=torch.int64)


def _label(value: object, name: str, where: str) -> int:
    if isinstance(value, str):
        return text_label(value)
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise DataError(
            f"as_graph(graph): the label {name!r} of {where} must be a whole number or text, not {value!r}.\n"
            "Numbers with fractions can be features: as_graph(graph, node=...)."
        )
    number = int(value.__index__())
    if not -(2**63) <= number < 2**63:
        raise DataError(
            f"as_graph(graph): the label {name!r} of {where} must fit into 64 bits, came {number}.\n"
            "Number the labels anew, or give text."
        )
    return number


def text_label(text: str) -> int:
    """The whole number that stands for a label that is text: 56 bits of its digest, the same everywhere."""
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=7).digest(), "big")
