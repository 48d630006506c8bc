"""Graphs of other sizes than those that were learned from: what is said of them, and that it is said."""

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
def learned():
    return graphs_of(60, 8, 14)


@pytest.fixture(scope="module")
def model(learned):
    return classifier(size_feature=True, max_epochs=1).fit(*learned)


def mixed(learned):
    large = sorted(graphs_of(60, 30, 40)[0], key=lambda graph: graph.n)
    return [*learned[0][:4], *large[:3], *large[-3:]]


def said_of(model, graphs):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.predict(graphs)
    return caught


def test_graphs_far_larger_than_those_learned_are_named_where_predict_is_called(model, learned):
    (warning,) = said_of(model, mixed(learned))
    assert str(warning.message) == WORDS
    assert warning.filename == __file__


def test_a_model_from_a_file_or_a_pickle_knows_what_sizes_it_has_learned(model, learned, tmp_path):
    model.save(tmp_path / "model")
    for again in (load(tmp_path / "model"), pickle.loads(pickle.dumps(model))):
        assert again.n_nodes_ == model.n_nodes_ == (8, 14)
        assert [str(warning.message) for warning in said_of(again, mixed(learned))] == [WORDS]


def test_nothing_is_said_of_sizes_that_are_near_or_were_learned(model, learned):
    assert said_of(model, [*learned[0], *(graph for graph in graphs_of(60, 7, 15)[0])]) == []


def test_nothing_is_said_where_the_network_does_not_see_the_size(learned):
    for make in (classifier, regressor):
        blind = make(size_feature=False, max_epochs=1).fit(*learned)
        assert said_of(blind, mixed(learned)) == []


def test_where_all_graphs_had_one_size_every_other_one_is_named():
    graphs, labels = generated.leaf_pairs(20, nodes=(9, 9))
    alike = regressor(size_feature=True, max_epochs=1).fit(graphs, labels.numpy())
    assert said_of(alike, graphs) == []
    (warning,) = said_of(alike, graphs_of(60, 10, 11)[0][:1])
    assert "training graphs have 9 nodes, but 1 of these 1 graphs have 1" in str(warning.message)


def test_a_network_that_sees_the_size_can_be_lost_where_one_that_does_not_is_right():
    learned, asked = generated.leaf_pairs(80, nodes=(8, 14)), generated.leaf_pairs(30, nodes=(30, 40))
    options = {"max_epochs": 10, "random_state": 0, "verbose": False}
    with pytest.warns(UserWarning, match="fit with size_feature=False"):
        assert GraphClassifier(**options).fit(*learned).score(*asked) < 0.8
    assert GraphClassifier(size_feature=False, **options).fit(*learned).score(*asked) > 0.95
