"""Converted models agree with the originals, on all kinds of graphs."""

from itertools import product

import pytest
import torch
from torch import nn
from torch.testing import assert_close

import bellnet as bn
from bellnet.nn.message_passing import Adjacency, MessageFunctions
from bellnet.nn.message_passing.functions import linear_of
from tests.nn.message_passing.examples import CONVS, EDGE, NODE, OUT, SIZES, Conv, graphs, mlp, with_bias

pyg = pytest.importorskip("torch_geometric")

from torch_geometric.nn import (  # noqa: E402
    GCN,
    GIN,
    MLP,
    GCNConv,
    GINConv,
    GINEConv,
    GraphSAGE,
    MaxAggregation,
    MessagePassing,
    NNConv,
    SAGEConv,
    Sequential,
    global_add_pool,
    global_max_pool,
    global_mean_pool,
)

TOLERANCE = {torch.float32: 1e-5, torch.float64: 1e-10}


def converted(model, batch, **options):
    """The outputs of the converted network, in the order of the nodes of the batch."""
    net = bn.from_message_passing(model, product="exact", **options)
    output = net(net.prepare(batch))
    if isinstance(output, bn.Padded):
        assert [len(graph) for graph in output.unpack("n")] == list(SIZES)
        return torch.cat(output.unpack("n"))
    return output


def assert_same(found, expected):
    assert found.dtype == expected.dtype
    atol = TOLERANCE[expected.dtype]
    assert_close(found, expected, rtol=0, atol=atol)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("flow", ["source_to_target", "target_to_source"])
@pytest.mark.parametrize(
    ("name", "aggr"), [*product(CONVS, ["add"]), *product(sorted({*CONVS} - {"GCNConv"}), ["mean"])]
)
def test_converted_convolutions_agree_with_the_original(name, flow, aggr, dtype):
    kind, batch = CONVS[name], graphs(dtype)
    conv = kind(dtype, flow=flow, aggr=aggr)
    assert_same(converted(conv, batch), kind.output(conv, batch))


WEIGHTED = {
    "as it is": {},
    "improved": {"improved": True},
    "without self-loops": {"add_self_loops": False},
    "not normalized": {"normalize": False},
    "without bias": {"bias": False},
}


@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize("flow", ["source_to_target", "target_to_source"])
@pytest.mark.parametrize("options", WEIGHTED)
def test_converted_gcn_normalization_agrees_with_the_original(options, flow, weights):
    batch = graphs(weights=weights)
    conv = with_bias(GCNConv(NODE, OUT, flow=flow, **WEIGHTED[options])).double()
    assert_same(converted(conv, batch), conv(batch.x, batch.edge_index, batch.edge_weight))


@pytest.mark.parametrize("make", [lambda: CONVS["GINConv"](), lambda: CONVS["SAGEConv"](), lambda: CONVS["GCNConv"]()])
def test_parallel_edges_are_summed(make):
    conv, batch = make(), graphs(parallel=True)
    assert_same(converted(conv, batch), conv(batch.x, batch.edge_index))


def _uncommon() -> dict[str, Conv]:
    edges = ("edge_attr",)
    return {
        "a projection before the mean": Conv(lambda: SAGEConv(NODE, OUT, project=True)),
        "no weight for the node itself": Conv(lambda: SAGEConv(NODE, OUT, root_weight=False, bias=False)),
        "edge features as wide as those of nodes": Conv(lambda: GINEConv(mlp(EDGE, OUT)), edges),
        "an edge network without a root": Conv(
            lambda: NNConv(NODE, OUT, nn.Linear(EDGE, NODE * OUT), root_weight=False, bias=False), edges
        ),
        "a ready network inside": Conv(lambda: GINConv(MLP([NODE, 6, OUT], act="elu", dropout=0.5))),
        "a ready network, activation first": Conv(
            lambda: GINConv(MLP([NODE, 6, OUT], act_first=True, plain_last=False))
        ),
        "one channel": Conv(lambda: GINConv(nn.Linear(NODE, 1))),
    }


@pytest.mark.parametrize("name", _uncommon())
def test_uncommon_options_are_converted(name):
    kind, batch = _uncommon()[name], graphs()
    conv = kind()
    if name == "edge features as wide as those of nodes":
        batch.x = batch.x[:, :EDGE]
    assert_same(converted(conv, batch), kind.output(conv, batch))


READY = {
    "GCN": lambda: GCN(NODE, 8, num_layers=3, out_channels=2, dropout=0.5, norm="batch_norm"),
    "GIN": lambda: GIN(NODE, 8, num_layers=2, norm="BatchNorm", act="tanh", act_first=True),
    "GraphSAGE": lambda: GraphSAGE(NODE, 8, num_layers=2, out_channels=3, jk="last"),
    "one layer": lambda: GraphSAGE(NODE, 8, num_layers=1),
    "no activation": lambda: GCN(NODE, 8, num_layers=2, act=None),
    "an activation that is a function": lambda: GCN(NODE, 8, num_layers=2, act=torch.relu),
}


