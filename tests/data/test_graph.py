"""`Graph`: its fields, equality and pickles."""

import pickle

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from bellnet.data import Graph, undirected
from bellnet.data.graph import is_symmetric
from tests.data.strategies import graphs


@given(graphs(), st.randoms(use_true_random=False))
def test_equality_of_graphs_does_not_depend_on_the_order_of_edges(graph, random):
    order = list(range(graph.n_edges))
    random.shuffle(order)
    features = None if graph.edge_features is None else graph.edge_features[order]
    other = Graph(graph.n, graph.edge_index[:, order], features, graph.node_features, graph.node_labels, graph.directed)
    assert graph == other
    assert hash(graph) == hash(other)


DIFFERENT = {
    "a node more": Graph(4, [[0, 1], [1, 0]], node_labels=[1, 2, 3, 4]),
    "another edge": Graph(3, [[0, 2], [2, 0]], node_labels=[1, 2, 3]),
    "direction": Graph(3, [[0, 1], [1, 0]], node_labels=[1, 2, 3], directed=True),
    "edge features": Graph(3, [[0, 1], [1, 0]], torch.ones(2, 1), node_labels=[1, 2, 3]),
    "node features": Graph(3, [[0, 1], [1, 0]], node_features=torch.ones(3, 1), node_labels=[1, 2, 3]),
    "a label": Graph(3, [[0, 1], [1, 0]], node_labels=[1, 2, 2]),
    "no labels": Graph(3, [[0, 1], [1, 0]]),
}


@pytest.mark.parametrize("name", DIFFERENT)
def test_graphs_that_differ_in_anything_are_not_equal(name):
    assert DIFFERENT[name] != Graph(3, [[0, 1], [1, 0]], node_labels=[1, 2, 3])


def test_edge_features_belong_to_their_edges():
    one = Graph(3, [[0, 1], [1, 2]], [[1.0], [2.0]], directed=True)
    assert one == Graph(3, [[1, 0], [2, 1]], [[2.0], [1.0]], directed=True)
    assert one != Graph(3, [[1, 0], [2, 1]], [[1.0], [2.0]], directed=True)
    assert one != "a graph"


@given(graphs())
def test_a_pickled_graph_is_the_same_graph(graph):
    assert pickle.loads(pickle.dumps(graph)) == graph


def test_a_self_loop_is_one_edge():
    graph = undirected(2, [(0, 0), (0, 1)])
    assert graph.edge_index.T.tolist() == [[0, 0], [0, 1], [1, 0]]
    assert graph.n_edges == 3


@given(graphs(directed=False))
def test_an_undirected_graph_is_symmetric(graph):
    assert is_symmetric(graph)
    assert {(b, a) for a, b in graph.edge_index.T.tolist()} == {(a, b) for a, b in graph.edge_index.T.tolist()}


def test_integers_of_any_dtype_and_lists_become_int64():
    graph = Graph(2, torch.tensor([[0, 1], [1, 0]], dtype=torch.int32), node_labels=[3, 4])
    assert graph.edge_index.dtype == graph.node_labels.dtype == torch.int64
    assert Graph(0, [[], []]).n_edges == 0


def test_repr_of_a_graph_has_its_sizes_and_fields():
    graph = Graph(2, [[0], [1]], [[1.0, 2.0]], [[1.0], [2.0]], [0, 1], directed=True)
    assert repr(graph) == "Graph(n=2, edges=1, edge_features=2, node_features=1, node_labels, directed)"
