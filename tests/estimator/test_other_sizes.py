"""Graphs of other sizes than the training graphs."""

import pickle
import warnings

import pytest

from bellnet.data import generated
from bellnet.estimator import GraphClassifier, load
from tests.estimator.small import classifier, regressor

WORDS = """\
GraphClassifier.predict(graphs): the training graphs have 8 to 14 nodes, but 6 of these 10 graphs have 30 to 40.
The number of nodes is an input of the network, which does not extrapolate reliably. If labels do not depend on it, \
fit with size_feature=False."""


def graphs_of(count, fewest, most):
    graphs, labels = generated.leaf_pairs(count, nodes=(fewest, most))
    ends = [graph for graph in graphs if graph.n in (fewest, most)]
    assert {graph.n for graph in ends} == {fewest, most}, "the set must have graphs of both ends"
    return graphs, labels.numpy()


@pytest.fixture(scope="module")
def training_set():
    return graphs_of(60, 8, 14)


@pytest.fixture(scope="module")
def model(training_set):
    return classifier(size_feature=True, max_epochs=1).fit(*training_set)


def mixed(training_set):
    large = sorted(graphs_of(60, 30, 40)[0], key=lambda graph: graph.n)
    return [*training_set[0][:4], *large[:3], *large[-3:]]


def warnings_of(model, graphs):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.predict(graphs)
    return caught


def test_graphs_much_larger_than_the_training_graphs_cause_a_warning(model, training_set):
    (warning,) = warnings_of(model, mixed(training_set))
    assert str(warning.message) == WORDS
    assert warning.filename == __file__


def test_loaded_models_know_the_sizes_of_the_training_graphs(model, training_set, tmp_path):
    model.save(tmp_path / "model")
    for again in (load(tmp_path / "model"), pickle.loads(pickle.dumps(model))):
        assert again.n_nodes_ == model.n_nodes_ == (8, 14)
        assert [str(warning.message) for warning in warnings_of(again, mixed(training_set))] == [WORDS]


def test_similar_sizes_cause_no_warning(model, training_set):
    assert warnings_of(model, [*training_set[0], *(graph for graph in graphs_of(60, 7, 15)[0])]) == []


def test_without_size_feature_there_is_no_warning(training_set):
    for make in (classifier, regressor):
        blind = make(size_feature=False, max_epochs=1).fit(*training_set)
        assert warnings_of(blind, mixed(training_set)) == []


def test_if_all_training_graphs_have_one_size_every_other_size_causes_a_warning():
    graphs, labels = generated.leaf_pairs(20, nodes=(9, 9))
    alike = regressor(size_feature=True, max_epochs=1).fit(graphs, labels.numpy())
    assert warnings_of(alike, graphs) == []
    (warning,) = warnings_of(alike, graphs_of(60, 10, 11)[0][:1])
    assert "training graphs have 9 nodes, but 1 of these 1 graphs have 1" in str(warning.message)


def test_without_size_feature_networks_generalise_to_larger_graphs():
    training_set, test_set = generated.leaf_pairs(80, nodes=(8, 14)), generated.leaf_pairs(30, nodes=(30, 40))
    options = {"max_epochs": 10, "random_state": 0, "verbose": False}
    with pytest.warns(UserWarning, match="fit with size_feature=False"):
        assert GraphClassifier(**options).fit(*training_set).score(*test_set) < 0.8
    assert GraphClassifier(size_feature=False, **options).fit(*training_set).score(*test_set) > 0.95