@pytest.mark.parametrize("name", READY)
def test_converted_models_agree_with_the_original(name):
    model, batch = READY[name](), graphs()
    model = model.double()
    model.train()
    with torch.no_grad():
        model(batch.x, batch.edge_index)  # moves the statistics of batch norm
    model.eval()
    assert_same(converted(model, batch), model(batch.x, batch.edge_index))


POOLS = {"sum": global_add_pool, "mean": global_mean_pool, "max": global_max_pool}


@pytest.mark.parametrize("readout", POOLS)
def test_converted_readouts_agree_with_the_original(readout):
    conv, head, batch = CONVS["GINConv"](), mlp(OUT, 2).double().eval(), graphs()
    pooled = POOLS[readout](conv(batch.x, batch.edge_index), batch.batch)
    assert_same(converted(conv, batch, readout=readout), pooled)
    assert_same(converted([conv, POOLS[readout], head], batch), head(pooled))


def test_several_kinds_of_layers_in_a_list():
    encode = nn.Linear(NODE, NODE).double()
    convs = [CONVS[name]() for name in ("NNConv", "GINEConv", "SAGEConv", "GCNConv")]
    widen = nn.Linear(OUT, NODE).double()
    batch = graphs(weights=True)
    x, edges, attr = batch.x, batch.edge_index, batch.edge_attr
    h = widen(torch.relu(convs[0](torch.tanh(encode(x)), edges, attr)))
    h = widen(nn.functional.elu(convs[1](h, edges, attr)))
    h = widen(convs[2](h, edges))
    h = convs[3](h, edges, batch.edge_weight)
    head = nn.Linear(OUT, 2).double()
    expected = head(MaxAggregation()(h, batch.batch))
    layers = [
        nn.Sequential(encode, nn.Tanh()),
        convs[0],
        nn.ReLU(),
        widen,
        [convs[1], torch.nn.functional.elu, widen],
        nn.ModuleList([convs[2], nn.Dropout(0.3).eval(), widen]),
        convs[3],
        MaxAggregation(),
        head,
    ]
    assert_same(converted(layers, batch), expected)


@pytest.mark.parametrize("with_weights", [False, True])
def test_a_sequential_of_pyg_is_converted_by_its_headers(with_weights):
    header = "x, edge_index, edge_weight -> x" if with_weights else "x, edge_index -> x"
    model = Sequential(
        "x, edge_index, edge_weight, batch",
        [
            (GCNConv(NODE, 6), header),
            nn.ReLU(inplace=True),
            (SAGEConv(6, 6), "x, edge_index -> h"),
            (global_mean_pool, "h, batch -> h"),
            nn.Linear(6, 2),
        ],
    ).double()
    batch = graphs(weights=True)
    assert_same(converted(model, batch), model(batch.x, batch.edge_index, batch.edge_weight, batch.batch))


class OwnConv(MessagePassing):
    """M and U in code of the user's own."""

    def __init__(self, **options):
        super().__init__(**options)
        self.message_of, self.update_of = mlp(2 * NODE + EDGE, 5), mlp(NODE + 5, OUT)

    def forward(self, x, edge_index, edge_attr):
        return self.update_of(torch.cat([x, self.propagate(edge_index, x=x, edge_attr=edge_attr)], -1))

    def message(self, x_i, x_j, edge_attr):
        return self.message_of(torch.cat([x_i, x_j, edge_attr], -1))


class Plain(nn.Module):
    """A module that bellnet knows nothing of."""

    def __init__(self, before, after):
        super().__init__()
        self.inner = nn.Linear(before, after)

    def forward(self, z):
        return self.inner(z).sin()


@pytest.mark.parametrize("aggr", ["sum", "mean"])
@pytest.mark.parametrize("flow", ["source_to_target", "target_to_source"])
def test_a_custom_convolution_is_converted_with_its_m_and_u(flow, aggr):
    conv, batch = OwnConv(aggr=aggr, flow=flow).double().eval(), graphs()
    conv.message_of, conv.update_of = Plain(2 * NODE + EDGE, 5).double(), Plain(NODE + 5, OUT).double()
    given = MessageFunctions(conv.message_of, conv.update_of, node_channels=NODE, edge_channels=EDGE)
    found = converted([conv, nn.ReLU()], batch, functions={conv: given})
    assert_same(found, conv(batch.x, batch.edge_index, batch.edge_attr).relu())


def test_a_custom_convolution_may_use_edge_weights():
    class Weighted(MessagePassing):
        def forward(self, x, edge_index, edge_weight):
            return self.propagate(edge_index, x=x, edge_weight=edge_weight)

        def message(self, x_j, edge_weight):
            return edge_weight.unsqueeze(-1) * x_j

    conv, batch, eye = Weighted(), graphs(weights=True), torch.eye(NODE, dtype=torch.float64)
    select = linear_of(0 * eye, eye)
    given = MessageFunctions(select, select, NODE, adjacency=Adjacency(weighted=True))
    assert_same(converted(conv, batch, functions={conv: given}), conv(batch.x, batch.edge_index, batch.edge_weight))


def test_the_network_shares_no_parameters_with_the_original():
    conv, batch = CONVS["GINConv"](), graphs()
    net = bn.from_message_passing(conv, product="exact")
    before = conv(batch.x, batch.edge_index)
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.add_(1)
    assert torch.equal(conv(batch.x, batch.edge_index), before)
