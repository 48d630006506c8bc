"""Graphs and labels that say when to stop, given by the caller instead of held out."""

import networkx as nx
import numpy as np
import pytest

from bellnet.data import generated
from bellnet.errors import DataError
from tests.estimator.small import classifier, leaves, regressor, stars_and_paths, with_features

GRAPHS, LABELS = leaves(16)
OTHERS, THEIRS = (part[16:] for part in leaves(24))


def test_what_is_given_is_measured_and_all_of_y_is_learned():
    model = classifier(max_epochs=3).fit(GRAPHS, LABELS, validation_data=(OTHERS, THEIRS))
    alone = classifier(max_epochs=3, validation_fraction=0).fit(GRAPHS, LABELS)
    for one, other in zip(model.history_, alone.history_, strict=True):
        assert (one["loss"], one["accuracy"]) == (other["loss"], other["accuracy"])
        assert one["validation_loss"] is not None
        assert other["validation_loss"] is None
    said = model.predict_proba(OTHERS)[np.arange(8), THEIRS]
    assert model.history_[model.best_epoch_]["validation_loss"] == pytest.approx(-np.log(said).mean(), abs=1e-5)


@pytest.mark.parametrize("layout", ["padded", "sparse"])
@pytest.mark.parametrize("make", [classifier, regressor])
@pytest.mark.parametrize("target", ["node", "edge"])
def test_nodes_and_edges_of_the_same_graph_may_be_known_to_one_side_each(make, target, layout):
    graph = generated.leaf_pairs(1)[0][0]
    labels = np.arange(graph.n) // 2 % 2.0
    if target == "edge":
        labels = labels[graph.edge_index.numpy()].max(0)
    learned, asked = labels.copy(), labels.copy()
    learned[::2], asked[1::2] = np.nan, np.nan
    model = make(target=target, layout=layout).fit([graph], [learned], validation_data=([graph], [asked]))
    measured = model.score([graph], [asked])
    name = "accuracy" if make is classifier else "r2"
    assert model.history_[model.best_epoch_][f"validation_{name}"] == pytest.approx(measured, abs=1e-4)


def test_classes_weigh_as_much_there_as_where_they_are_learned():
    weights = {0: 1.0, 1: 3.0}
    model = classifier(max_epochs=1, class_weight=weights).fit(GRAPHS, LABELS, validation_data=(OTHERS, THEIRS))
    said = model.predict_proba(OTHERS)[np.arange(8), THEIRS]
    counts = np.where(THEIRS == 1, 3.0, 1.0) / 2  # the mean of those that are learned from
    assert model.history_[0]["validation_loss"] == pytest.approx((-np.log(said) * counts).mean(), abs=1e-5)


def test_scales_come_from_what_is_learned_alone():
    large = [with_features(graph, value=1000 * number) for number, graph in enumerate(OTHERS)]
    small = [with_features(graph, value=number / 7) for number, graph in enumerate(GRAPHS)]
    model = classifier().fit(small, LABELS, validation_data=(large, THEIRS))
    alone = classifier().fit(small, LABELS)
    assert (model.scaling_, model.encoding_) == (alone.scaling_, alone.encoding_)
    assert np.array_equal(model.ensemble_.members[0].scale, alone.ensemble_.members[0].scale)


def test_attributes_are_read_as_those_of_the_graphs_that_are_learned():
    def named(count):
        graphs = [nx.path_graph(4 + place % 2) for place in range(count)]
        for graph in graphs:
            nx.set_node_attributes(graph, {node: "ab"[node % 2] for node in graph}, "element")
        return graphs, [place % 2 for place in range(count)]

    graphs, labels = named(12)
    model = classifier().fit(graphs, labels, validation_data=named(4))
    assert model.history_[0]["validation_loss"] is not None


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (GRAPHS, r"validation_data must be graphs and their labels, \(graphs, y\), not 16 items"),
        (7, r"validation_data must be graphs and their labels, \(graphs, y\), not int"),
        ((OTHERS, THEIRS[1:]), "y must have an entry for each of the 8 graphs, not 7 entries"),
        ((OTHERS, THEIRS + 5), "y holds the class 5, which is not one of the 2 training classes.\\nRemove graphs"),
        (([], []), "expected at least one graph, got an empty list"),
        (([with_features(graph) for graph in OTHERS], THEIRS), r"graphs\[0\] has 3 node_features"),
    ],
    ids=["no pair", "a number", "too few labels", "another class", "no graph", "other features"],
)
def test_validation_data_that_cannot_be_used_is_refused(given, said):
    with pytest.raises(DataError, match=rf"GraphClassifier\.fit\(validation_data=\(graphs, y\)\): .*{said}"):
        classifier().fit(GRAPHS, LABELS, validation_data=given)


def test_numbers_of_another_form_are_refused():
    with pytest.raises(DataError, match=r"like the training set, an array of shape \(8,\), but it is"):
        regressor().fit(GRAPHS, LABELS, validation_data=(OTHERS, np.ones((8, 2))))


def test_validation_data_can_stop_a_fit_that_would_run_on():
    graphs, labels = stars_and_paths()
    options = {"learning_rate": 0.01, "batch_size": 5, "max_epochs": 40, "patience": 2}
    model = classifier(**options).fit(graphs, labels, validation_data=(graphs, 1 - labels))
    assert len(model.history_) < 20
