"""networkx graphs as `Graph`, and back; attributes of single nodes and edges as features and labels."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from bellnet._utils.optional import require
from bellnet.data.attributes import DAMAGE, Names, Source, Survey, read_fields, text_label
from bellnet.data.graph import ROLES, Graph
from bellnet.errors import DataError, did_you_mean

if TYPE_CHECKING:
    import networkx

FEATURES, WEIGHT, LABEL = "features", "weight", "label"
DEFAULTS = {
    "node_attrs": (FEATURES,),
    "edge_attrs": (FEATURES, WEIGHT),
    "node_labels": (LABEL,),
    "edge_labels": (LABEL,),
}
"""The default names of the attributes of each role."""
CALL = "as_graph(graph)"


class Rows(Source):
    """Attributes in rows: for each node or edge a mapping from names to values, and its position in messages."""

    def __init__(
        self, values: Sequence[Mapping[str, object]], wheres: Sequence[str], owner: str, call: str = CALL
    ) -> None:
        super().__init__(owner, call)
        self.values, self.wheres = values, wheres

    def __len__(self) -> int:
        return len(self.values)

    def has(self, name: str) -> bool:
        """Whether any row has this attribute."""
        return any(name in row for row in self.values)

    def numbers(self, name: str) -> Tensor:
        """An attribute as a matrix."""
        rows: list[list[float]] = []
        for value, where in self._column(name, "attrs"):
            rows.append(self._numbers(value, name, where))
            if len(rows[-1]) != len(rows[0]):
                raise DataError(
                    f"{self.call}: attribute {name!r} must have equally many numbers for each {self.owner}, but "
                    f"{self.wheres[0]} has {len(rows[0])} and {where} has {len(rows[-1])}."
                )
        return torch.tensor(rows, dtype=torch.float64)

    def label_column(self, name: str) -> tuple[Tensor, dict[int, str]]:
        """An attribute as labels, and the texts of text labels."""
        texts = {}
        labels = []
        for value, where in self._column(name, "labels"):
            labels.append(self._label(value, name, where))
            if isinstance(value, str):
                texts[labels[-1]] = value
        return torch.tensor(labels, dtype=torch.int64), texts

    def _column(self, name: str, kind: str) -> Iterator[tuple[object, str]]:
        """Each value of an attribute, with its position in messages; a `DataError` if one is missing."""
        for row, where in zip(self.values, self.wheres, strict=True):
            if (value := row.get(name)) is None:
                there, meant = ", ".join(map(repr, row)) or "none", did_you_mean(name, map(str, row))
                raise DataError(
                    f"{self.call}: {where} has no attribute {name!r} (it has {there}).{' ' * bool(meant)}{meant}\n"
                    f"Give every {self.owner} one, or name others: {self._with(kind)}."
                )
            yield value, where

    def _numbers(self, value: object, name: str, where: str) -> list[float]:
        try:
            if isinstance(value, int | float):
                return [float(value)]
            with suppress(TypeError, ValueError, RuntimeError):
                return torch.as_tensor(value, dtype=torch.float64).flatten().tolist()
        except OverflowError as reason:
            # Without the number, which may have more digits than Python converts to text.
            raise DataError(
                f"{self.call}: attribute {name!r} of {where} does not fit float64.\n"
                "Scale the attribute, or leave it out."
            ) from reason
        advice = f"\nTexts can be labels: {self._with('labels', repr(name))}." if isinstance(value, str) else ""
        raise DataError(
            f"{self.call}: attribute {name!r} of {where} must be a number or a list of numbers, not {value!r}.{advice}"
        )

    def _label(self, value: object, name: str, where: str) -> int:
        if isinstance(value, str):
            return text_label(value)
        if isinstance(value, bool) or not hasattr(value, "__index__"):
            raise DataError(
                f"{self.call}: the label {name!r} of {where} must be an integer or text, not {value!r}.\n"
                f"Other numbers can be features: {self._with('attrs')}."
            )
        number = int(value.__index__())
        if not -(2**63) <= number < 2**63:
            raise DataError(
                f"{self.call}: the label {name!r} of {where} must fit int64, but it is {number}.\n"
                "Use smaller labels, or text."
            )
        return number

    def _with(self, kind: str, value: str = "...") -> str:
        """The call with another argument."""
        return f"{self.call[:-1]}, {self.owner}_{kind}={value})"


def graph_of_rows(edge_index: Tensor, nodes: Rows, edges: Rows, *, names: Names, directed: bool) -> Graph:
    """The graph with these edges and attributes; undirected edges are given in both directions."""
    # Without rows, the number of features is not known.
    names = replace(names, **{role: () for role in ROLES if not (nodes if role.startswith("node") else edges).values})
    fields = read_fields(nodes, edges, names, DEFAULTS)
    return Graph(len(nodes), edge_index.contiguous(), directed=directed, **fields)


def survey_networkx(graphs: Iterable[Any]) -> Survey:
    """All attributes of nodes and edges of some graphs."""
    survey = Survey(DEFAULTS, separate=True)
    for graph in graphs:
        with suppress(*DAMAGE):  # the conversion raises, with the position of the graph
            survey.add_rows("node", (data for _, data in graph.nodes(data=True)))
            survey.add_rows("edge", (data for _, _, data in graph.edges(data=True)))
    return survey


def from_networkx(graph: Any, names: Names) -> Graph:
    """The graph, its nodes numbered in the order of `graph.nodes`."""
    if graph.is_multigraph():
        raise DataError(
            f"{CALL}: a Graph has no parallel edges, but this is a networkx "
            f"{type(graph).__name__}.\nMerge them first, for instance with networkx.Graph(graph) or "
            "networkx.DiGraph(graph)."
        )
    number = {node: index for index, node in enumerate(graph.nodes)}
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


def to_networkx(graph: Graph) -> "networkx.Graph | networkx.DiGraph":
    """A networkx `Graph` or `DiGraph` with nodes 0 to n - 1. Needs the extra `graphs`.

    Node features become the node attribute "features". A single feature of an edge becomes the edge attribute "weight",
    several become "features". Labels become the attribute "label" of nodes and edges, or the one that they were read
    from; labels that stand for texts become texts.
    """
    require("networkx", extra="graphs", call="to_networkx")
    import networkx

    found = networkx.DiGraph() if graph.directed else networkx.Graph()
    ends = [tuple(edge) for edge in graph.edge_index.T.tolist()]
    found.add_nodes_from(range(graph.n))
    found.add_edges_from(ends)
    for name, values in _attributes(graph, "node"):
        networkx.set_node_attributes(found, dict(enumerate(values)), name)
    for name, values in _attributes(graph, "edge"):
        networkx.set_edge_attributes(found, dict(zip(ends, values, strict=True)), name)
    return found


def _attributes(graph: Graph, owner: str) -> Iterator[tuple[str, list[Any]]]:
    """The attributes of nodes or edges, each with its values; labels that stand for texts are texts."""
    features, labels = getattr(graph, f"{owner}_features"), getattr(graph, f"{owner}_labels")
    if features is not None:
        is_weight = owner == "edge" and features.shape[1] == 1
        yield (WEIGHT, features[:, 0].tolist()) if is_weight else (FEATURES, [*map(tuple, features.tolist())])
    if labels is not None and len(labels):
        columns = labels.reshape(len(labels), -1).T.tolist()
        default = (LABEL,) if len(columns) == 1 else tuple(f"{LABEL} {number}" for number in range(len(columns)))
        texts = dict(graph.columns.texts)
        for name, column in zip(getattr(graph.columns, f"{owner}_labels") or default, columns, strict=True):
            yield name, [texts.get(label, label) for label in column]
