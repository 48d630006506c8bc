"""Labels of nodes and edges."""

import numpy as np
import pytest
import torch
from sklearn.model_selection import cross_val_score

from bellnet.data import Graph, generated, undirected
from bellnet.errors import DataError
from tests.estimator.small import LEARNS, classifier, leaves, regressor


def degrees(graph):
    return torch.bincount(graph.edge_index[0], minlength=graph.n).numpy()


@pytest.fixture(scope="module")
def graphs():
    return generated.leaf_pairs(40)[0]


def touches_a_leaf(graph):
    """For every edge whether one of its ends has no other edge."""
    return (degrees(graph)[graph.edge_index.numpy()] == 1).any(0)


def test_nodes_are_classified(graphs):
    labels = [np.where(degrees(graph) == 1, "leaf", "inner") for graph in graphs]
    model = classifier(target="node", **LEARNS).fit(graphs[:30], labels[:30])
    found = model.predict(graphs[30:])
    assert [part.shape for part in found] == [(graph.n,) for graph in graphs[30:]]
    assert [part.shape for part in model.predict_proba(graphs[30:])] == [(graph.n, 2) for graph in graphs[30:]]
    assert model.score(graphs[30:], labels[30:]) == 1
    assert np.mean(np.concatenate(found) == np.concatenate(labels[30:])) == 1


def test_edges_are_classified(graphs):
    labels = [touches_a_leaf(graph) for graph in graphs]
    model = classifier(target="edge", **LEARNS, adjacency="plain").fit(graphs[:30], labels[:30])
    assert [part.shape for part in model.predict(graphs[30:])] == [(graph.n_edges,) for graph in graphs[30:]]
    assert model.score(graphs[30:], labels[30:]) > 0.95


def test_numbers_on_nodes_and_edges_are_learned(graphs):
    on_nodes = [degrees(graph).astype(float) for graph in graphs]
    on_edges = [degrees(graph)[graph.edge_index.numpy()].sum(0).astype(float) for graph in graphs]
    for target, numbers in (("node", on_nodes), ("edge", on_edges)):
        model = regressor(target=target, **LEARNS, adjacency="plain").fit(graphs[:30], numbers[:30])
        assert model.score(graphs[30:], numbers[30:]) > 0.9, target


def test_both_directions_of_an_undirected_edge_have_the_same_prediction(graphs):
    model = classifier(target="edge").fit(graphs, [touches_a_leaf(graph) for graph in graphs])
    graph = graphs[0]
    found = model.predict_proba([graph])[0]
    by_edge = {tuple(edge): row for edge, row in zip(graph.edge_index.T.tolist(), found, strict=True)}
    for (one, other), row in by_edge.items():
        np.testing.assert_allclose(by_edge[other, one], row, atol=1e-12)


def test_the_direction_of_edges_can_be_learned():
    generator = torch.Generator().manual_seed(0)
    graphs, labels = [], []
    for _ in range(40):
        n = int(torch.randint(4, 9, (), generator=generator))
        source = torch.randint(n - 1, (n,), generator=generator)
        edges = torch.unique(torch.stack([source, torch.full_like(source, n - 1)]), dim=1)
        both = torch.cat([edges, edges.flip(0)], 1)
        graphs.append(Graph(n, both, node_features=(torch.arange(n) == n - 1).float().unsqueeze(1), directed=True))
        labels.append(np.array([0] * edges.shape[1] + [1] * edges.shape[1]))
    model = classifier(target="edge", **LEARNS).fit(graphs, labels)
    assert model.score(graphs, labels) == 1


def test_predictions_on_nodes_are_permutation_equivariant(graphs):
    model = classifier(target="node").fit(graphs, [degrees(graph) for graph in graphs])
    graph, order = graphs[0], torch.randperm(graphs[0].n)
    renumbered = Graph(graph.n, order[graph.edge_index])
    found, expected = model.predict_proba([renumbered])[0], model.predict_proba([graph])[0]
    np.testing.assert_allclose(found[order.numpy()], expected, atol=1e-12)


