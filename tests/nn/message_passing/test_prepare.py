"""The state of the network that is prepared from graphs."""

import pytest
import torch
from torch.testing import assert_close

import bellnet as bn
from bellnet.nn.message_passing import Adjacency, CompactSet
from tests.nn.message_passing.examples import CONVS, EDGE, NODE, OUT, SIZES, graph, graphs

pytest.importorskip("torch_geometric")

from torch_geometric.data import Batch, Data
from torch_geometric.nn import GCNConv, GINConv
from torch_geometric.nn.conv.gcn_conv import gcn_norm


def test_prepare_puts_every_value_at_its_entry():
    net, batch = bn.from_message_passing(CONVS["GINEConv"](), product="exact"), graphs()
    state = net.prepare(batch)
    assert state.sizes.tolist() == list(SIZES)
    assert state.values.shape == (len(SIZES), 12, 12, 1 + EDGE + NODE)
    for one, found in zip(batch.to_data_list(), state.unpack("n n"), strict=True):
        expected = torch.zeros(one.num_nodes, one.num_nodes, 1 + EDGE + NODE, dtype=torch.float64)
        for (source, target), features in zip(one.edge_index.T.tolist(), one.edge_attr, strict=True):
            expected[target, source, 0] += 1
            expected[target, source, 1 : 1 + EDGE] = features
        for node, features in enumerate(one.x):
            expected[node, node, 1 + EDGE :] = features
        assert torch.equal(found, expected)


def test_one_graph_needs_no_batch():
    net = bn.from_message_passing(CONVS["GINConv"](), product="exact")
    one = graph(5, 8)
    assert torch.equal(net.prepare(one).values, net.prepare(Batch.from_data_list([one])).values)


def test_graphs_without_nodes_and_without_edges_are_graphs():
    nothing = graph(1, 0).subgraph(torch.zeros(1, dtype=torch.bool))
    net = bn.from_message_passing(CONVS["GINConv"](), readout="sum", product="exact")
    batch = Batch.from_data_list([nothing, graph(3, 4), nothing])
    state = net.prepare(batch)
    assert state.sizes.tolist() == [0, 3, 0]
    assert not net(state)[0].any()


def test_nodes_of_several_graphs_may_be_mixed():
    conv, batch = CONVS["SAGEConv"](), graphs()
    moved = torch.randperm(batch.num_nodes)
    mixed = Data(x=batch.x[moved], edge_index=moved.argsort()[batch.edge_index], batch=batch.batch[moved])
    net = bn.from_message_passing(conv, product="exact")
    found = torch.cat(net(net.prepare(mixed)).unpack("n"))
    assert_close(found, conv(mixed.x, mixed.edge_index)[mixed.batch.argsort(stable=True)])


@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize("improved", [False, True])
def test_the_normalized_adjacency_is_that_of_pyg(improved, weights):
    one = graph(7, 20, weights=weights)
    net = bn.from_message_passing(GCNConv(NODE, OUT, improved=improved), product="exact")
    edges, values = gcn_norm(one.edge_index, one.edge_weight, 7, improved)
    expected = torch.zeros(7, 7).index_put((edges[1], edges[0]), values, accumulate=True)
    assert_close(net.prepare(one).values[0, :, :, 0], expected)


def test_equal_adjacencies_share_a_channel():
    layers = [CONVS["GINConv"](), torch.nn.Linear(OUT, NODE).double(), CONVS["GINConv"](), CONVS["GCNConv"]()]
    layers.insert(3, layers[1])
    net = bn.from_message_passing(layers, product="exact")
    assert net.adjacencies == (Adjacency(), Adjacency(weighted=True, self_loops=1.0, scale="symmetric"))
    assert [str(one) for one in net.adjacencies] == ["edges", "weights, with self-loops, scaled: symmetric"]
    assert str(Adjacency(to_source=True)) == "edges, against the edges"


@pytest.mark.parametrize("flow", ["source_to_target", "target_to_source"])
def test_compact_set_contains_its_graphs(flow):
    star = Data(x=torch.tensor([[1.0], [-3.0], [0.0], [2.0]]), edge_index=torch.tensor([[1, 2, 3, 3], [0, 0, 0, 0]]))
    net = bn.from_message_passing(GINConv(torch.nn.Linear(1, 1), flow=flow), product="exact")
    neighbours = 3 if flow == "source_to_target" else 1
    assert net.compact_set(net.prepare(star)) == CompactSet(4, neighbours, adjacency=2.0, node=3.0, edge=0.0)
