"""Validation data."""

import networkx as nx
import numpy as np
import pytest

from bellnet.data import generated
from bellnet.errors import DataError
from tests.estimator.small import classifier, leaves, regressor, stars_and_paths, with_features

GRAPHS, LABELS = leaves(16)
OTHERS, THEIRS = (part[16:] for part in leaves(24))


def test_validation_data_is_the_validation_set():
    model = classifier(max_epochs=3).fit(GRAPHS, LABELS, validation_data=(OTHERS, THEIRS))
    alone = classifier(max_epochs=3, validation_fraction=0).fit(GRAPHS, LABELS)
    for one, other in zip(model.history_, alone.history_, strict=True):
        assert (one["loss"], one["accuracy"]) == (other["loss"], other["accuracy"])
        assert one["validation_loss"] is not None
        assert other["validation_loss"] is None
    probabilities = model.predict_proba(OTHERS)[np.arange(8), THEIRS]
    assert model.history_[model.best_epoch_]["validation_loss"] == pytest.approx(
        -np.log(probabilities).mean(), abs=1e-5
    )


@pytest.mark.parametrize("layout", ["padded", "sparse"])
@pytest.mark.parametrize("make", [classifier, regressor])
@pytest.mark.parametrize("target", ["node", "edge"])
def test_validation_data_may_be_other_labels_of_the_same_graph(make, target, layout):
    graph = generated.leaf_pairs(1)[0][0]
    labels = np.arange(graph.n) // 2 % 2.0
    if target == "edge":
        labels = labels[graph.edge_index.numpy()].max(0)
    training, validation = labels.copy(), labels.copy()
    training[::2], validation[1::2] = np.nan, np.nan
    model = make(target=target, layout=layout).fit([graph], [training], validation_data=([graph], [validation]))
    measured = model.score([graph], [validation])
    name = "accuracy" if make is classifier else "r2"
    assert model.history_[model.best_epoch_][f"validation_{name}"] == pytest.approx(measured, abs=1e-4)


def test_class_weights_apply_to_validation_data():
    weights = {0: 1.0, 1: 3.0}
    model = classifier(max_epochs=1, class_weight=weights).fit(GRAPHS, LABELS, validation_data=(OTHERS, THEIRS))
    probabilities = model.predict_proba(OTHERS)[np.arange(8), THEIRS]
    counts = np.where(THEIRS == 1, 3.0, 1.0) / 2  # the mean over the training set
    assert model.history_[0]["validation_loss"] == pytest.approx((-np.log(probabilities) * counts).mean(), abs=1e-5)


def test_the_scaling_is_fitted_to_the_training_set():
    large = [with_features(graph, value=1000 * number) for number, graph in enumerate(OTHERS)]
    small = [with_features(graph, value=number / 7) for number, graph in enumerate(GRAPHS)]
    model = classifier().fit(small, LABELS, validation_data=(large, THEIRS))
    alone = classifier().fit(small, LABELS)
    assert (model.scaling_, model.encoding_) == (alone.scaling_, alone.encoding_)
    assert np.array_equal(model.ensemble_.members[0].scale, alone.ensemble_.members[0].scale)


def test_validation_data_has_the_attributes_of_the_training_set():
    def named(count):
        graphs = [nx.path_graph(4 + number % 2) for number in range(count)]
        for graph in graphs:
            nx.set_node_attributes(graph, {node: "ab"[node % 2] for node in graph}, "element")
        return graphs, [number % 2 for number in range(count)]

    graphs, labels = named(12)
    model = classifier().fit(graphs, labels, validation_data=named(4))
    assert model.history_[0]["validation_loss"] is not None


@pytest.mark.parametrize(
    ("given", "message"),
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
def test_invalid_validation_data_is_refused(given, message):
    with pytest.raises(DataError, match=rf"GraphClassifier\.fit\(validation_data=\(graphs, y\)\): .*{message}"):
        classifier().fit(GRAPHS, LABELS, validation_data=given)


def test_validation_targets_of_another_shape_are_refused():
    with pytest.raises(DataError, match=r"like the training set, an array of shape \(8,\), but it is"):
        regressor().fit(GRAPHS, LABELS, validation_data=(OTHERS, np.ones((8, 2))))


def test_validation_data_can_stop_a_fit_early():
    graphs, labels = stars_and_paths()
    options = {"learning_rate": 0.01, "batch_size": 5, "max_epochs": 40, "patience": 2}
    model = classifier(**options).fit(graphs, labels, validation_data=(graphs, 1 - labels))
    assert len(model.history_) < 20
