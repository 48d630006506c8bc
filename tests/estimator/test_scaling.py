"""The scaling of channels."""

import pytest
import torch

from bellnet.data import Encoding, Graph, undirected
from bellnet.estimator.validation import channel_scale
from tests.estimator.small import classifier, leaves, with_features

GRAPHS = [
    Graph(
        graph.n,
        graph.edge_index,
        edge_features=graph.edge_index.sum(0).float().unsqueeze(-1),
        node_features=torch.full((graph.n, 1), 5.0),
        node_labels=torch.arange(graph.n) % 2,
    )
    for graph in leaves(6)[0]
]


@pytest.mark.parametrize("adjacency", ["plain", "normalized", "both"])
def test_channels_of_pairs_have_a_mean_square_of_one(adjacency):
    encoding = Encoding.fit(GRAPHS, adjacency=adjacency, degrees=True)
    scale = channel_scale(GRAPHS, encoding, "padded")
    scaled = encoding.encode(GRAPHS).values * scale
    mean_squares = scaled.square().sum((0, 1, 2)) / sum(graph.n**2 for graph in GRAPHS)
    torch.testing.assert_close(mean_squares[:-4], torch.ones(encoding.channels - 4))
    assert encoding.names[-4:] == ("label 0", "label 1", "node feature 0", "degree")
    assert scale[-4:].tolist() == [1, 1, 1, 1]
    scaled = encoding.encode(GRAPHS, layout="sparse").values * channel_scale(GRAPHS, encoding, "sparse")
    torch.testing.assert_close(scaled.square().mean(0)[:-4], torch.ones(encoding.channels - 4))


def test_channels_of_zeros_have_factor_one():
    lonely = [undirected(3, []), undirected(1, [])]
    assert channel_scale(lonely, Encoding.fit(lonely, adjacency="both", degrees=True), "padded").tolist() == [1, 1, 1]


def test_the_network_has_the_scale_of_the_training_graphs():
    graphs, labels = leaves()
    model = classifier().fit(graphs, labels)
    assert model.encoding_.names == ("adjacency", "normalized adjacency", "degree")
    assert torch.equal(model.ensemble_.members[0].scale, channel_scale(graphs, model.encoding_, "padded"))


def test_degrees_are_an_optional_channel():
    graphs, labels = leaves()
    model = classifier(degrees=False, adjacency="plain").fit([with_features(graph, 1) for graph in graphs], labels)
    assert model.encoding_.names == ("adjacency", "node feature 0")
