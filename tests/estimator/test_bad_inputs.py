"""A battery of what cannot be learned from, each with the words that say so."""

import datetime
from decimal import Decimal
from fractions import Fraction

import networkx
import numpy as np
import pytest
import torch

from bellnet.data import Graph, undirected
from bellnet.errors import BellnetError, DataError, OptionError
from bellnet.estimator.weights import relative_weights
from tests.estimator.small import classifier, leaves, regressor, with_features

GRAPHS, LABELS = leaves(12)
EMPTY = Graph(0, torch.empty(2, 0, dtype=torch.int64))
FIT = "GraphClassifier.fit(graphs, y)"


def nan_graph():
    graph = networkx.path_graph(4)
    networkx.set_node_attributes(graph, {node: [1.0, float("nan") if node == 2 else 0.0] for node in graph}, "features")
    return graph


@pytest.mark.parametrize(
    ("graphs", "labels", "words"),
    [
        (GRAPHS, None, f"{FIT} requires y to be passed, but the target y is None.\nGive a label for each graph"),
        (GRAPHS, LABELS[:-1], f"{FIT}: y must have an entry for each of the 12 graphs, not 11 entries."),
        (GRAPHS, 1, f"{FIT}: y must have an entry for each of the 12 graphs, not a single value."),
        (
            GRAPHS,
            [0, None, 1] * 4,
            f"{FIT}: y contains NaN or missing values: 4 of 12 labels are missing, the first is",
        ),
        (GRAPHS, [0, 1, np.nan] * 4, f"{FIT}: y contains NaN or missing values: 4 of 12 labels are NaN or infinite"),
        (GRAPHS, np.linspace(0, 1, 12), f"{FIT}: y must hold classes, whole numbers or strings. Unknown label type:"),
        (GRAPHS, [[0], [1, 2]] * 6, f"{FIT}: y must be an array, but its entries differ in length."),
        (GRAPHS, np.zeros((12, 2)), f"{FIT}: y must have one label for each graph, but its shape is (12, 2)."),
        (GRAPHS, np.arange(12) * 1j, f"{FIT}: y must hold real numbers or names of classes, but it is complex128."),
        (GRAPHS, ["a"] * 12, f"{FIT}: y holds one class only, 'a'; a classifier needs at least two."),
        ([], [], f"{FIT}: there is no graph; the list is empty."),
        (
            [*GRAPHS[:3], EMPTY, *GRAPHS[4:]],
            LABELS,
            f"{FIT}: graphs[3] has no nodes.\nLeave out empty graphs, and their",
        ),
        ([EMPTY, EMPTY], [0, 1], f"{FIT}: graphs[0] has no nodes (2 graphs are such).\nLeave out empty graphs"),
        (GRAPHS[0], LABELS, f"{FIT}: as_graphs(graphs): expected a list of graphs"),
        (None, LABELS, f"{FIT}: as_graphs(graphs): expected a list of graphs"),
        ([*GRAPHS[:11], "a graph"], LABELS, f"{FIT}: graphs[11]: as_graph(graph): expected a bellnet.data.Graph"),
        ([*GRAPHS[:11], np.zeros((2, 3))], LABELS, f"{FIT}: graphs[11]: "),
        (
            [*GRAPHS[:11], nan_graph()],
            LABELS,
            f"{FIT}: graphs[11]: Graph: node_features must be finite, but feature 1 of",
        ),
        (
            [with_features(GRAPHS[0], 2), with_features(GRAPHS[1], 3)],
            [0, 1],
            f"{FIT}: Encoding.fit(graphs): all graphs must have the same number of node_features, but graphs[0] has 2",
        ),
        (
            [with_features(GRAPHS[0], 2), GRAPHS[1]],
            [0, 1],
            f"{FIT}: Encoding.fit(graphs): all graphs must have the same",
        ),
    ],
)
def test_what_cannot_be_learned_from_is_refused_with_a_reason(graphs, labels, words):
    with pytest.raises(DataError) as caught:
        classifier().fit(graphs, labels)
    assert str(caught.value).startswith(words)


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        (
            np.arange(12) * 1j,
            "GraphRegressor.fit(graphs, y): y must hold real numbers or names of classes, but it is co",
        ),
        (["much", "little"] * 6, "GraphRegressor.fit(graphs, y): y must hold numbers, but it is <U6."),
        (np.zeros((12, 2, 2)), "GraphRegressor.fit(graphs, y): y must have one axis, or two for several numbers each"),
        (
            [np.inf] + [0] * 11,
            "GraphRegressor.fit(graphs, y): y contains NaN or missing values: 1 of 12 labels are NaN",
        ),
        (
            [10**400, 1] * 6,
            "GraphRegressor.fit(graphs, y): y must hold numbers of 64 bits, but some are too large for that.\nScale",
        ),
    ],
)
def test_numbers_that_are_none_are_refused(labels, words):
    with pytest.raises(DataError) as caught:
        regressor().fit(GRAPHS, labels)
    assert str(caught.value).startswith(words)


