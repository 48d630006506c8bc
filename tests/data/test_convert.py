"""Graphs of each kind survive the conversion to `Graph` and back."""

from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from networkx.utils import graphs_equal
from torch_geometric.data import Batch, Data, InMemoryDataset

from bellnet.data import Graph, as_graph, as_graphs, to_dense, to_networkx, to_pyg, to_scipy, undirected
from bellnet.data.graph import is_symmetric
from tests.data.strategies import graphs

NUMBERS = st.floats(-8, 8)


@given(graphs())
def test_as_graph_returns_a_graph_unchanged(graph):
    assert as_graph(graph) is graph


@given(graphs())
def test_a_graph_survives_pyg(graph):
    # There, and in arrays, direction is what the edges show.
    assert as_graph(to_pyg(graph)) == replace(graph, directed=not is_symmetric(graph))


@given(graphs())
def test_a_graph_survives_networkx(graph):
    found = as_graph(to_networkx(graph))
    expected = Graph(
        graph.n,
        graph.edge_index,
        None if graph.edge_features is None or not graph.n_edges else graph.edge_features.double(),
        None if graph.node_features is None or not graph.n else graph.node_features.double(),
        None if not graph.n else graph.node_labels,
        graph.directed,
    )
    assert found == expected


@given(graphs(nodes=False, zeros=False))
def test_edges_survive_a_dense_array(graph):
    found = as_graph(to_dense(graph))
    assert found.n == graph.n
    assert {(a, b) for a, b in found.edge_index.T.tolist()} == {(a, b) for a, b in graph.edge_index.T.tolist()}
    torch.testing.assert_close(to_dense(found), to_dense(graph), rtol=0, atol=0)


@given(graphs(nodes=False, edge_features=1))
def test_edges_survive_a_sparse_matrix_with_zeros(graph):
    found = as_graph(to_scipy(graph))
    assert found.n_edges == graph.n_edges
    assert (to_scipy(found) != to_scipy(graph)).nnz == 0


@given(arrays.arrays(np.float64, st.integers(0, 5).map(lambda n: (n, n)), elements=st.just(0.0) | NUMBERS))
def test_a_dense_matrix_survives_a_graph(matrix):
    assert np.array_equal(to_dense(as_graph(matrix)).numpy(), matrix)
    assert torch.equal(to_dense(as_graph(torch.from_numpy(matrix))), torch.from_numpy(matrix))
    assert as_graph(matrix).directed == (not np.array_equal(matrix, matrix.T))


@given(st.integers(0, 4), st.integers(2, 3), st.data())
def test_a_dense_array_with_channels_survives_a_graph(n, channels, data):
    array = data.draw(arrays.arrays(np.float32, (n, n, channels), elements=st.floats(-8, 8, width=32)))
    assert np.array_equal(to_dense(as_graph(array)).numpy(), array)


@pytest.mark.parametrize("kind", [np.bool_, np.int8, np.int64, np.float16, np.float32, np.float64])
def test_numbers_of_any_dtype_survive_a_graph(kind):
    matrix = np.array([[0, 1, 0], [1, 1, 0], [0, 1, 0]], kind)
    assert np.array_equal(to_dense(as_graph(matrix)).numpy(), matrix)
    assert as_graph(matrix).edge_features is None


def test_large_integers_are_not_rounded():
    matrix = np.array([[0, 2**40 + 1], [3, 0]])
    assert np.array_equal(to_dense(as_graph(matrix)).numpy(), matrix)


FORMATS = ["csr", "csc", "coo", "lil", "dok", "bsr"]


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("make", [sp.random_array, sp.random])
def test_a_sparse_matrix_survives_a_graph(form, make):
    shape = ((7, 7),) if make is sp.random_array else (7, 7)
    matrix = make(*shape, density=0.3, format=form, rng=0)
    found = to_scipy(as_graph(matrix))
    assert (found != matrix.tocsr()).nnz == 0
    assert found.shape == matrix.shape


def test_a_sparse_matrix_of_ones_is_a_graph_without_features():
    graph = as_graph(sp.csr_array(np.array([[0, 1], [1, 0]])))
    assert graph == undirected(2, [(0, 1)])
    assert (to_scipy(graph) != sp.csr_array(np.array([[0, 1], [1, 0]]))).nnz == 0


def test_duplicate_entries_of_a_sparse_matrix_are_added_in_a_copy():
    matrix = sp.coo_array((np.array([1.0, 2.0]), (np.array([0, 0]), np.array([1, 1]))), shape=(2, 2))
    assert as_graph(matrix).edge_features.tolist() == [[3.0]]
    assert matrix.nnz == 2


@st.composite
def networkx_graphs(draw):
    graph = draw(st.sampled_from([nx.Graph, nx.DiGraph]))()
    n = draw(st.integers(1, 5))
    features, labels = draw(st.booleans()), draw(st.booleans())
    for node in range(n):
        graph.add_node(node, **({"features": (draw(NUMBERS), draw(NUMBERS))} if features else {}))
        graph.nodes[node].update({"label": draw(st.integers(-5, 5))} if labels else {})
    name = draw(st.sampled_from(["weight", "features", None]))
    for a, b in draw(st.lists(st.tuples(*[st.integers(0, n - 1)] * 2))):
        value = draw(NUMBERS) if name == "weight" else (draw(NUMBERS), draw(NUMBERS))
        graph.add_edge(a, b, **({name: value} if name else {}))
    return graph


