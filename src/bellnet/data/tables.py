"""Graphs from tables: one of edges, and optionally one of nodes and one of graphs.

A table is anything with named columns: a frame of pandas or polars, a dict of sequences, a structured array. None of
these libraries is imported.
"""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from bellnet.data.attributes import Given, Names, Survey
from bellnet.data.converters.conversion import warn_unused
from bellnet.data.converters.networkx_graphs import DEFAULTS, Rows, graph_of_rows
from bellnet.data.graph import Graph, GraphSet, number_classes
from bellnet.errors import DataError

CALL = "from_tables(edges, nodes)"
Row = dict[str, object]


@dataclass(frozen=True, eq=False, repr=False)
class TableSet(GraphSet):
    """Graphs of a table: a `GraphSet` with the ids of the graphs.

    Attributes:
        ids: The value of each graph in the column of graphs.
    """

    ids: tuple[Hashable, ...] = ()


def from_tables(
    edges: Any,
    nodes: Any = None,
    graphs: Any = None,
    *,
    graph: str | None = "graph",
    source: str = "source",
    target: str = "target",
    node_id: str = "node",
    y: str | None = None,
    directed: bool = False,
    node_attrs: Given = None,
    edge_attrs: Given = None,
    node_labels: Given = None,
    edge_labels: Given = None,
) -> TableSet:
    """Graphs from a table of edges, and optionally tables of nodes and of graphs.

    The order of the graphs is that of the table of graphs; without one, that of their first rows in the table of nodes,
    or of edges. The order of the nodes of a graph is that of their rows; without a table of nodes, that of their first
    edges, the source first.

    All other columns are attributes of edges and nodes, read as those of networkx graphs: see `as_graph`.

    Args:
        edges: A table with a row for each edge: a frame of pandas or polars, a dict of sequences, or anything else with
            columns. One direction of an undirected edge is enough; both are accepted if they agree.
        nodes: A table with a row for each node, including nodes without edges.
        graphs: A table with a row for each graph.
        graph: The column with the graph of a row, in all tables; None if there is a single graph.
        source: The column of `edges` with the first node of the edge.
        target: The column of `edges` with the second node.
        node_id: The column of `nodes` with the node.
        y: The column with the label or target of each graph: in `graphs`, or else in `nodes` or `edges`, where all rows
            of a graph must have the same. Texts and integers become classes, other numbers targets.
        directed: Whether edges have a direction.
        node_attrs: The column or columns that are node features, see `as_graph`.
        edge_attrs: The same for edge features.
        node_labels: The same for node labels.
        edge_labels: The same for edge labels.

    >>> table = {"graph": [1, 1, 2], "source": ["a", "b", "a"], "target": ["b", "c", "b"], "bond": ["-", "=", "-"]}
    >>> from_tables(table).graphs
    [Graph(n=3, edges=4, edge_labels), Graph(n=2, edges=2, edge_labels)]
    """
    given = {"edges": _Table("edges", edges)}
    given |= {name: _Table(name, one) for name, one in (("nodes", nodes), ("graphs", graphs)) if one is not None}
    owner = {name: table.keys(graph) for name, table in given.items()}
    ids = _ids(owner)
    ends = [*zip(given["edges"].keys(source), given["edges"].keys(target), strict=True)]
    numbers = _number_nodes(owner, given, ends, node_id)
    y_values = None if y is None else _targets_of(y, owner, given, ids)
    edge_rows = given["edges"].rows(without=(graph, source, target, y))
    node_rows = given["nodes"].rows(without=(graph, node_id, y)) if nodes is not None else None
    survey = Survey(DEFAULTS, separate=True)
    survey.add_rows("edge", edge_rows)
    survey.add_rows("node", node_rows or ({} for known in numbers.values() for _ in known))
    names, left = survey.choose(
        Names.of(node_attrs=node_attrs, edge_attrs=edge_attrs, node_labels=node_labels, edge_labels=edge_labels)
    )
    parts = _Parts(ids, owner, ends=ends, numbers=numbers, edge_rows=edge_rows, node_rows=node_rows)
    found = [parts.graph(one, names, directed=directed) for one in ids]
    warn_unused(CALL, left)
    labels, classes, targets = _labels(y, y_values)
    return TableSet("tables", found, labels, classes, targets, tuple(ids))