@pytest.mark.parametrize(
    ("weights", "words"),
    [
        (np.ones(11), "sample_weight must have an entry for each of the 12 graphs, not 11 entries."),
        (np.ones((12, 2)), "sample_weight must be one number for each label, not float64 of shape (12, 2)."),
        (["a"] * 12, "sample_weight must be one number for each label, not <U1 of shape (12,)."),
        (-np.ones(12), "sample_weight must hold finite numbers from 0 up."),
        (np.full(12, np.nan), "sample_weight must hold finite numbers from 0 up."),
        (np.full(12, 1j), "sample_weight must be one number for each label, not complex128 of shape (12,)."),
        (np.full(12, 1e308), "the sum of sample_weight must be finite; it is too large for a number."),
        (np.zeros(12), "all weights are zero; at least one label must count."),
    ],
)
def test_weights_that_cannot_be_are_refused(weights, words):
    with pytest.raises(DataError) as caught:
        classifier().fit(GRAPHS, LABELS, sample_weight=weights)
    assert str(caught.value) == f"{FIT}: {words}"


@pytest.mark.parametrize(
    ("weights", "class_weight"),
    [
        (np.full(12, 1e200), {0: 1e200, 1: 1e200}),  # a product too large
        (np.where(np.arange(12) == 0, 1e300, 1e-300), {0: 1e-8, 1: 1e8}),  # too far apart
    ],
    ids=["large", "separate"],
)
def test_weights_that_cannot_be_computed_with_are_refused(weights, class_weight):
    model = classifier(class_weight=class_weight, random_state=1, validation_fraction=0.5)
    with pytest.raises(DataError) as caught:
        model.fit(GRAPHS, LABELS, sample_weight=weights)
    assert str(caught.value) == (
        f"{FIT}: the weights of the labels, sample_weight times class_weight, cannot be computed with: divided by the "
        "mean of those that are learned from they are not finite.\nBring them closer together, and closer to one."
    )


@pytest.mark.parametrize("size", [1e107, 1e200, 1e306, 1e-300, 5e-324])
def test_equal_weights_of_any_size_are_weights_of_one(size):
    expected = classifier().fit(GRAPHS, LABELS).history_
    assert classifier(class_weight={0: size, 1: size}).fit(GRAPHS, LABELS).history_ == expected
    assert classifier().fit(GRAPHS, LABELS, sample_weight=np.full(12, size)).history_ == expected


def test_classes_whose_weights_add_up_to_more_than_a_number_are_learned():
    heavy = classifier(class_weight={0: 1.7e308, 1: 0}).fit(GRAPHS, LABELS)
    assert heavy.history_ == classifier(class_weight={0: 1.0, 1: 0.0}).fit(GRAPHS, LABELS).history_
    assert heavy.history_[0]["loss"] > 0
    alike = classifier(class_weight={0: 1.7e308, 1: 1.7e308}).fit(GRAPHS, LABELS)
    assert alike.history_ == classifier().fit(GRAPHS, LABELS).history_


