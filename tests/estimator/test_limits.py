"""Extreme weights, classes and graphs; messages are in tests/messages."""

import numpy as np
import pytest
import torch

from bellnet.data import Graph, undirected
from bellnet.errors import BellnetError, DataError, OptionError
from bellnet.estimator.labels import relative_weights
from tests.estimator.small import classifier, leaves, with_features

GRAPHS, LABELS = leaves(12)
EMPTY = Graph(0, torch.empty(2, 0, dtype=torch.int64))


def test_fractional_classes_are_refused():
    with pytest.raises(DataError, match=r"y must hold classes, .*Unknown label type: continuous"):  # by scikit-learn
        classifier().fit(GRAPHS, np.linspace(0, 1, 12))


@pytest.mark.parametrize("size", [1e107, 1e200, 1e306, 1e-300, 5e-324])
def test_equal_weights_of_any_size_equal_weights_of_one(size):
    expected = classifier().fit(GRAPHS, LABELS).history_
    assert classifier(class_weight={0: size, 1: size}).fit(GRAPHS, LABELS).history_ == expected
    assert classifier().fit(GRAPHS, LABELS, sample_weight=np.full(12, size)).history_ == expected


def test_class_weights_whose_sum_overflows_are_allowed():
    heavy = classifier(class_weight={0: 1.7e308, 1: 0}).fit(GRAPHS, LABELS)
    assert heavy.history_ == classifier(class_weight={0: 1.0, 1: 0.0}).fit(GRAPHS, LABELS).history_
    assert heavy.history_[0]["loss"] > 0
    alike = classifier(class_weight={0: 1.7e308, 1: 1.7e308}).fit(GRAPHS, LABELS)
    assert alike.history_ == classifier().fit(GRAPHS, LABELS).history_


def test_relative_weights_are_zero_only_where_a_weight_is_zero():
    training, ones = np.ones(12, dtype=bool), np.ones(12)
    found = relative_weights("fit", np.where(LABELS == 0, 1e15, 1e-15), ones, training)
    assert (found > 0).all()
    assert relative_weights("fit", np.where(LABELS == 0, 1e308, 0.0), ones, training)[LABELS == 1].max() == 0


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_missing_gpu_is_reported():
    with pytest.raises(OptionError, match="device is 'cuda', which is not available"):
        classifier(device="cuda").fit(GRAPHS, LABELS)


@pytest.fixture(scope="module")
def fitted():
    return classifier().fit([with_features(graph) for graph in GRAPHS], LABELS)


def test_edges_without_features_have_weight_one():
    weighted = [
        Graph(graph.n, graph.edge_index, edge_features=torch.rand(1).expand(graph.n_edges, 1)) for graph in GRAPHS
    ]
    model = classifier().fit(weighted, LABELS)
    assert model.predict([GRAPHS[0], undirected(3, [])]).shape == (2,)


def test_a_failed_fit_leaves_no_network():
    model = classifier().fit(GRAPHS, LABELS).set_params(class_weight={"no such class": 1})
    with pytest.raises(BellnetError):
        model.fit(GRAPHS, LABELS)
    assert not hasattr(model, "ensemble_")


def test_problems_returns_all_graphs_that_cannot_be_predicted(fitted):
    graphs = [*map(with_features, GRAPHS), None, EMPTY, GRAPHS[0]]
    found = fitted.problems(graphs)
    assert list(found) == [12, 13, 14]
    assert found[13] == "it has no nodes."
    assert found[14] == "it has 0 node_features, but the graphs of the fit had 3."
    good = [graph for index, graph in enumerate(graphs) if index not in found]
    assert fitted.predict(good).shape == (12,)


@pytest.mark.parametrize(
    ("labels", "count"),
    [
        ([0, 1], 2),
        ([0, 1, 2, 0], 3),
        (["1", "2", "3"], 3),
        (["1.0", "2.0"] * 2, 2),
        (["v1.5", "0.5"] * 2, 2),
        (list(range(10)), 10),
        ([*range(11)] * 2, 11),
    ],
    ids=str,
)
def test_few_graphs_of_several_classes_can_be_classified(labels, count):
    graphs = (GRAPHS * 2)[: len(labels)]
    assert len(classifier(max_epochs=1).fit(graphs, labels).classes_) == count