@given(networkx_graphs())
def test_a_networkx_graph_survives_a_graph(graph):
    assert graphs_equal(to_networkx(as_graph(graph)), graph)
    assert type(to_networkx(as_graph(graph))) is type(graph)


def test_nodes_of_networkx_are_numbered_in_their_order():
    graph = nx.Graph()
    graph.add_nodes_from(["b", "c", "a"])
    graph.add_edge("c", "a")
    assert as_graph(graph) == undirected(3, [(1, 2)])


def test_attributes_of_networkx_are_read_by_name():
    graph = nx.DiGraph()
    graph.add_node(0, element="C", charge=1, place=(0.5, 1.5))
    graph.add_node(1, element="N", charge=-1, place=[2.5, 3.5])
    graph.add_edge(0, 1, length=2, order=3)
    found = as_graph(graph, node_attrs=["charge", "place"], edge_attrs="length", node_labels="element")
    assert found.node_features.tolist() == [[1, 0.5, 1.5], [-1, 2.5, 3.5]]
    assert found.edge_features.tolist() == [[2.0]]
    again = as_graph(nx.relabel_nodes(graph, {0: "x", 1: "y"}), node_labels="element")
    assert torch.equal(found.node_labels, again.node_labels)  # a text has one number, wherever it stands
    assert found.node_labels[0] != found.node_labels[1]
    assert as_graph(graph, edge_attrs=[]).edge_features is None


@st.composite
def pyg_graphs(draw):
    graph = draw(graphs())
    data = Data(edge_index=graph.edge_index, num_nodes=graph.n)
    if graph.edge_features is not None:
        data.edge_attr = graph.edge_features
    if graph.node_features is not None:
        data.x = graph.node_features
    return data


def same_data(a, b):
    return sorted(a.keys()) == sorted(b.keys()) and all(
        torch.equal(a[key], b[key]) if isinstance(a[key], torch.Tensor) else a[key] == b[key]
        for key in a.keys()  # noqa: SIM118
    )


@given(pyg_graphs())
def test_a_pyg_graph_survives_a_graph(data):
    assert same_data(to_pyg(as_graph(data)), data)


@given(st.lists(graphs(edge_features=2, directed=True, nodes=False), min_size=1, max_size=4))
def test_a_batch_of_pyg_graphs_is_a_list_of_graphs(members):
    assert as_graphs(Batch.from_data_list([to_pyg(graph) for graph in members])) == [
        replace(graph, directed=not is_symmetric(graph)) for graph in members
    ]


class _Kept(InMemoryDataset):
    def __init__(self, members):
        super().__init__()
        self.data, self.slices = self.collate(members)


def test_a_pyg_dataset_and_a_part_of_it_are_lists_of_graphs():
    members = [undirected(n, [(0, 1)]) for n in (2, 3, 4)]
    dataset = _Kept([to_pyg(graph) for graph in members])
    assert as_graphs(dataset) == members
    assert as_graphs(dataset[[2, 0]]) == [members[2], members[0]]


def test_attributes_of_pyg_are_read_by_name():
    data = Data(
        x=torch.tensor([[6], [8]]),
        pos=torch.tensor([[0.5], [1.5]]),
        edge_index=torch.tensor([[0, 1], [1, 0]]),
        edge_weight=torch.tensor([2.0, 2.0]),
        bond=torch.tensor([1, 1]),
    )
    with pytest.warns(UserWarning, match="'bond', since there is 'x'(?s:.*)'pos', since there is 'x'"):
        usual = as_graph(data)
    assert usual.node_features.tolist() == [[6.0], [8.0]]
    assert usual.edge_features.tolist() == [[2.0], [2.0]]
    assert as_graph(data, node_labels="x", edge_attrs="bond").node_features.tolist() == [[0.5], [1.5]]
    found = as_graph(data, node_labels="x", edge_attrs=["edge_weight", "bond"], node_attrs=[])
    assert found.node_labels.tolist() == [6, 8]
    assert found.node_features is None
    assert found.edge_features.tolist() == [[2.0, 1.0], [2.0, 1.0]]
    assert as_graph(data, node_attrs=["x", "pos"], edge_attrs=[]).node_features.tolist() == [[6.0, 0.5], [8.0, 1.5]]


def test_one_graph_of_all_kinds_is_the_same_in_a_mixed_list():
    graph = undirected(4, [(0, 1), (1, 2), (3, 3)])
    kinds = [graph, to_pyg(graph), to_networkx(graph), to_scipy(graph), to_dense(graph), to_dense(graph).numpy()]
    assert as_graphs(kinds) == [graph] * len(kinds)


def test_one_array_may_have_many_graphs():
    graph = undirected(3, [(0, 1)])
    assert as_graphs(torch.stack([to_dense(graph)] * 2)) == [graph, graph]
    assert as_graphs(np.stack([to_dense(graph).numpy()] * 2)) == [graph, graph]
    assert as_graphs(np.array([graph, to_networkx(graph)], dtype=object)) == [graph, graph]
    assert as_graphs(graph for _ in range(2)) == [graph, graph]
    assert as_graphs([]) == []