@pytest.mark.parametrize(
    ("class_weight", "said"),
    [
        ({0: 1e308, 1: 1.0}, "class_weight of 1 is 1.0, which is nothing beside 1e+308, that of 0"),
        ({0: 1e308}, "class_weight of 1 is 1.0, which is nothing beside 1e+308, that of 0"),
        ({0: 1e-30, 1: 1e20}, "class_weight of 0 is 1e-30, which is nothing beside 1e+20, that of 1"),
    ],
)
def test_a_class_whose_weight_would_vanish_is_named(class_weight, said):
    with pytest.raises(OptionError) as caught:
        classifier(class_weight=class_weight).fit(GRAPHS, LABELS)
    assert str(caught.value) == (
        f"{FIT}: {said}: as numbers of 32 bits, with which training computes, it would be zero.\n"
        "Bring them closer together, or give 0 to a class that is not to count."
    )


@pytest.mark.parametrize(
    ("weights", "class_weight"),
    [
        (np.where(np.arange(12) == 5, 1e-30, 1e10), None),
        (np.where(np.arange(12) == 5, 5e-324, 1), {0: 1e-10, 1: 1e-10}),  # the product is zero already
        (np.where(np.arange(12) == 5, 1e-20, 1), {0: 1e10, 1: 1e-10}),
    ],
    ids=["alone", "product", "together"],
)
def test_a_label_whose_weight_would_vanish_is_named(weights, class_weight):
    with pytest.raises(DataError) as caught:
        classifier(class_weight=class_weight).fit(GRAPHS, LABELS, sample_weight=weights)
    assert str(caught.value) == (
        f"{FIT}: the weight of label 5, sample_weight times class_weight, is nothing beside the others: as a number of "
        "32 bits, with which training computes, it would be zero.\n"
        "Bring the weights closer together, or give 0 to a label that is not to count."
    )


def test_weights_that_are_far_apart_stay_and_those_of_zero_are_meant():
    held = np.zeros(12, dtype=bool)
    found = relative_weights(FIT, np.where(LABELS == 0, 1e15, 1e-15), held)
    assert (found > 0).all()
    assert relative_weights(FIT, np.where(LABELS == 0, 1e308, 0.0), held)[LABELS == 1].max() == 0


def test_weights_of_graphs_that_add_up_to_more_than_a_number_over_their_nodes_are_refused():
    labels = [np.arange(graph.n) % 2 for graph in GRAPHS]
    with pytest.raises(DataError, match="the sum of sample_weight must be finite; it is too large for a number"):
        classifier(target="node").fit(GRAPHS, labels, sample_weight=np.full(12, 1e307))


@pytest.mark.parametrize("target", ["node", "edge"])
def test_a_single_weight_for_all_nodes_or_edges_is_refused(target):
    counts = [graph.n if target == "node" else graph.n_edges for graph in GRAPHS]
    labels = [np.full(count, number % 2) for number, count in enumerate(counts)]
    with pytest.raises(DataError) as caught:
        classifier(target=target).fit(GRAPHS, labels, sample_weight=2.0)
    assert str(caught.value).startswith(
        f"{FIT}: sample_weight must be a list with an array for each of the 12 graphs, not float.\n"
    )


