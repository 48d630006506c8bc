"""What cannot be converted is refused by name, with the reason and the remedy."""

import pytest
import torch
from torch import nn

import bellnet as bn
from bellnet.errors import ConversionError
from bellnet.nn.message_passing import CompactSet, MessageFunctions
from tests.nn.message_passing.examples import EDGE, NODE, OUT, mlp

pytest.importorskip("torch_geometric")

from torch_geometric.nn import (
    GAT,
    GCN,
    GIN,
    PNA,
    GATConv,
    GCNConv,
    GINConv,
    GraphConv,
    LayerNorm,
    MessagePassing,
    NNConv,
    SAGEConv,
    Sequential,
    Set2Set,
    global_add_pool,
    global_mean_pool,
)


class Own(MessagePassing):
    def forward(self, x, edge_index):
        return self.propagate(edge_index, x=x)


class OwnGIN(GINConv):
    def message(self, x_j):
        return 2 * x_j


class OwnModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = GCNConv(NODE, OUT)


class OwnBasic(GCN):
    def forward(self, x, edge_index):
        return -super().forward(x, edge_index)


def skipping():
    return Sequential(
        "x, edge_index",
        [(GCNConv(NODE, NODE), "x, edge_index -> h"), (GCNConv(NODE, NODE), "x, edge_index -> x")],
    )


def two_graphs():
    return Sequential(
        "x, edges, others",
        [(GCNConv(NODE, NODE), "x, edges -> x"), (GCNConv(NODE, NODE), "x, others -> x")],
    )


PYTHON = "which cannot be read"
NO_CHANNELS = "it is not known to be a linear map or an activation"
TRAINING = "in training mode its output depends on chance or on the other graphs of the batch"

REFUSED = {
    "attention": (lambda: GATConv(NODE, OUT), "GATConv(3, 4, heads=1)", "softmax over all neighbours"),
    "a ready model with attention": (lambda: GAT(NODE, 8, 2), "GATConv(3, 8, heads=1)", "softmax"),
    "several aggregations": (
        lambda: PNA(NODE, 4, 1, aggregators=["max"], scalers=["identity"], deg=torch.ones(3)),
        "PNAConv",
        "not sums",
    ),
    "a convolution that is not known": (lambda: GraphConv(NODE, OUT), "GraphConv(3, 4)", PYTHON),
    "one of the user's own": (lambda: Own(), "Own()", PYTHON),
    "a subclass with another message": (lambda: OwnGIN(mlp(NODE, OUT)), "OwnGIN", PYTHON),
    "a maximum": (lambda: SAGEConv(NODE, OUT, aggr="max"), "SAGEConv(3, 4, aggr=max)", "it aggregates by 'max'"),
    "a maximum in GIN": (lambda: GINConv(mlp(NODE, OUT).eval(), aggr="max"), "GINConv", "it aggregates by 'max'"),
    "a sequence of neighbours": (lambda: SAGEConv(NODE, OUT, aggr="lstm"), "SAGEConv", "aggregates by 'lstm'"),
    "degrees and a mean": (lambda: GCNConv(NODE, OUT, aggr="mean"), "GCNConv(3, 4)", "takes a mean as well"),
    "a division by the length": (lambda: SAGEConv(NODE, OUT, normalize=True), "SAGEConv", "divides by the length"),
    "two node sets": (lambda: SAGEConv((NODE, 5), OUT), "SAGEConv((3, 5), 4, aggr=mean)", "two node sets"),
    "two node sets and edges": (
        lambda: NNConv((NODE, 5), OUT, nn.Linear(EDGE, NODE * OUT)),
        "NNConv",
        "two node sets",
    ),
    "no weights yet": (lambda: SAGEConv(-1, OUT), "SAGEConv(-1, 4, aggr=mean)", "it has no weights yet"),
    "no weights yet, between convolutions": (
        lambda: [GCNConv(NODE, OUT), nn.LazyLinear(3)],
        "LazyLinear",
        NO_CHANNELS,
    ),
    "no number of channels": (lambda: GINConv(nn.ReLU()), "GINConv(nn=ReLU())", "has no Linear"),
    "batch norm in training": (lambda: GINConv(mlp(NODE, OUT)), "BatchNorm1d(8", TRAINING),
    "dropout in training": (lambda: [GCNConv(NODE, OUT), nn.Dropout(0.5)], "Dropout(p=0.5", TRAINING),
    "dropout in a ready model": (lambda: GIN(NODE, 8, 2, dropout=0.5), "Dropout(p=0.5", TRAINING),
    "batch norm without statistics": (
        lambda: [GCNConv(NODE, OUT), nn.BatchNorm1d(OUT, track_running_stats=False).eval()],
        "BatchNorm1d(4",
        "takes its statistics from every batch",
    ),
    "a norm over the graph": (lambda: [GCNConv(NODE, OUT), LayerNorm(OUT)], "LayerNorm(4", NO_CHANNELS),
    "a function that is not known": (lambda: [GCNConv(NODE, OUT), torch.sin], "sin", NO_CHANNELS),
    "features of all layers": (lambda: GCN(NODE, 8, 2, jk="cat"), "GCN(3, 8, num_layers=2)", "jk='cat' joins"),
    "a model of one's own": (lambda: OwnModel(), "OwnModel", PYTHON),
    "a ready model with another forward": (lambda: OwnBasic(NODE, 8, 2), "OwnBasic(3, 8, num_layers=2)", PYTHON),
    "two readouts": (
        lambda: [GCNConv(NODE, OUT), global_add_pool, global_mean_pool],
        "global_mean_pool",
        "more than one readout",
    ),
    "a readout of another kind": (lambda: [GCNConv(NODE, OUT), Set2Set(OUT, 2)], "Set2Set(4, 8)", "not a sum, a mean"),
    "a convolution after the readout": (
        lambda: [GCNConv(NODE, OUT), global_add_pool, GCNConv(OUT, OUT)],
        "GCNConv(4, 4)",
        "after the readout",
    ),
    "a layer that skips": (skipping, "GCNConv(3, 3)", "'x, edge_index -> x'"),
    "two sets of edges": (two_graphs, "GCNConv(3, 3)", "'x, others -> x'"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_conversion_errors_name_the_layer_and_the_reason(name):
    make, named, reason = REFUSED[name]
    model = make()
    with pytest.raises(ConversionError) as caught:
        bn.from_message_passing(model, product="exact")
    words = str(caught.value)
    assert words.startswith(f"from_message_passing cannot convert {named}")
    assert reason in words
    assert words.count("\n") == 1
    assert words.endswith(".")


def test_a_custom_module_has_no_known_range():
    class Plain(nn.Linear):
        pass

    class Sine(nn.Module):
        def forward(self, z):
            return z.sin()

    conv = Own()
    functions = {conv: MessageFunctions(nn.Sequential(Plain(2 * NODE, OUT), Sine()), nn.Linear(NODE + OUT, 2), NODE)}
    bn.from_message_passing(conv, product="exact", functions=functions)
    with pytest.raises(ConversionError, match="it is not known what Sine does to a range"):
        bn.from_message_passing(conv, on=CompactSet(size=5, neighbours=2), functions=functions)
