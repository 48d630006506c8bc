"""Nodes and edges with unknown labels."""

import networkx as nx
import numpy as np
import pytest
import torch

from bellnet.data import undirected
from bellnet.errors import DataError
from bellnet.estimator import GraphClassifier
from tests.estimator.small import classifier, leaves, regressor

CLUB = nx.karate_club_graph()
SIDES = [CLUB.nodes[member]["club"] for member in CLUB]
KNOWN = (0, 1, 2, 3, 30, 31, 32, 33)
for name, leader in (("from_hi", 0), ("from_officer", 33)):
    nx.set_node_attributes(CLUB, nx.single_source_shortest_path_length(CLUB, leader), name)


def partly(sides, gap=None):
    return [side if member in KNOWN else gap for member, side in enumerate(sides)]


def club_model(**options):
    return classifier(target="node", node_labels=[], **options)


def test_a_few_labels_of_one_graph_suffice():
    model = GraphClassifier(target="node", node_labels=[], verbose=False).fit([CLUB], [partly(SIDES)])
    assert model.classes_.tolist() == ["Mr. Hi", "Officer"]
    others = [member for member in CLUB if member not in KNOWN]
    predictions = model.predict([CLUB])[0]
    assert np.mean([predictions[member] == SIDES[member] for member in others]) >= 0.8


def test_unknown_labels_are_none_nan_or_masked():
    numbers = np.array([SIDES[member] == "Officer" for member in CLUB], dtype=np.int64)
    hidden = np.array([member not in KNOWN for member in CLUB])
    forms = [
        [number if member in KNOWN else None for member, number in enumerate(numbers.tolist())],
        np.where(hidden, np.nan, numbers),
        torch.from_numpy(np.where(hidden, np.nan, numbers)),
        np.ma.masked_array(numbers, hidden),
    ]
    found = [club_model(max_epochs=3).fit([CLUB], [form]) for form in forms]
    for model in found:
        assert model.classes_.tolist() == [0, 1]
        assert model.classes_.dtype == np.int64
        assert np.array_equal(model.predict_proba([CLUB])[0], found[0].predict_proba([CLUB])[0])
    texts = club_model(max_epochs=1).fit([CLUB], [partly(SIDES, float("nan"))])
    assert texts.classes_.tolist() == ["Mr. Hi", "Officer"]


def test_unknown_labels_have_no_effect():
    graphs = leaves(10)[0]
    degrees = [graph.edge_index[0].bincount(minlength=graph.n) for graph in graphs]
    y = [np.where(degree == 1, 1.0, 0.0) for degree in degrees]
    for labels in y[5:]:
        labels[:] = np.nan
    model = classifier(target="node", validation_fraction=0.2).fit(graphs, y)
    filled = [np.where(np.isnan(labels), 7, labels) for labels in y]
    with pytest.raises(DataError, match="labels of y are unknown"):
        model.score(graphs[5:], y[5:])
    assert model.score(graphs, y) == model.score(graphs[:5], y[:5])
    assert model.classes_.tolist() == [0, 1]
    assert classifier(target="node").fit(graphs, filled).classes_.tolist() == [0, 1, 7]


def test_numbers_of_some_nodes_may_be_unknown():
    graphs = leaves(6)[0]
    y = [np.arange(graph.n, dtype=float) for graph in graphs]
    for labels in y:
        labels[::2] = np.nan
    model = regressor(target="node").fit(graphs, y)
    known = np.concatenate([labels[1::2] for labels in y])
    assert model.target_scaling_.mean[0] == pytest.approx(known.mean())
    assert np.isfinite(np.concatenate(model.predict(graphs))).all()
    assert np.isfinite(model.score(graphs, y))
    with pytest.raises(DataError, match="y contains NaN or missing values"):
        regressor(target="node").fit(graphs, [np.stack([labels, np.ones_like(labels)], 1) for labels in y])


def test_one_direction_of_an_edge_may_be_unknown():
    path = undirected(4, [(0, 1), (1, 2), (2, 3)])
    labels = [None if source > target else int(source == 1) for source, target in path.edge_index.T.tolist()]
    model = classifier(target="edge").fit([path], [labels])
    assert model.predict([path])[0].shape == (6,)


def test_no_known_label_at_all_is_refused():
    with pytest.raises(DataError, match=r"all 34 labels of y are unknown: None or NaN"):
        club_model().fit([CLUB], [[None] * 34])


def test_a_graph_without_a_label_is_still_refused():
    graphs, labels = leaves(6)
    with pytest.raises(DataError, match="y contains NaN or missing values: 1 of 6 labels are missing"):
        classifier().fit(graphs, [*labels[:5].tolist(), None])