def test_a_score_with_weights_that_cannot_be_is_refused(fitted):
    with pytest.raises(DataError, match="the sum of sample_weight must be finite"):
        fitted.score([with_features(graph) for graph in GRAPHS], LABELS, sample_weight=np.full(12, 1e308))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"target": "world"}, "target must be one of 'graph', 'node', 'edge', not 'world'."),
        ({"pool": None}, "pool must be one or several of 'max', 'mean', 'sum', not None."),
        ({"adjacency": "laplacian"}, "adjacency must be one of 'plain', 'normalized', 'both', not 'laplacian'."),
        ({"degrees": 1}, "degrees must be True or False, not 1."),
        ({"channels": ()}, "channels must be the widths of the layers, such as (16, 32), not ()."),
        ({"channels": 16}, "channels must be the widths of the layers, such as (16, 32), not 16."),
        ({"hidden": (8, 0)}, "hidden must be the widths of the layers, such as (16, 32), not (8, 0)."),
        ({"dropout": 1}, "dropout must be from 0 up and below 1, not 1."),
        ({"validation_fraction": -0.1}, "validation_fraction must be from 0 up and below 1, not -0.1."),
        ({"learning_rate": 0}, "learning_rate must be a positive number, not 0."),
        ({"weight_decay": "a"}, "weight_decay must be a number from 0 up, not 'a'."),
        ({"max_epochs": 2.5}, "max_epochs must be 'auto' or a whole number from 1 up, not 2.5."),
        ({"patience": True}, "patience must be a whole number from 1 up or None, not True."),
        ({"batch_size": 0}, "batch_size must be a whole number from 1 up, not 0."),
        ({"device": "abacus"}, "device must be 'auto' or a device of torch such as 'cpu', not 'abacus'."),
        ({"device": 10**5000}, "device must be 'auto' or a device of torch such as 'cpu', not <int too long to be"),
        ({"pool": 10**5000}, "pool must be one or several of 'max', 'mean', 'sum', not <int too long to be written>."),
        ({"dropout": -(10**5000)}, "dropout must be from 0 up and below 1, not <int too long to be written>."),
        (
            {"channels": [-(10**5000)]},
            "channels must be the widths of the layers, such as (16, 32), not <list",
        ),
        ({"class_weight": "heavy"}, "class_weight must be None, 'balanced' or a dict with a weight for every class"),
        ({"class_weight": {7: 1.0}}, "class_weight has 7, which is no class of y."),
        ({"class_weight": {1: -1.0}}, "class_weight must hold finite numbers from 0 up, not {1: -1.0}."),
        ({"class_weight": {0: 1j, 1: 1}}, "class_weight must hold finite numbers from 0 up, not {0: 1j, 1: 1}."),
        ({"class_weight": {0: "much"}}, "class_weight must hold finite numbers from 0 up, not {0: 'much'}."),
        ({"class_weight": {0: None}}, "class_weight must hold finite numbers from 0 up, not {0: None}."),
        ({"class_weight": {0: 10**400}}, "class_weight must hold finite numbers from 0 up, but that of 0 is beyond"),
        ({"class_weight": {0: 10**5000}}, "class_weight must hold finite numbers from 0 up, but that of 0 is beyond"),
        ({"learning_rate": 10**400}, "learning_rate must be at most 2**63 - 1; it is larger."),
        ({"learning_rate": Fraction(10**400)}, "learning_rate must be at most 2**63 - 1; it is larger."),
        ({"learning_rate": 1e300}, "learning_rate must be at most 2**63 - 1; it is larger."),
        ({"weight_decay": 1e300}, "weight_decay must be at most 2**63 - 1; it is larger."),
        ({"max_gigabytes": 1e300}, "max_gigabytes must be at most 2**63 - 1; it is larger."),
        ({"max_gigabytes": 1e-300}, "max_gigabytes must be at least 1e-09, which is a byte, not 1e-300."),
        ({"max_epochs": 10**400}, "max_epochs must be at most 2**63 - 1; it is larger."),
        ({"dropout": 10**5000}, "dropout must be at most 2**63 - 1; it is larger."),
        ({"batch_size": 10**5000}, "batch_size must be at most 2**63 - 1; it is larger."),
        ({"channels": (4, 10**20)}, "channels[1] must be below 2**31; it is larger."),
        ({"hidden": (10**5000,)}, "hidden[0] must be below 2**31; it is larger."),
        ({"device": "hpu"}, "device is 'hpu', but there is no such device here."),
        ({"device": "privateuseone:0"}, "device is 'privateuseone:0', but there is no such device here."),
    ],
)
def test_options_that_cannot_be_are_refused_when_fitting(options, words):
    with pytest.raises(OptionError) as caught:
        classifier(**options).fit(GRAPHS, LABELS)
    assert str(caught.value).startswith(f"{FIT}: {words}")


