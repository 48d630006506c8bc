"""Graphs from tables: one of edges, and optionally one of nodes and one of graphs.

A table is anything with named columns: a frame of pandas or polars, a dict of sequences, a structured array. None of
these libraries is imported.
"""

from collections.abc import Hashable, Mapping
from typing import Any, Unpack

import torch
from torch import Tensor

from bellnet.data.attributes import GivenNames, Names, Survey
from bellnet.data.converters.conversion import warn_unused
from bellnet.data.converters.networkx_graphs import DEFAULTS, Rows, graph_of_rows
from bellnet.data.graph import GraphSet, number_classes
from bellnet.errors import DataError, type_name

CALL = "from_tables(edges, nodes)"


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
    **names: Unpack[GivenNames],
) -> GraphSet:
    """Graphs from a table of edges, and optionally tables of nodes and of graphs.

    The order of the graphs is that of the table of graphs; without one, that of their first rows in the table of nodes,
    or of edges. The order of the nodes of a graph is that of their rows; without a table of nodes, that of their first
    edges, the source first. `ids` are the graphs as in the column of graphs.

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
        **names: `node_attrs`, `edge_attrs`, `node_labels` and `edge_labels`: the columns that are features and labels,
            see `as_graph`.

    >>> table = {"graph": [1, 1, 2], "source": ["a", "b", "a"], "target": ["b", "c", "b"], "bond": ["-", "=", "-"]}
    >>> from_tables(table).graphs
    [Graph(n=3, edges=4, edge_labels), Graph(n=2, edges=2, edge_labels)]
    """
    given = {"graphs": graphs, "nodes": nodes, "edges": edges}
    tables = {name: _Table(name, table, graph) for name, table in given.items() if name == "edges" or table is not None}
    ids = _ids(tables)
    ends = [*zip(tables["edges"].keys(source), tables["edges"].keys(target), strict=True)]
    numbers = _number_nodes(tables, ids, ends, node_id)
    labels, classes, targets = (None, (), None) if y is None else _labels(y, _targets_of(y, tables, ids))
    edge_rows = tables["edges"].rows(without=(graph, source, target, y))
    node_rows = tables["nodes"].rows(without=(graph, node_id, y)) if "nodes" in tables else None
    survey = Survey(DEFAULTS, separate=True)
    survey.add_rows("edge", edge_rows)
    survey.add_rows("node", node_rows or ({} for known in numbers.values() for _ in known))
    chosen, unused = survey.choose(Names.of(**names))
    found = []
    for one in ids:
        wheres = [f"node {node!r}" for node in numbers[one]]
        of_nodes = Rows([{}] * len(wheres), wheres, "node", CALL)
        if node_rows is not None:
            rows = tables["nodes"].rows_of.get(one, [])
            of_nodes = Rows(
                [node_rows[row] for row in rows], [f"the node in row {row} of nodes" for row in rows], "node", CALL
            )
        pairs = _pairs(tables["edges"].rows_of.get(one, []), ends, edge_rows, directed=directed)
        index = [[numbers[one][node] for node in pair] for pair in pairs]
        of_edges = Rows(
            [edge_rows[row] for row in pairs.values()],
            [f"the edge in row {row} of edges" for row in pairs.values()],
            "edge",
            CALL,
        )
        edge_index = torch.tensor(index, dtype=torch.int64).reshape(-1, 2).T
        found.append(graph_of_rows(edge_index, of_nodes, of_edges, names=chosen, directed=directed))
    warn_unused(CALL, unused)
    return GraphSet("tables", found, labels, classes, targets, ids=tuple(ids))


class _Table:
    """A table: its columns as lists, all of one length.

    Attributes:
        owners: The graph of each row.
        rows_of: The rows of each graph.
    """

    def __init__(self, name: str, table: Any, graph: str | None) -> None:
        self.name = name
        names = table.keys() if isinstance(table, Mapping) else _column_names(table)
        if names is None:
            raise DataError(
                f"{CALL}: {name} must be a table with named columns, such as a frame of pandas or polars or a dict of "
                f"sequences, not {type_name(table)}."
            )
        self.columns = {str(column): _as_list(table[column]) for column in names}
        lengths = {column: len(values) for column, values in self.columns.items()}
        if len(set(lengths.values())) > 1:
            listing = ", ".join(f"{column!r} has {length}" for column, length in lengths.items())
            raise DataError(f"{CALL}: all columns of {name} must have equally many rows, but {listing}.")
        self.length = next(iter(lengths.values()), 0)
        self.owners = self.keys(graph)
        self.rows_of: dict[Hashable, list[int]] = {}
        for row, one in enumerate(self.owners):
            self.rows_of.setdefault(one, []).append(row)

    def keys(self, column: str | None) -> list[Hashable]:
        """The ids in a column; without a column all rows have the same."""
        if column is None:
            return [None] * self.length
        if column not in self.columns:
            there = ", ".join(map(repr, self.columns)) or "none"
            raise DataError(
                f"{CALL}: {self.name} has no column {column!r}; it has {there}.\n"
                "Name the column: graph=, source=, target=, node_id=."
            )
        for row, value in enumerate(self.columns[column]):
            if value is None or not isinstance(value, Hashable):
                raise DataError(
                    f"{CALL}: row {row} of {self.name} must have a name or a number in column {column!r}, got "
                    f"{'a missing value' if value is None else repr(value)}.\nFill it in, or remove the row."
                )
        return self.columns[column]

    def rows(self, *, without: tuple[str | None, ...]) -> list[dict[str, object]]:
        """The attributes of each row, without missing values."""
        columns = {column: values for column, values in self.columns.items() if column not in without}
        return [
            {column: values[row] for column, values in columns.items() if values[row] is not None}
            for row in range(self.length)
        ]


