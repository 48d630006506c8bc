"""`Sparse` from edges, graphs, hyperedges, ratings and sparse tensors, compared with their definition."""

import networkx as nx
import pytest
import scipy.sparse
import torch

import bellnet as bn
from bellnet.data import as_graph, sparse_inputs, to_networkx
from bellnet.errors import DataError, SupportError


def test_edges_become_a_matrix_with_their_values():
    edges = torch.tensor([[2, 0, 1], [0, 1, 1]])
    values = torch.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    x = sparse_inputs.from_edge_index(edges, values, n_nodes=4)
    expected = torch.zeros(4, 4, 2)
    expected[tuple(edges)] = values
    assert torch.equal(x.to_dense(), expected)
    assert torch.equal(x.at(edges), values)


def test_duplicate_edges_raise_an_error_or_are_added():
    edges = torch.tensor([[0, 1, 0], [1, 0, 1]])
    with pytest.raises(SupportError, match=r"the tuple \(0, 1\) occurs twice, at positions 0 and 2"):
        sparse_inputs.from_edge_index(edges)
    x = sparse_inputs.from_edge_index(edges, torch.tensor([1.0, 2.0, 4.0]), duplicates="sum")
    assert x.to_dense().squeeze(-1).tolist() == [[0, 5], [2, 0]]


def test_sums_of_duplicate_edges_are_those_of_index_put():
    edges = torch.randint(0, 9, (2, 500), generator=torch.Generator().manual_seed(0))
    values = torch.arange(500.0).unsqueeze(-1)
    expected = torch.zeros(9, 9, 1).index_put(tuple(edges), values, accumulate=True)
    assert torch.equal(sparse_inputs.from_edge_index(edges, values, n_nodes=9, duplicates="sum").to_dense(), expected)
    with pytest.raises(DataError, match="one row of channels for each of the 500 tuples"):
        sparse_inputs.from_edge_index(edges, values[1:], n_nodes=9, duplicates="sum")
    with pytest.raises(SupportError, match="is node -1"):
        sparse_inputs.from_edge_index(edges - 1, values, n_nodes=9, duplicates="sum")


def _data(n, edges, generator):
    from torch_geometric.data import Data

    index = torch.tensor(edges, dtype=torch.int64).reshape(-1, 2).T
    return Data(
        x=torch.randn(n, 3, generator=generator),
        edge_index=index,
        edge_attr=torch.randn(index.shape[1], 2, generator=generator),
    )


def _dense(data):
    """Edge features, then node features on the diagonal."""
    n = data.num_nodes
    expected = torch.zeros(n, n, 5)
    expected[data.edge_index[0], data.edge_index[1], :2] = data.edge_attr
    expected[torch.arange(n), torch.arange(n), 2:] = data.x
    return expected


def test_a_graph_of_pytorch_geometric_has_edge_features_and_node_features_on_the_diagonal():
    data = _data(4, [(0, 1), (3, 2), (2, 2)], torch.Generator().manual_seed(0))
    x = sparse_inputs.from_pyg(data)
    assert torch.equal(x.to_dense(), _dense(data))
    assert x.nnz == 6  # the loop is there already


def test_a_batch_of_pytorch_geometric_equals_its_graphs():
    from torch_geometric.data import Batch

    generator = torch.Generator().manual_seed(0)
    graphs = [_data(3, [(0, 1), (2, 0)], generator), _data(1, [], generator), _data(4, [(3, 1)], generator)]
    x = sparse_inputs.from_pyg(Batch.from_data_list(graphs))
    assert x.sizes.tolist() == [3, 1, 4]
    for one, graph in zip(x.unpack(), graphs, strict=True):
        assert torch.equal(one.to_dense(), _dense(graph))


def test_a_batch_may_end_with_graphs_without_nodes():
    from torch_geometric.data import Batch, Data

    nothing = Data(edge_index=torch.zeros(2, 0, dtype=torch.int64), num_nodes=0)
    pair = Data(edge_index=torch.tensor([[0], [1]]), num_nodes=2)
    assert sparse_inputs.from_pyg(Batch.from_data_list([pair, nothing, nothing])).sizes.tolist() == [2, 0, 0]