def test_all_mistakes_in_options_are_listed_at_once():
    with pytest.raises(OptionError) as caught:
        classifier(pool="min", max_epochs=0, dropout=2).fit(GRAPHS, LABELS)
    assert str(caught.value).count("\n") == 2


@pytest.mark.parametrize("seed", [-1, 2**32, "a", 1.5, True])
def test_a_seed_that_is_none_is_refused(seed):
    with pytest.raises(OptionError, match="random_state must be a whole number from 0"):
        classifier(random_state=seed).fit(GRAPHS, LABELS)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_gpu_that_is_not_there_is_said():
    with pytest.raises(OptionError, match="device is 'cuda', but there is no such device here"):
        classifier(device="cuda").fit(GRAPHS, LABELS)


@pytest.fixture(scope="module")
def fitted():
    return classifier().fit([with_features(graph) for graph in GRAPHS], LABELS)


@pytest.mark.parametrize(
    ("graphs", "words"),
    [
        (GRAPHS, "graphs[0] has 0 node_features, but the graphs of the fit had 3 (12 graphs are such).\nGive graphs"),
        (
            [with_features(GRAPHS[0]), with_features(GRAPHS[1], 4)],
            "graphs[1] has 4 node_features, but the graphs of the",
        ),
        ([], "there is no graph; the list is empty."),
        ([EMPTY], "graphs[0] has no nodes."),
        (GRAPHS[0], "as_graphs(graphs): expected a list of graphs"),
    ],
)
@pytest.mark.parametrize("method", ["predict", "predict_proba"])
def test_graphs_that_do_not_fit_are_not_predicted(fitted, method, graphs, words):
    with pytest.raises(DataError) as caught:
        getattr(fitted, method)(graphs)
    assert str(caught.value).startswith(f"GraphClassifier.{method}(graphs): {words}")


def test_features_that_were_never_learned_from_are_refused():
    model = classifier().fit(GRAPHS, LABELS)
    with pytest.raises(DataError, match=r"graphs\[0\] has 3 node_features, but the graphs of the fit had 0"):
        model.predict([with_features(GRAPHS[0])])


def test_node_labels_that_are_missing_are_said():
    labelled = [Graph(graph.n, graph.edge_index, node_labels=torch.zeros(graph.n).long()) for graph in GRAPHS]
    model = classifier().fit(labelled, LABELS)
    with pytest.raises(DataError, match=r"graphs\[1\] has no node_labels, but the graphs of the fit had"):
        model.predict([labelled[0], GRAPHS[1]])


def test_edges_without_features_may_stand_for_edges_of_weight_one():
    weighted = [
        Graph(graph.n, graph.edge_index, edge_features=torch.rand(1).expand(graph.n_edges, 1)) for graph in GRAPHS
    ]
    model = classifier().fit(weighted, LABELS)
    assert model.predict([GRAPHS[0], undirected(3, [])]).shape == (2,)
    wider = Graph(2, [[0, 1], [1, 0]], edge_features=torch.ones(2, 2))
    with pytest.raises(DataError, match=r"graphs\[0\] has 2 edge_features, but the graphs of the fit had 1"):
        model.predict([wider])


def test_edges_without_any_edge_are_refused():
    with pytest.raises(DataError, match="there is nothing to learn from; no graph has edges"):
        classifier(target="edge").fit([undirected(3, [])], [[]])


def test_a_failed_fit_leaves_nothing_half_learned():
    model = classifier().fit(GRAPHS, LABELS).set_params(class_weight={"no such class": 1})
    with pytest.raises(BellnetError):
        model.fit(GRAPHS, LABELS)
    assert not hasattr(model, "net_")