def _ids(tables: dict[str, _Table]) -> list[Hashable]:
    """The graphs, in the order of the first table; a `DataError` if another table has more."""
    first = next(iter(tables.values()))
    for one, rows in first.rows_of.items() if first.name == "graphs" else ():
        if len(rows) > 1:
            raise DataError(
                f"{CALL}: rows {rows[0]} and {rows[1]} of graphs are both of graph {one!r}.\nRemove one of them."
            )
    for table in tables.values():
        for one, rows in table.rows_of.items():
            if one not in first.rows_of:
                raise DataError(
                    f"{CALL}: row {rows[0]} of {table.name} is of graph {one!r}, which {first.name} does not have.\n"
                    f"Add a row to {first.name}, or remove this one."
                )
    return [*first.rows_of]


def _number_nodes(
    tables: dict[str, _Table], ids: list[Hashable], ends: list[tuple[Hashable, Hashable]], column: str
) -> dict[Hashable, dict[Hashable, int]]:
    """For each graph the index of each of its nodes."""
    numbers: dict[Hashable, dict[Hashable, int]] = {one: {} for one in ids}
    nodes = tables.get("nodes")
    for row, (one, node) in enumerate(zip(nodes.owners, nodes.keys(column), strict=True) if nodes else ()):
        if node in numbers[one]:
            raise DataError(f"{CALL}: row {row} of nodes is node {node!r} of graph {one!r}, which has a row already.")
        numbers[one][node] = len(numbers[one])
    for row, (one, pair) in enumerate(zip(tables["edges"].owners, ends, strict=True)):
        for node in pair:
            if nodes and node not in numbers[one]:
                raise DataError(
                    f"{CALL}: row {row} of edges has node {node!r} of graph {one!r}, which nodes does not have.\n"
                    "Add a row for each node, or pass no table of nodes."
                )
            numbers[one].setdefault(node, len(numbers[one]))
    return numbers


def _pairs(
    rows: list[int], ends: list[tuple[Hashable, Hashable]], edge_rows: list[dict[str, object]], *, directed: bool
) -> dict[tuple[Hashable, Hashable], int]:
    """The edges of a graph, each with its row; of an undirected graph in both directions."""
    given: dict[tuple[Hashable, Hashable], int] = {}
    for row in rows:
        source, target = ends[row]
        if (source, target) in given:
            raise DataError(
                f"{CALL}: rows {given[source, target]} and {row} of edges join the same nodes, {source!r} and "
                f"{target!r}.\nAdd up or remove parallel edges first."
            )
        before = None if directed else given.get((target, source))
        one, other = edge_rows[row], edge_rows[row if before is None else before]
        for column in {**other, **one}:
            if one.get(column) != other.get(column):
                raise DataError(
                    f"{CALL}: rows {before} and {row} of edges are the two directions of one edge, but they differ in "
                    f"column {column!r}.\nMake them equal, remove one of them, or pass directed=True."
                )
        given[source, target] = row
    return given if directed else {**{(target, source): row for (source, target), row in given.items()}, **given}


def _targets_of(column: str, tables: dict[str, _Table], ids: list[Hashable]) -> list[Any]:
    """The value of each graph in a column."""
    table = next((table for table in tables.values() if column in table.columns), None)
    if table is None:
        raise DataError(f"{CALL}: no table has a column {column!r}, which y names.")
    found: dict[Hashable, Any] = {}
    for row, (one, value) in enumerate(zip(table.owners, table.columns[column], strict=True)):
        if value is None:
            raise DataError(f"{CALL}: row {row} of {table.name} has no value in column {column!r}, which y names.")
        if found.setdefault(one, value) != value:
            raise DataError(
                f"{CALL}: row {row} of {table.name} has {value!r} in column {column!r}, but an earlier row of graph "
                f"{one!r} has {found[one]!r}.\nGive each graph one value, for instance in a table of graphs."
            )
    for one in ids:
        if one not in found:
            raise DataError(f"{CALL}: graph {one!r} has no row in {table.name}, so no value in column {column!r}.")
    return [found[one] for one in ids]


def _labels(column: str, values: list[Any]) -> tuple[Tensor | None, tuple[int | str, ...], Tensor | None]:
    """Labels and classes for texts or integers, targets for other numbers."""
    kinds = {type(value) for value in values}
    if kinds <= {str} or kinds <= {int, bool}:
        return *number_classes(values), None
    if kinds <= {int, float, bool}:
        return None, (), torch.tensor([[float(value)] for value in values])
    raise DataError(
        f"{CALL}: column {column!r}, which y names, must be all text or all numbers, but it has "
        f"{' and '.join(sorted(kind.__name__ for kind in kinds))}."
    )


def _column_names(table: Any) -> list[Any] | None:
    """The names of the columns of frames and structured arrays; None if there are none."""
    of_array = getattr(getattr(table, "dtype", None), "names", None)
    candidates = (getattr(table, "column_names", None), getattr(table, "columns", None), of_array)
    return next((list(names) for names in candidates if names is not None), None)


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
