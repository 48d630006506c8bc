"""Graphs from tables: dicts of columns, and other objects with columns."""

import numpy as np
import pytest

from bellnet.data import Encoding, from_tables, undirected
from bellnet.errors import DataError

EDGES = {
    "graph": ["b", "b", "a", "a"],
    "source": ["x", "y", "p", "q"],
    "target": ["y", "z", "q", "r"],
    "bond": ["single", "double", "double", "single"],
    "length": [1.5, 1.25, 1.0, 1.75],
}
NODES = {
    "graph": ["a", "a", "a", "b", "b", "b", "b"],
    "node": ["r", "q", "p", "x", "y", "z", "alone"],
    "element": ["C", "O", "C", "C", "N", "C", "O"],
}


class Frame:
    """A table as pandas and polars have them: names in `columns`, columns by name."""

    def __init__(self, columns):
        self._columns = {name: np.array(values) for name, values in columns.items()}

    @property
    def columns(self):
        return list(self._columns)

    def __getitem__(self, name):
        return self._columns[name]


def test_graphs_of_a_table_of_edges_are_in_the_order_of_their_rows():
    found = from_tables({name: EDGES[name] for name in ("graph", "source", "target")})
    assert found.ids == ("b", "a")
    assert found.graphs == [undirected(3, [(0, 1), (1, 2)])] * 2
    assert found.labels is None


def test_nodes_and_graphs_are_numbered_by_their_rows():
    found = from_tables(EDGES, NODES)
    assert found.ids == ("a", "b")
    assert [graph.n for graph in found.graphs] == [3, 4]
    first = found.graphs[0]
    assert sorted(map(tuple, first.edge_index.T.tolist())) == [(0, 1), (1, 0), (1, 2), (2, 1)]
    assert set(Encoding.fit(found.graphs).names) == {
        "adjacency",
        "edge feature length",
        "edge label single",
        "edge label double",
        "label C",
        "label N",
        "label O",
    }


@pytest.mark.parametrize("kind", [Frame, lambda table: {name: np.array(column) for name, column in table.items()}])
def test_any_object_with_columns_is_a_table(kind):
    assert from_tables(kind(EDGES), kind(NODES)).graphs == from_tables(EDGES, NODES).graphs


def test_a_column_may_have_labels_or_targets():
    nodes = {**NODES, "toxic": ["no", "no", "no", "yes", "yes", "yes", "yes"]}
    found = from_tables(EDGES, nodes, y="toxic")
    assert (found.labels.tolist(), found.classes) == ([0, 1], ("no", "yes"))
    assert not any("toxic" in graph.columns.node_labels for graph in found.graphs)
    table = {"graph": ["b", "a", "c"], "weight": [2.5, 3.5, 0.0]}
    found = from_tables(EDGES, NODES, table, y="weight")
    assert (found.ids, found.targets.tolist(), found.labels) == (("b", "a", "c"), [[2.5], [3.5], [0.0]], None)
    assert found.graphs[2].n == 0


def test_columns_may_have_any_names_and_one_graph_needs_none():
    table = {"from": [1, 2], "to": [2, 7], "n": [3.0, 4.0]}
    found = from_tables(table, graph=None, source="from", target="to", directed=True)
    assert found.graphs[0].directed
    assert found.graphs[0].edge_index.tolist() == [[0, 1], [1, 2]]
    assert found.graphs[0].edge_features.tolist() == [[3.0], [4.0]]


def test_both_directions_of_an_edge_may_be_rows_if_they_agree():
    table = {"graph": [0, 0], "source": [0, 1], "target": [1, 0], "w": [1.0, 1.0]}
    assert from_tables(table).graphs[0].n_edges == 2
    with pytest.raises(DataError, match=r"rows 0 and 1 of edges are the two directions of one edge, but they differ"):
        from_tables({**table, "w": [1.0, 2.0]})


def test_a_column_with_missing_values_is_not_used_and_gives_a_warning():
    with pytest.warns(
        UserWarning, match=r"from_tables\(edges, nodes\): some attributes are not used.\nOf edges: 'length'"
    ):
        found = from_tables({**EDGES, "length": [1.0, None, 2.0, float("nan")]}, NODES)
    assert found.graphs[0].edge_features is None
    with pytest.raises(DataError, match=r"the edge in row 1 of edges has no attribute 'length'"):
        from_tables({**EDGES, "length": [1.0, None, 2.0, 3.0]}, NODES, edge_attrs="length")
