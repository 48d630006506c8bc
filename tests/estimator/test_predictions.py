"""Predictions do not depend on batches, padding and permutations of nodes."""

import numpy as np
import pytest
import torch

from bellnet import Padded
from bellnet.data import Graph, Loader, generated
from tests.estimator.small import classifier, regressor


@pytest.fixture(scope="module")
def fitted():
    graphs, labels = generated.cycles_and_pairs(60, nodes=(6, 20))
    return classifier(channels=(8, 8)).fit(graphs, labels), graphs


def test_predictions_do_not_depend_on_the_batch(fitted):
    model, graphs = fitted
    alone = np.concatenate([model.predict_proba([graph]) for graph in graphs])
    np.testing.assert_allclose(model.predict_proba(graphs), alone, rtol=0, atol=1e-12)
    assert np.array_equal(model.predict(graphs), np.concatenate([model.predict([graph]) for graph in graphs]))


@pytest.mark.parametrize("batch_size", [1, 7, 60])
def test_padded_and_bucketed_batches_are_the_same(fitted, batch_size):
    model, graphs = fitted
    net = model.ensemble_
    loader = Loader(graphs, batch_size=batch_size, encoding=model.encoding_, seed=3)
    found = torch.empty(len(graphs), 4)
    with torch.no_grad():
        for batch, _, indices in loader:
            found[indices] = net.double()(
                Padded(batch.values.double(), batch.sizes), [graphs[p] for p in indices]
            ).float()
    net.float()
    np.testing.assert_allclose(found.softmax(1).numpy(), model.predict_proba(graphs), rtol=0, atol=1e-6)


def test_predictions_are_in_the_order_of_the_graphs(fitted):
    model, graphs = fitted
    order = np.random.default_rng(0).permutation(len(graphs))
    shuffled = model.predict_proba([graphs[index] for index in order])
    np.testing.assert_allclose(shuffled, model.predict_proba(graphs)[order], rtol=0, atol=1e-12)


def test_predictions_are_permutation_invariant(fitted):
    model, graphs = fitted
    generator = torch.Generator().manual_seed(0)
    renumbered = [Graph(g.n, torch.randperm(g.n, generator=generator)[g.edge_index]) for g in graphs]
    np.testing.assert_allclose(model.predict_proba(renumbered), model.predict_proba(graphs), rtol=0, atol=1e-12)


def test_predicting_does_not_change_the_model(fitted):
    model, graphs = fitted
    before = {name: value.clone() for name, value in model.ensemble_.state_dict().items()}
    model.predict_proba(graphs)
    after = model.ensemble_.state_dict()
    assert all(value.dtype == torch.float32 and torch.equal(value, before[name]) for name, value in after.items())


def test_predictions_of_a_regressor_do_not_depend_on_the_batch():
    graphs, _ = generated.leaf_pairs(30)
    model = regressor().fit(graphs, [float(graph.n) for graph in graphs])
    alone = np.concatenate([model.predict([graph]) for graph in graphs])
    np.testing.assert_allclose(model.predict(graphs), alone, rtol=1e-12)