def test_edge_weights_are_used_without_edge_attributes():
    from torch_geometric.data import Data

    edges, weights = torch.tensor([[0, 1], [1, 0]]), torch.tensor([0.5, 0.25])
    data = Data(edge_index=edges, edge_weight=weights, num_nodes=2)
    assert sparse_inputs.from_pyg(data).values.flatten().tolist() == [0.5, 0.25]
    data.edge_attr = torch.tensor([3.0, 4.0])
    assert sparse_inputs.from_pyg(data).values.flatten().tolist() == [3.0, 4.0]


def test_data_with_a_batch_vector_is_a_batch():
    from torch_geometric.data import Data

    data = Data(edge_index=torch.tensor([[0, 1, 3], [1, 0, 2]]), num_nodes=4, batch=torch.tensor([0, 0, 1, 1]))
    x = sparse_inputs.from_pyg(data)
    assert x.sizes.tolist() == [2, 2]
    assert x.index.tolist() == [[0, 0, 1], [0, 1, 1], [1, 0, 0]]


def test_a_layer_on_a_batch_of_pytorch_geometric_gives_one_row_for_each_of_its_nodes():
    from torch_geometric.data import Batch

    generator = torch.Generator().manual_seed(0)
    batch = Batch.from_data_list([_data(3, [(0, 1)], generator), _data(2, [(1, 0)], generator)])
    y = bn.EquivariantLinear("n n -> n", 5, 4)(sparse_inputs.from_pyg(batch))
    assert y.values.shape == (batch.num_nodes, 4)
    assert torch.equal(y.support.graphs, batch.batch)


def test_mini_batches_of_a_random_node_loader_are_converted():
    from torch_geometric.loader import RandomNodeLoader

    data = _data(12, [(i, (i * 5 + 1) % 12) for i in range(12)], torch.Generator().manual_seed(0))
    seen = 0
    for part in RandomNodeLoader(data, num_parts=3):
        assert torch.equal(sparse_inputs.from_pyg(part).to_dense(), _dense(part))
        seen += part.num_nodes
    assert seen == 12


def test_mini_batches_of_a_neighbor_loader_are_converted():
    from torch_geometric import typing

    if not (typing.WITH_PYG_LIB or typing.WITH_TORCH_SPARSE):
        pytest.skip("NeighborLoader needs pyg-lib or torch-sparse, and neither is installed")
    from torch_geometric.loader import NeighborLoader

    data = _data(12, [(i, (i * 5 + 1) % 12) for i in range(12)], torch.Generator().manual_seed(0))
    for part in NeighborLoader(data, num_neighbors=[2, 2], batch_size=4):
        assert torch.equal(sparse_inputs.from_pyg(part).to_dense(), _dense(part))


@pytest.mark.filterwarnings("ignore:Sparse CSR tensor support is in beta state")
@pytest.mark.parametrize("layout", ["coo", "csr"])
def test_sparse_tensors_of_torch_have_the_same_values(layout):
    dense = torch.tensor([[0.0, 2.0, 0.0], [0.0, 0.0, 0.0], [1.0, 0.0, 3.0]])
    coo = dense.to_sparse_coo()
    given = coo
    if layout == "csr":
        rows = torch.tensor([0, 1, 1, 3])
        given = torch.sparse_csr_tensor(rows, coo.indices()[1], coo.values(), (3, 3), check_invariants=False)
    assert torch.equal(sparse_inputs.from_torch(given).to_dense().squeeze(-1), dense)


def test_dense_axes_of_a_sparse_tensor_are_channels_and_duplicates_are_added():
    index = torch.tensor([[0, 0, 2], [1, 1, 0], [2, 2, 1]])
    values = torch.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    given = torch.sparse_coo_tensor(index, values, (3, 3, 3, 2), check_invariants=False)
    assert torch.equal(sparse_inputs.from_torch(given).to_dense(), given.to_dense())