def test_the_validation_set_of_one_graph_is_a_part_of_its_nodes(graphs):
    graph = undirected(20, [(node, node + 1) for node in range(10)] + [(0, node) for node in range(11, 20)])
    labels = np.minimum(degrees(graph), 3)
    model = classifier(target="node", channels=(8, 8), max_epochs=80, patience=80).fit([graph], [labels])
    assert model.history_[0]["validation_loss"] is not None
    assert model.score([graph], [labels]) > 0.8


def test_node_labels_can_be_cross_validated(graphs):
    labels = [(degrees(graph) == 1).astype(int) for graph in graphs]
    assert cross_val_score(classifier(target="node", max_epochs=3), graphs, labels, cv=2).shape == (2,)


def test_weights_are_per_label_or_per_graph(graphs):
    labels = [degrees(graph) for graph in graphs]
    per_graph = 1 + np.arange(len(graphs)) % 2
    per_node = [np.full(graph.n, weight) for graph, weight in zip(graphs, per_graph, strict=True)]
    one, other = (
        classifier(target="node").fit(graphs, labels, sample_weight=weights).predict_proba(graphs)
        for weights in (per_graph, per_node)
    )
    assert all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


@pytest.mark.parametrize(
    ("target", "change", "message"),
    [
        ("node", lambda y: y[:-1], "y must be a list with an array for each of the 40 graphs, not 39 entries"),
        ("node", lambda y: 3, "y must be a list with an array for each of the 40 graphs, not int"),
        ("node", lambda y: [y[0][:-1], *y[1:]], r"y\[0\] has 15 entries, but graphs\[0\] has 16 nodes"),
        ("edge", lambda y: y, r"y\[0\] has 16 entries, but graphs\[0\] has 32 edges"),
        ("node", lambda y: [0] * 40, r"y\[0\] is a single value, but graphs\[0\] has 16 nodes"),
    ],
)
def test_labels_of_the_wrong_shape_are_refused(graphs, target, change, message):
    with pytest.raises(DataError, match=message):
        classifier(target=target).fit(graphs, change([degrees(graph) for graph in graphs]))


def test_labels_that_differ_between_the_directions_of_an_undirected_edge_are_refused(graphs):
    labels = [(graph.edge_index[0] < graph.edge_index[1]).numpy() for graph in graphs]
    with pytest.raises(DataError, match=r"graphs\[0\] is undirected, but y\[0\] has different labels for the edges"):
        classifier(target="edge").fit(graphs, labels)


LARGE = "up to 1e+308, whose variance overflows float64.\nDivide y by a constant, and multiply"
SMALL = "up to 1e-200, whose variance underflows float64.\nMultiply y by a constant, and"


@pytest.mark.parametrize(
    ("size", "message"), [(1e308, LARGE), (1e200, LARGE.replace("308", "200")), (1e-200, SMALL)], ids=str
)
def test_targets_whose_variance_overflows_are_refused(size, message):
    graphs, labels = leaves(12)
    signs = np.where(labels == 0, 1.0, -1.0)
    with pytest.raises(DataError) as refusal:
        regressor().fit(graphs, size * signs)
    assert str(refusal.value).startswith(f"GraphRegressor.fit(graphs, y): y has numbers {message}")
    with pytest.raises(DataError) as refusal:
        regressor().fit(graphs, np.stack([signs, size * signs], 1))
    assert str(refusal.value).startswith(f"GraphRegressor.fit(graphs, y): y[:, 1] has numbers {message}")


@pytest.mark.parametrize("size", [1e140, 1e-140])
def test_the_scale_of_targets_does_not_matter(size):
    graphs, labels = leaves(12)
    signs = np.where(labels == 0, 1.0, -1.0)
    found = regressor().fit(graphs, size * signs).predict(graphs)
    np.testing.assert_allclose(found / size, regressor().fit(graphs, signs).predict(graphs), rtol=1e-6)


def test_a_tiny_constant_target_is_learned():
    graphs, _ = leaves(12)
    assert np.isfinite(regressor().fit(graphs, np.full(12, 1e-200)).predict(graphs)).all()
