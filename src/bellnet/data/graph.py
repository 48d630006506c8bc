"""`Graph`, the neutral form that graphs of all kinds are converted to and from, and sets of graphs with labels.

Nodes are numbered from 0. Edges are directed pairs, possibly self-loops; an undirected graph has both directions of
each edge. The constructor validates its arguments, so that every `Graph` is consistent.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from bellnet.errors import DataError, type_name

FIELDS = {
    "node_attrs": "node_features",
    "edge_attrs": "edge_features",
    "node_labels": "node_labels",
    "edge_labels": "edge_labels",
}
"""For each role of an attribute (the argument that names it) the field of `Graph` that holds it."""
ROLES = tuple(FIELDS)


@dataclass(frozen=True)
class Columns:
    """The names behind the columns of a `Graph`, or of all columns that an `Encoding` reads.

    A role is None where its columns have no names: in a graph made by hand, or where attributes have the default names
    of their library, which differ between libraries.

    Args:
        node_attrs: For each node feature the attribute that it is a part of.
        edge_attrs: The same for edge features.
        node_labels: For each column of node labels its attribute.
        edge_labels: The same for edge labels.
        texts: The labels that stand for texts, in ascending order, each with its text.
    """

    node_attrs: tuple[str, ...] | None = None
    edge_attrs: tuple[str, ...] | None = None
    node_labels: tuple[str, ...] | None = None
    edge_labels: tuple[str, ...] | None = None
    texts: tuple[tuple[int, str], ...] = ()

    @classmethod
    def common(cls, all_columns: Iterable["Columns"]) -> "Columns":
        """The names on which all that have names agree, and the texts of all."""
        known = set(all_columns)
        names = {role: {getattr(columns, role) for columns in known} - {None} for role in ROLES}
        agreed = {role: found.pop() if len(found) == 1 else None for role, found in names.items()}
        return cls(**agreed, texts=tuple(sorted({pair for columns in known for pair in columns.texts})))


NO_COLUMNS = Columns()


@dataclass(frozen=True, eq=False)
class Graph:
    """A graph with features and labels of its nodes and edges.

    Two graphs are equal if they have the same nodes and edges with the same features and labels; neither the order of
    edges nor the names of columns matter. Tensors are moved to the CPU and detached.

    Args:
        n: The number of nodes.
        edge_index: (2, edges) int64, one column for each edge: source, target. No edge occurs twice.
        edge_features: (edges, features) floating point, or None.
        node_features: (n, features) floating point, or None.
        node_labels: (n,) int64, the label of each node, or (n, columns) if nodes have several; or None.
        directed: Whether edges have a direction. If not, both directions of each edge are required, with the same
            features and labels; a self-loop occurs once.
        edge_labels: (edges,) int64, the label of each edge, or (edges, columns); or None.
        columns: The names of features and labels.

    >>> path = Graph(3, [[0, 1, 1, 2], [1, 0, 2, 1]])
    >>> path
    Graph(n=3, edges=4)
    >>> path == Graph(3, [[2, 1, 1, 0], [1, 2, 0, 1]])
    True
    """

    n: int
    edge_index: Tensor
    edge_features: Tensor | None = None
    node_features: Tensor | None = None
    node_labels: Tensor | None = None
    directed: bool = False
    edge_labels: Tensor | None = None
    columns: Columns = NO_COLUMNS

    def __post_init__(self) -> None:
        if type(self.n) is not int or self.n < 0:
            raise DataError(f"Graph: n must be the number of nodes, an integer from 0 up, not {self.n!r}.")
        object.__setattr__(self, "edge_index", _edge_index(self.edge_index, self.n))
        for name in ("node_labels", "edge_labels", "edge_features", "node_features"):
            if (value := getattr(self, name)) is not None:
                owner, check = name[:4], _labels if name.endswith("labels") else _features
                object.__setattr__(self, name, check(value, name, owner, self.n if owner == "node" else self.n_edges))
        _check_edges(self)

    @property
    def n_edges(self) -> int:
        """The number of edges: both directions count, a self-loop counts once."""
        return int(self.edge_index.shape[1])

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Graph):
            return NotImplemented
        if (self.n, self.n_edges, self.directed) != (other.n, other.n_edges, other.directed):
            return False
        mine, theirs = (_keys(graph).argsort() for graph in (self, other))
        return (
            _same(self.edge_index[:, mine], other.edge_index[:, theirs])
            and _same(self.node_labels, other.node_labels)
            and _same(self.node_features, other.node_features)
            and _same(self.edge_features, other.edge_features, mine, theirs)
            and _same(self.edge_labels, other.edge_labels, mine, theirs)
        )

    def __hash__(self) -> int:
        return hash((self.n, self.n_edges, self.directed))

    def __repr__(self) -> str:
        parts = [f"n={self.n}", f"edges={self.n_edges}"]
        for name in ("edge_features", "node_features"):
            value = getattr(self, name)
            parts += [] if value is None else [f"{name}={value.shape[1]}"]
        parts += [name for name in ("node_labels", "edge_labels") if getattr(self, name) is not None]
        parts += ["directed"] if self.directed else []
        return f"Graph({', '.join(parts)})"


def is_symmetric(graph: Graph) -> bool:
    """Whether each edge has its opposite, with the same features and labels."""
    return _symmetric(graph, *_keys(graph).sort())


def with_detected_direction(n: int, edge_index: Tensor, **fields: Any) -> Graph:
    """The graph with these edges, directed if they are not symmetric."""
    graph = Graph(n, edge_index, directed=True, **fields)
    object.__setattr__(graph, "directed", not is_symmetric(graph))
    return graph


def _symmetric(graph: Graph, keys: Tensor, order: Tensor) -> bool:
    """Whether edges with these sorted keys are symmetric."""
    opposite, other = _keys(graph, backwards=True).sort()
    return torch.equal(keys, opposite) and all(
        values is None or torch.equal(values[order], values[other])
        for values in (graph.edge_features, graph.edge_labels)
    )


def _keys(graph: Graph, *, backwards: bool = False) -> Tensor:
    """A distinct integer for each edge."""
    source, target = (1, 0) if backwards else (0, 1)
    return graph.edge_index[source] * graph.n + graph.edge_index[target]


def _same(a: Tensor | None, b: Tensor | None, rows: Any = slice(None), other_rows: Any = slice(None)) -> bool:
    return a is b if a is None or b is None else torch.equal(a[rows], b[other_rows])


def _tensor(value: object, name: str, expected: str, *, integers: bool) -> Tensor:
    try:
        found = torch.as_tensor(value).detach().cpu()
    except (TypeError, ValueError, RuntimeError) as reason:
        raise DataError(
            f"Graph: {name} must be {expected}, not {type_name(value)}.\nPass a tensor or nested lists of numbers."
        ) from reason
    if not integers:
        return found
    if found.numel() and (found.is_floating_point() or found.is_complex() or found.dtype == torch.bool):
        raise DataError(
            f"Graph: {name} must be {expected}, but the dtype is {found.dtype}.\n"
            "Pass integers: tensor.long() where the values are integers."
        )
    return found.to(torch.int64)  # an empty list has no dtype


def _edge_index(value: object, n: int) -> Tensor:
    expected = "(2, edges) integers, one column for each edge"
    index = _tensor(value, "edge_index", expected, integers=True)
    if index.ndim != 2 or index.shape[0] != 2:
        raise DataError(
            f"Graph: edge_index must be {expected}, but the shape is {tuple(index.shape)}."
            + ("\nIt seems to be transposed: pass edge_index.T." if index.ndim == 2 and index.shape[1] == 2 else "")
        )
    outside = ((index < 0) | (index >= n)).any(0)
    if outside.any():
        column = int(outside.nonzero()[0])
        source, target = index[:, column].tolist()
        raise DataError(
            f"Graph: edge_index must have nodes from 0 up and less than n = {n}, but column {column} is ({source}, "
            f"{target}).\nNumber the nodes from 0, or pass a larger n."
        )
    return index


def _labels(value: object, name: str, owner: str, rows: int) -> Tensor:
    expected = f"({rows},) or ({rows}, columns) integers, one row for each {owner}"
    labels = _tensor(value, name, expected, integers=True)
    if labels.ndim not in (1, 2) or len(labels) != rows:
        raise DataError(f"Graph: {name} must be {expected}, but the shape is {tuple(labels.shape)}.")
    return labels.squeeze(-1) if labels.ndim == 2 and labels.shape[1] == 1 else labels


def _features(value: object, name: str, owner: str, rows: int) -> Tensor:
    expected = f"({rows}, features) floating point, one row for each {owner}"
    features = _tensor(value, name, expected, integers=False)
    if features.ndim != 2 or features.shape[0] != rows:
        raise DataError(
            f"Graph: {name} must be {expected}, but the shape is {tuple(features.shape)}."
            + ("\nFor one feature pass values.unsqueeze(-1)." if features.ndim == 1 else "")
        )
    if not features.is_floating_point():
        raise DataError(f"Graph: {name} must be {expected}, but the dtype is {features.dtype}.\nPass values.float().")
    if not bool(features.isfinite().all()):
        row, column = features.isfinite().logical_not().nonzero()[0].tolist()
        raise DataError(
            f"Graph: {name} must be finite, but feature {column} of {owner} {row} is {features[row, column].item()}.\n"
            "Fill in or remove missing values, for instance with values.nan_to_num()."
        )
    return features


def _check_edges(graph: Graph) -> None:
    keys, order = _keys(graph).sort()
    again = keys[1:] == keys[:-1]
    if again.any():
        source, target = graph.edge_index[:, order[int(again.nonzero()[0])]].tolist()
        raise DataError(
            f"Graph: no edge may occur twice, but ({source}, {target}) does.\n"
            "Add up or drop parallel edges first, for instance with torch_geometric.utils.coalesce."
        )
    if not graph.directed and not _symmetric(graph, keys, order):
        raise DataError(f"Graph: {next(_asymmetries(graph))}, or pass directed=True.")


def _asymmetries(graph: Graph) -> Iterator[str]:
    rows = {edge: row for row, edge in enumerate(map(tuple, graph.edge_index.T.tolist()))}
    for (source, target), row in rows.items():
        if (opposite := rows.get((target, source))) is None:
            yield (
                "an undirected graph must have both directions of each edge, but there is "
                f"({source}, {target}) without ({target}, {source}).\nAdd the other direction"
            )
            continue
        for name in ("features", "labels"):
            values = getattr(graph, f"edge_{name}")
            if values is not None and not torch.equal(values[row], values[opposite]):
                yield (
                    f"an undirected graph must have the same {name} in both directions of an edge, but those of "
                    f"({source}, {target}) and ({target}, {source}) differ.\nMake them the same"
                )


def undirected(n: int, pairs: Sequence[Sequence[int]] | Tensor) -> Graph:
    """The undirected graph with these edges, each given once as a pair of nodes.

    >>> undirected(3, [(0, 1), (1, 2)])
    Graph(n=3, edges=4)
    """
    pairs = torch.as_tensor(pairs, dtype=torch.int64).reshape(-1, 2)
    loops = pairs[:, 0] == pairs[:, 1]
    return Graph(n, torch.cat([pairs, pairs[~loops].flip(1)]).T.contiguous())


@dataclass(frozen=True, eq=False)
class GraphSet:
    """A set of graphs with labels or targets.

    Attributes:
        name: The name of the set.
        graphs: The graphs.
        labels: (graphs,) int64, the class of each graph, numbered from 0; None if there are no classes.
        classes: The original value of each class.
        targets: (graphs, targets) floating point, numbers to predict; None if there are none.
        splits: For each published split the indices of its training graphs and of its test graphs, as arrays, or None.
            Some published splits leave a few graphs out of every test set.
        ids: The name of each graph: of its file, or in the table of graphs; empty if graphs have no names.
    """

    name: str
    graphs: list[Graph]
    labels: Tensor | None
    classes: tuple[int | str, ...] = ()
    targets: Tensor | None = None
    splits: list[tuple[Any, Any]] | None = None
    ids: tuple[Any, ...] = ()

    def __post_init__(self) -> None:
        for name in ("labels", "targets"):
            values = getattr(self, name)
            if values is not None and len(values) != len(self.graphs):
                raise DataError(f"{self.name}: there are {len(self.graphs)} graphs, but {len(values)} {name}.")

    def __len__(self) -> int:
        return len(self.graphs)

    def part(self, indices: Iterable[int]) -> tuple[list[Graph], Tensor | None]:
        """The graphs at these indices and their labels, for instance one side of a split."""
        chosen = [int(index) for index in indices]
        graphs = [self.graphs[index] for index in chosen]
        return graphs, None if self.labels is None else self.labels[torch.tensor(chosen, dtype=torch.int64)]

    def __repr__(self) -> str:
        parts = [repr(self.name), f"{len(self.graphs)} graphs"]
        parts += [] if self.labels is None else [f"{len(self.classes)} classes"]
        parts += [] if self.targets is None else [f"{self.targets.shape[1]} targets"]
        return f"GraphSet({', '.join(parts)})"


def number_classes(values: list[int] | list[str]) -> tuple[Tensor, tuple[int | str, ...]]:
    """The class of each value, numbered from 0 in the order of the values, and the value of each class.

    >>> number_classes([1, -1, 1])
    (tensor([1, 0, 1]), (-1, 1))
    """
    classes: tuple[int | str, ...] = tuple(sorted(set(values)))
    number = {value: index for index, value in enumerate(classes)}
    return torch.tensor([number[value] for value in values], dtype=torch.int64), classes