def test_graphs_that_cannot_be_predicted_are_found_and_can_be_left_out(fitted):
    graphs = [*map(with_features, GRAPHS), None, EMPTY, GRAPHS[0]]
    found = fitted.problems(graphs)
    assert list(found) == [12, 13, 14]
    assert found[13] == "it has no nodes."
    assert found[14] == "it has 0 node_features, but the graphs of the fit had 3."
    good = [place for place in range(len(graphs)) if place not in found]
    assert fitted.predict([graphs[place] for place in good]).shape == (12,)
    with pytest.raises(DataError, match=r"predict\(graphs\): graphs\[12\]: as_graph\(graph\): expected"):
        fitted.predict(graphs)
    with pytest.raises(DataError, match=r"has no nodes.\n.*: bellnet.data.problems\(graphs\) has the places of all\."):
        fitted.predict(graphs[:12] + graphs[13:14])


DAY = datetime.datetime(2024, 1, 1)
NOT_CLASSES = {
    "an integer and a text": ([0, "1"] * 6, "int and str"),
    "a text and a boolean": (["a", True] * 6, "bool and str"),
    "the same as objects": (np.array([0, "1"] * 6, dtype=object), "int and str"),
    "datetimes": ([DAY, DAY.replace(year=2025)] * 6, "datetime"),
    "datetimes of numpy": (np.array(["2024-01-01", "2025-01-01"] * 6, dtype="datetime64[D]"), "datetime64[D]"),
    "durations of numpy": (np.array([1, 2] * 6, dtype="timedelta64[s]"), "timedelta64[s]"),
    "decimals": ([Decimal(1), Decimal(2)] * 6, "Decimal"),
    "objects": ([object, int] * 6, "type"),
}


@pytest.mark.parametrize("name", NOT_CLASSES)
def test_labels_that_are_not_documented_are_refused_with_their_types(name):
    labels, got = NOT_CLASSES[name]
    with pytest.raises(DataError) as caught:
        classifier().fit(GRAPHS, labels)
    assert str(caught.value) == (
        "GraphClassifier.fit(graphs, y): y must hold classes of one type, all integers, all strings or all booleans; "
        f"got {got}.\nConvert them, for instance to strings: y = [str(label) for label in y]."
    )


def test_mixed_labels_of_nodes_are_refused_also_beside_unknown_ones():
    graphs = GRAPHS[:2]
    first, second = (np.zeros(graph.n, dtype=int) for graph in graphs)
    with pytest.raises(DataError, match=r"y must hold classes of one type, .*; got int and str\.\n"):
        classifier(target="node").fit(graphs, [first, second.astype(str)])
    mixed = [[0, "1", None, *first[3:].tolist()], [None] * graphs[1].n]
    with pytest.raises(DataError, match=r"y must hold classes of one type, .*; got int and str\.\n"):
        classifier(target="node").fit(graphs, mixed)


def test_mixed_labels_are_refused_in_a_score():
    model = classifier().fit(GRAPHS, LABELS)
    with pytest.raises(DataError, match=r"^GraphClassifier\.score\(graphs, y\): y must hold classes of one type"):
        model.score(GRAPHS, [0, "1"] * 6)


NUMBERS = {
    "texts of fractions": [str(number / 10) for number in range(12)],
    "texts of few fractions": ["0.5", "1"] * 6,
    "a class for each graph": list(range(12)),
    "more than ten classes, more than half of the graphs": [*range(11), 0],
    "names, one for each graph": [f"graph {number}" for number in range(12)],
}


@pytest.mark.parametrize("name", NUMBERS)
def test_labels_that_seem_to_be_targets_of_a_regression_are_refused_with_the_way_out(name):
    with pytest.raises(DataError, match=r"GraphClassifier\.fit\(graphs, y\): y .*\n.*GraphRegressor.*--regression"):
        classifier().fit(GRAPHS, NUMBERS[name])


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