class _Table:
    """A table: its columns as lists, all of one length."""

    def __init__(self, name: str, table: Any) -> None:
        self.name = name
        names = table.keys() if isinstance(table, Mapping) else _column_names(table)
        if names is None:
            raise DataError(
                f"{CALL}: {name} must be a table with named columns, such as a frame of pandas or polars or a dict of "
                f"sequences, not {type(table).__module__}.{type(table).__qualname__}."
            )
        self.columns = {str(column): _as_list(table[column]) for column in names}
        lengths = {column: len(values) for column, values in self.columns.items()}
        if len(set(lengths.values())) > 1:
            said = ", ".join(f"{column!r} has {length}" for column, length in lengths.items())
            raise DataError(f"{CALL}: all columns of {name} must have equally many rows, but {said}.")
        self.length = next(iter(lengths.values()), 0)

    def keys(self, column: str | None) -> list[Hashable]:
        """The ids in a column; without a column all rows have the same."""
        if column is None:
            return [None] * self.length
        values = self._column(column)
        for row, value in enumerate(values):
            if value is None or not isinstance(value, Hashable):
                came = "nothing" if value is None else repr(value)
                raise DataError(
                    f"{CALL}: row {row} of {self.name} must have a name or a number in column {column!r}, but has "
                    f"{came}.\nFill it in, or take the row out."
                )
        return values

    def _column(self, column: str) -> list[Any]:
        if column not in self.columns:
            there = ", ".join(map(repr, self.columns)) or "none"
            raise DataError(
                f"{CALL}: {self.name} has no column {column!r}; it has {there}.\n"
                "Say how the column is called: graph=, source=, target=, node_id=."
            )
        return self.columns[column]

    def rows(self, *, without: tuple[str | None, ...]) -> list[Row]:
        """The attributes of each row, without missing values."""
        columns = {column: values for column, values in self.columns.items() if column not in without}
        return [
            {column: values[row] for column, values in columns.items() if values[row] is not None}
            for row in range(self.length)
        ]


class _Parts:
    """The rows of all tables, by graph.

    Args:
        ids: The graphs.
        owner: For each table the graph of each row.
        ends: The two nodes of each row of edges.
        numbers: For each graph the index of each node.
        edge_rows: The attributes of each edge.
        node_rows: The attributes of each node; None without a table of nodes.
    """

    def __init__(
        self,
        ids: dict[Hashable, int],
        owner: dict[str, list[Hashable]],
        *,
        ends: list[tuple[Hashable, Hashable]],
        numbers: dict[Hashable, dict[Hashable, int]],
        edge_rows: list[Row],
        node_rows: list[Row] | None,
    ) -> None:
        self.ends, self.numbers, self.edge_rows, self.node_rows = ends, numbers, edge_rows, node_rows
        self.rows_of: dict[str, dict[Hashable, list[int]]] = {}
        for name, owners in owner.items():
            self.rows_of[name] = {one: [] for one in ids}
            for row, one in enumerate(owners):
                self.rows_of[name][one].append(row)

    def graph(self, one: Hashable, names: Names, *, directed: bool) -> Graph:
        """The graph with this id."""
        numbers, rows = self.numbers[one], self.rows_of["edges"][one]
        if self.node_rows is None:
            nodes = Rows([{}] * len(numbers), [f"node {node!r}" for node in numbers], "node", CALL)
        else:
            of_nodes = self.rows_of["nodes"][one]
            wheres = [f"the node in row {row} of nodes" for row in of_nodes]
            nodes = Rows([self.node_rows[row] for row in of_nodes], wheres, "node", CALL)
        listed: dict[tuple[int, int], int] = {}
        for row in rows:
            start, end = (numbers[node] for node in self.ends[row])
            if (start, end) in listed:
                self._refuse_again(listed[start, end], row)
            if not directed and (end, start) in listed:
                self._check_opposite(listed[end, start], row)
            listed[start, end] = row
        opposite = {} if directed else {(end, start): row for (start, end), row in listed.items()}
        seen = {**opposite, **listed}
        index = torch.tensor([*seen], dtype=torch.int64).reshape(-1, 2).T
        wheres = [f"the edge in row {row} of edges" for row in seen.values()]
        of_edges = Rows([self.edge_rows[row] for row in seen.values()], wheres, "edge", CALL)
        return graph_of_rows(index, nodes, of_edges, names=names, directed=directed)

    def _refuse_again(self, before: int, row: int) -> None:
        source, target = self.ends[row]
        raise DataError(
            f"{CALL}: rows {before} and {row} of edges join the same nodes, {source!r} and {target!r}.\n"
            "Add up or take out parallel edges first."
        )

    def _check_opposite(self, before: int, row: int) -> None:
        one, other = self.edge_rows[before], self.edge_rows[row]
        for column in {**one, **other}:
            if one.get(column) != other.get(column):
                raise DataError(
                    f"{CALL}: rows {before} and {row} of edges are the two directions of one edge, but they differ in "
                    f"column {column!r}.\nMake them the same, keep one of them, or pass directed=True."
                )


