"""Estimators with the sparse layout."""

import numpy as np
import pytest
import torch

from bellnet.data import Graph, generated
from bellnet.estimator import load
from tests.estimator.small import LEARNS, classifier, regressor, stars_and_paths
from tests.estimator.test_targets import degrees, touches_a_leaf


@pytest.fixture(scope="module")
def fitted():
    graphs, labels = generated.cycles_and_pairs(40, nodes=(6, 20))
    return classifier(channels=(8, 8), layout="sparse").fit(graphs, labels), graphs


def test_graphs_are_classified():
    graphs, labels = stars_and_paths(60)
    model = classifier(**LEARNS, layout="sparse").fit(graphs[:40], labels[:40])
    assert model.score(graphs[40:], labels[40:]) > 0.9


def test_nodes_and_edges_are_classified():
    graphs = generated.leaf_pairs(40)[0]
    for target, label_of in (("node", lambda graph: degrees(graph) == 1), ("edge", touches_a_leaf)):
        labels = [label_of(graph) for graph in graphs]
        model = classifier(target=target, layout="sparse", **LEARNS).fit(graphs[:30], labels[:30])
        assert [len(part) for part in model.predict(graphs[30:])] == [len(part) for part in labels[30:]]
        assert model.score(graphs[30:], labels[30:]) > 0.95, target


def test_directed_edges_are_not_symmetric():
    """The label of an edge is whether it leaves node 0; both directions of an edge are there."""
    graphs, labels = [], []
    for n in (4, 5, 6, 7) * 8:
        edges = torch.tensor([[0, node] for node in range(1, n)] + [[node, 0] for node in range(1, n)])
        graphs.append(
            Graph(
                n,
                edges.T.contiguous(),
                directed=True,
                edge_features=torch.tensor([[1.0], [2.0]]).repeat_interleave(n - 1, 0),
            )
        )
        labels.append(np.arange(2 * n - 2) < n - 1)
    model = classifier(target="edge", layout="sparse", **LEARNS).fit(graphs[:24], labels[:24])
    assert model.score(graphs[24:], labels[24:]) == 1


def test_predictions_do_not_depend_on_the_batch(fitted):
    model, graphs = fitted
    alone = np.concatenate([model.predict_proba([graph]) for graph in graphs])
    np.testing.assert_allclose(model.predict_proba(graphs), alone, rtol=0, atol=1e-12)


def test_predictions_are_permutation_invariant(fitted):
    model, graphs = fitted
    generator = torch.Generator().manual_seed(0)
    renumbered = [Graph(g.n, torch.randperm(g.n, generator=generator)[g.edge_index]) for g in graphs]
    np.testing.assert_allclose(model.predict_proba(renumbered), model.predict_proba(graphs), rtol=0, atol=1e-12)


def test_a_saved_model_predicts_the_same(fitted, tmp_path):
    model, graphs = fitted
    model.save(tmp_path / "model.safetensors")
    again = load(tmp_path / "model.safetensors")
    assert again.layout == "sparse"
    assert np.array_equal(again.predict_proba(graphs), model.predict_proba(graphs))


def test_numbers_are_learned():
    graphs = generated.leaf_pairs(40)[0]
    numbers = [degrees(graph).astype(float) for graph in graphs]
    model = regressor(target="node", layout="sparse", **LEARNS).fit(graphs[:30], numbers[:30])
    assert model.score(graphs[30:], numbers[30:]) > 0.9