@pytest.mark.parametrize("form", ["csr", "csc", "coo", "lil"])
def test_sparse_matrices_of_scipy_have_the_same_values(form):
    dense = [[0.0, 2.0, 0.0], [0.0, 0.0, 0.0], [1.0, 0.0, 3.0]]
    matrix = scipy.sparse.csr_array(dense).asformat(form)
    assert sparse_inputs.from_graph(matrix).to_dense().squeeze(-1).tolist() == dense


def test_graphs_of_networkx_are_their_adjacency_matrices():
    for graph in (nx.path_graph(4), nx.gn_graph(6, seed=0), nx.empty_graph(3), nx.Graph([(0, 0), (0, 1)])):
        x = sparse_inputs.from_graph(graph)
        assert x.to_dense().squeeze(-1).tolist() == nx.to_numpy_array(graph).tolist()


def test_node_features_of_any_graph_are_on_the_diagonal():
    data = _data(4, [(0, 1), (3, 2), (2, 2)], torch.Generator().manual_seed(0))
    for graph in (data, as_graph(data), to_networkx(as_graph(data))):
        assert torch.equal(sparse_inputs.from_graph(graph).to_dense(), _dense(data))


def test_edge_attributes_of_networkx_are_channels():
    graph = nx.Graph()
    graph.add_edge("b", "a", weight=2, length=0.5)
    x = sparse_inputs.from_graph(graph, edge_attrs=["weight", "length"])
    assert x.to_dense().tolist() == [[[0, 0], [2, 0.5]], [[2, 0.5], [0, 0]]]


def test_hyperedges_are_stored_in_all_orders_unless_they_are_ordered():
    hyperedges, values = [(0, 1, 2), (1, 3, 2)], torch.tensor([2.0, 3.0])
    dense = sparse_inputs.from_hyperedges(hyperedges, values, n_nodes=4).to_dense().squeeze(-1)
    assert dense.count_nonzero() == 12
    assert torch.equal(dense, dense.permute(2, 0, 1))
    assert dense[2, 3, 1] == 3
    ordered = sparse_inputs.from_hyperedges(hyperedges, values, n_nodes=4, ordered=True).to_dense().squeeze(-1)
    assert ordered.nonzero().tolist() == [[0, 1, 2], [1, 3, 2]]


def test_a_table_of_ratings_has_two_node_sets():
    x = sparse_inputs.from_ratings([1, 0], [2, 0], [4.0, 5.0], sizes=(3, 4))
    assert x.support.shape == "u i"
    assert x.to_dense().shape == (3, 4, 1)
    assert x.to_dense()[1, 2] == 4
    assert bn.EquivariantLinear("u i -> i", 1, 2)(x).values.shape == (4, 2)


def test_hyperedges_of_any_sizes_are_a_tensor_of_nodes_by_hyperedges():
    hyperedges, values = [(0, 1, 2), (), (3, 1)], torch.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    x = sparse_inputs.from_incidence(hyperedges, values, n_nodes=5)
    expected = torch.zeros(5, 3, 2)
    for index, edge in enumerate(hyperedges):
        for node in edge:
            expected[node, index] = values[index]
    assert torch.equal(x.to_dense(), expected)
    assert x.sizes == {"n": 5, "e": 3}
    assert sparse_inputs.from_incidence([], n_nodes=2).nnz == 0


def test_a_layer_on_hyperedges_does_not_depend_on_their_order():
    hyperedges, order = [(0, 1, 2), (3, 1), (2, 3)], [2, 0, 1]
    layer = bn.EquivariantLinear("n e -> n", 1, 2)
    once = layer(sparse_inputs.from_incidence(hyperedges, n_nodes=5))
    again = layer(sparse_inputs.from_incidence([hyperedges[index] for index in order], n_nodes=5))
    torch.testing.assert_close(once.values, again.values)


def test_the_remedy_for_hyperedges_of_different_sizes_works():
    hyperedges = [(0, 1), (0, 1, 2)]
    with pytest.raises(DataError, match=r"use from_incidence\(hyperedges, n_nodes=...\)"):
        sparse_inputs.from_hyperedges(hyperedges, n_nodes=3)
    assert sparse_inputs.from_incidence(hyperedges, n_nodes=3).nnz == 5