def _ids(owner: dict[str, list[Hashable]]) -> dict[Hashable, int]:
    """The index of each graph."""
    leader = next(name for name in ("graphs", "nodes", "edges") if name in owner)
    ids = {one: index for index, one in enumerate(dict.fromkeys(owner[leader]))}
    if leader == "graphs" and len(ids) < len(owner["graphs"]):
        twice = next(row for row, one in enumerate(owner["graphs"]) if one in owner["graphs"][:row])
        raise DataError(
            f"{CALL}: row {twice} of graphs is of graph {owner['graphs'][twice]!r}, which has one already.\n"
            "Take one of them out."
        )
    for name in owner:
        for row, one in enumerate(owner[name]):
            if one not in ids:
                raise DataError(
                    f"{CALL}: row {row} of {name} is of graph {one!r}, which {leader} does not have.\n"
                    f"Give it a row in {leader}, or take it out."
                )
    return ids


def _number_nodes(
    owner: dict[str, list[Hashable]], given: dict[str, _Table], ends: list[tuple[Hashable, Hashable]], column: str
) -> dict[Hashable, dict[Hashable, int]]:
    """For each graph the index of each of its nodes."""
    numbers: dict[Hashable, dict[Hashable, int]] = {one: {} for owners in owner.values() for one in owners}
    if "nodes" not in given:
        for one, pair in zip(owner["edges"], ends, strict=True):
            for node in pair:
                numbers[one].setdefault(node, len(numbers[one]))
        return numbers
    for row, (one, node) in enumerate(zip(owner["nodes"], given["nodes"].keys(column), strict=True)):
        if node in numbers[one]:
            raise DataError(f"{CALL}: row {row} of nodes is node {node!r} of graph {one!r}, which has a row already.")
        numbers[one][node] = len(numbers[one])
    for row, (one, pair) in enumerate(zip(owner["edges"], ends, strict=True)):
        for node in pair:
            if node not in numbers[one]:
                raise DataError(
                    f"{CALL}: row {row} of edges has node {node!r} of graph {one!r}, which nodes does not have.\n"
                    "Give every node a row, or leave the table of nodes out."
                )
    return numbers


def _targets_of(
    column: str, owner: dict[str, list[Hashable]], given: dict[str, _Table], ids: dict[Hashable, int]
) -> list[Any]:
    """The value of each graph in a column."""
    name = next(
        (name for name in ("graphs", "nodes", "edges") if name in given and column in given[name].columns), None
    )
    if name is None:
        raise DataError(f"{CALL}: no table has a column {column!r}, which y names.")
    found: dict[Hashable, Any] = {}
    for row, (one, value) in enumerate(zip(owner[name], given[name].columns[column], strict=True)):
        if value is None:
            raise DataError(f"{CALL}: row {row} of {name} has nothing in column {column!r}, which y names.")
        if found.setdefault(one, value) != value:
            raise DataError(
                f"{CALL}: row {row} of {name} has {value!r} in column {column!r}, but an earlier row of graph {one!r} "
                f"has {found[one]!r}.\nThere is one for each graph; give a table of graphs if that is easier."
            )
    for one in ids:
        if one not in found:
            raise DataError(f"{CALL}: graph {one!r} has no row in {name}, so nothing in column {column!r}.")
    return [found[one] for one in ids]


def _labels(column: str | None, values: list[Any] | None) -> tuple[Tensor | None, tuple[int | str, ...], Tensor | None]:
    """Labels and classes for texts or integers, targets for other numbers."""
    if values is None:
        return None, (), None
    kinds = {type(value) for value in values}
    if kinds <= {str} or kinds <= {int, bool}:
        numbers, classes = number_classes(values)
        return numbers, classes, None
    if kinds <= {int, float, bool}:
        return None, (), torch.tensor([[float(value)] for value in values])
    raise DataError(
        f"{CALL}: column {column!r}, which y names, must be all text or all numbers, but it has "
        f"{' and '.join(sorted(kind.__name__ for kind in kinds))}."
    )


def _column_names(table: Any) -> list[Any] | None:
    """The names of the columns of frames and structured arrays; None if there are none."""
    of_array = getattr(getattr(table, "dtype", None), "names", None)
    for names in (getattr(table, "column_names", None), getattr(table, "columns", None), of_array):
        if names is not None:
            return list(names)
    return None


def _as_list(values: Any) -> list[Any]:
    """A column as plain values, None where one is missing."""
    for method in ("to_list", "to_pylist", "tolist"):
        if hasattr(values, method):
            values = getattr(values, method)()
            break
    return [None if _is_missing(value) else value for value in values]


def _is_missing(value: object) -> bool:
    """Whether a value is missing: None, NaN, or that of another library, which is not equal to itself."""
    try:
        return value is None or bool(value != value)
    except (TypeError, ValueError):  # pandas.NA is neither, and arrays have many values
        return type(value).__name__ == "NAType"
