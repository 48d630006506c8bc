"""Mistakes with `GraphClassifier` and `GraphRegressor`: graphs, labels, weights and options."""

import datetime
from decimal import Decimal
from fractions import Fraction
from functools import cache

import networkx
import numpy as np
import torch

from bellnet.data import Graph, undirected
from tests.estimator.small import classifier, leaves, regressor, with_features

HUGE = 10**5000  # more digits than Python writes
GRAPHS, LABELS = leaves(12)
EMPTY = Graph(0, torch.empty(2, 0, dtype=torch.int64))
DAY = datetime.datetime(2024, 1, 1)


def _fit(graphs=GRAPHS, labels=LABELS, *, sample_weight=None, **options):
    return classifier(**options).fit(graphs, labels, sample_weight=sample_weight)


def _regress(labels, **options):
    return regressor(**options).fit(GRAPHS, labels)


@cache
def _fitted():
    return _fit([with_features(graph) for graph in GRAPHS])


@cache
def _without_features():
    return _fit()


def _with_nan():
    graph = networkx.path_graph(4)
    networkx.set_node_attributes(graph, {node: [1.0, float("nan") if node == 2 else 0.0] for node in graph}, "features")
    return graph


def _labelled():
    return [Graph(graph.n, graph.edge_index, node_labels=torch.zeros(graph.n).long()) for graph in GRAPHS]


def _weighted():
    return [Graph(graph.n, graph.edge_index, edge_features=torch.rand(1).expand(graph.n_edges, 1)) for graph in GRAPHS]


def _of_nodes(weight):
    return _fit(labels=[np.arange(graph.n) % 2 for graph in GRAPHS], target="node", sample_weight=weight)


def _of_edges(weight):
    return _fit(
        labels=[np.full(graph.n_edges, at % 2) for at, graph in enumerate(GRAPHS)], target="edge", sample_weight=weight
    )


def _at(index, value, others):
    return np.where(np.arange(12) == index, value, others)


CASES = {
    # labels
    "no labels": lambda: _fit(labels=None),
    "too few labels": lambda: _fit(labels=LABELS[:-1]),
    "a number for all labels": lambda: _fit(labels=1),
    "labels that are None": lambda: _fit(labels=[0, None, 1] * 4),
    "labels that are NaN": lambda: _fit(labels=[0, 1, np.nan] * 4),
    "labels of different lengths": lambda: _fit(labels=[[0], [1, 2]] * 6),
    "two labels for each graph": lambda: _fit(labels=np.zeros((12, 2))),
    "complex labels": lambda: _fit(labels=np.arange(12) * 1j),
    "one class": lambda: _fit(labels=["a"] * 12),
    "an integer and a string": lambda: _fit(labels=[0, "1"] * 6),
    "a string and a boolean": lambda: _fit(labels=["a", True] * 6),
    "an integer and a string in an array of objects": lambda: _fit(labels=np.array([0, "1"] * 6, dtype=object)),
    "datetimes": lambda: _fit(labels=[DAY, DAY.replace(year=2025)] * 6),
    "datetimes of NumPy": lambda: _fit(labels=np.array(["2024-01-01", "2025-01-01"] * 6, dtype="datetime64[D]")),
    "durations of NumPy": lambda: _fit(labels=np.array([1, 2] * 6, dtype="timedelta64[s]")),
    "decimals": lambda: _fit(labels=[Decimal(1), Decimal(2)] * 6),
    "classes of Python": lambda: _fit(labels=[object, int] * 6),
    "strings of fractions": lambda: _fit(labels=[str(number / 10) for number in range(12)]),
    "strings of few fractions": lambda: _fit(labels=["0.5", "1"] * 6),
    "a class for each graph": lambda: _fit(labels=list(range(12))),
    "eleven classes of twelve graphs": lambda: _fit(labels=[*range(11), 0]),
    "a name for each graph": lambda: _fit(labels=[f"graph {number}" for number in range(12)]),
    "labels of nodes of several types": lambda: _fit(
        GRAPHS[:2], [np.zeros(GRAPHS[0].n, dtype=int), np.full(GRAPHS[1].n, "0")], target="node"
    ),
    "labels of nodes of several types, some unknown": lambda: _fit(
        GRAPHS[:2], [[0, "1", None, *[0] * (GRAPHS[0].n - 3)], [None] * GRAPHS[1].n], target="node"
    ),
    "labels of several types in a score": lambda: _without_features().score(GRAPHS, [0, "1"] * 6),
    "complex targets": lambda: _regress(np.arange(12) * 1j),
    "strings as targets": lambda: _regress(["much", "little"] * 6),
    "a matrix of targets for each graph": lambda: _regress(np.zeros((12, 2, 2))),
    "an infinite target": lambda: _regress([np.inf] + [0] * 11),
    "targets beyond 64 bits": lambda: _regress([10**400, 1] * 6),
    # graphs
    "no graphs": lambda: _fit([], []),
    "a graph without nodes": lambda: _fit([*GRAPHS[:3], EMPTY, *GRAPHS[4:]]),
    "graphs without nodes": lambda: _fit([EMPTY, EMPTY], [0, 1]),
    "one graph for a list": lambda: _fit(GRAPHS[0]),
    "None for a list of graphs": lambda: _fit(None),
    "a string in a list of graphs": lambda: _fit([*GRAPHS[:11], "a graph"]),
    "a matrix that is not square in a list of graphs": lambda: _fit([*GRAPHS[:11], np.zeros((2, 3))]),
    "a node feature that is NaN": lambda: _fit([*GRAPHS[:11], _with_nan()]),
    "node features of different widths": lambda: _fit(
        [with_features(GRAPHS[0], 2), with_features(GRAPHS[1], 3)], [0, 1]
    ),
    "node features of some graphs": lambda: _fit([with_features(GRAPHS[0], 2), GRAPHS[1]], [0, 1]),
    "no edges to predict": lambda: _fit([undirected(3, [])], [[]], target="edge"),
    # weights
    "too few weights": lambda: _fit(sample_weight=np.ones(11)),
    "two weights for each graph": lambda: _fit(sample_weight=np.ones((12, 2))),
    "strings as weights": lambda: _fit(sample_weight=["a"] * 12),
    "negative weights": lambda: _fit(sample_weight=-np.ones(12)),
    "weights that are NaN": lambda: _fit(sample_weight=np.full(12, np.nan)),
    "complex weights": lambda: _fit(sample_weight=np.full(12, 1j)),
    "weights with an infinite sum": lambda: _fit(sample_weight=np.full(12, 1e308)),
    "weights that are all zero": lambda: _fit(sample_weight=np.zeros(12)),
    "weights with an infinite product": lambda: _fit(
        class_weight={0: 1e200, 1: 1e200}, random_state=1, validation_fraction=0.5, sample_weight=np.full(12, 1e200)
    ),
    "weights that are too far apart": lambda: _fit(
        class_weight={0: 1e-8, 1: 1e8}, random_state=1, validation_fraction=0.5, sample_weight=_at(0, 1e300, 1e-300)
    ),
    "a weight of a class that underflows": lambda: _fit(class_weight={0: 1e308, 1: 1.0}),
    "a weight of a class that underflows beside the default": lambda: _fit(class_weight={0: 1e308}),
    "a small weight of a class that underflows": lambda: _fit(class_weight={0: 1e-30, 1: 1e20}),
    "a weight of a label that underflows": lambda: _fit(sample_weight=_at(5, 1e-30, 1e10)),
    "a weight of a label whose product is zero": lambda: _fit(
        class_weight={0: 1e-10, 1: 1e-10}, sample_weight=_at(5, 5e-324, 1)
    ),
    "a weight of a label that underflows in the product": lambda: _fit(
        class_weight={0: 1e10, 1: 1e-10}, sample_weight=_at(5, 1e-20, 1)
    ),
    "weights of graphs with an infinite sum over nodes": lambda: _of_nodes(np.full(12, 1e307)),
    "one weight for all nodes": lambda: _of_nodes(2.0),
    "one weight for all edges": lambda: _of_edges(2.0),
    "weights with an infinite sum in a score": lambda: _fitted().score(
        [with_features(graph) for graph in GRAPHS], LABELS, sample_weight=np.full(12, 1e308)
    ),
    # options
    "an unknown target": lambda: _fit(target="world"),
    "no pooling": lambda: _fit(pool=None),
    "an unknown adjacency": lambda: _fit(adjacency="laplacian"),
    "a number for degrees": lambda: _fit(degrees=1),
    "no channels": lambda: _fit(channels=()),
    "one number of channels": lambda: _fit(channels=16),
    "a hidden layer of width zero": lambda: _fit(hidden=(8, 0)),
    "a dropout of one": lambda: _fit(dropout=1),
    "a negative validation fraction": lambda: _fit(validation_fraction=-0.1),
    "a learning rate of zero": lambda: _fit(learning_rate=0),
    "a string for the weight decay": lambda: _fit(weight_decay="a"),
    "half an epoch": lambda: _fit(max_epochs=2.5),
    "a boolean for the patience": lambda: _fit(patience=True),
    "a batch size of zero": lambda: _fit(batch_size=0),
    "an unknown device": lambda: _fit(device="abacus"),
    "a device that is a number of 5000 digits": lambda: _fit(device=HUGE),
    "a pooling that is a number of 5000 digits": lambda: _fit(pool=HUGE),
    "a negative dropout of 5000 digits": lambda: _fit(dropout=-HUGE),
    "channels of 5000 digits": lambda: _fit(channels=[-HUGE]),
    "a string for the class weights": lambda: _fit(class_weight="heavy"),
    "a weight of an unknown class": lambda: _fit(class_weight={7: 1.0}),
    "a negative class weight": lambda: _fit(class_weight={1: -1.0}),
    "a complex class weight": lambda: _fit(class_weight={0: 1j, 1: 1}),
    "a string for a class weight": lambda: _fit(class_weight={0: "much"}),
    "None for a class weight": lambda: _fit(class_weight={0: None}),
    "a class weight beyond 64 bits": lambda: _fit(class_weight={0: 10**400}),
    "a class weight of 5000 digits": lambda: _fit(class_weight={0: HUGE}),
    "a learning rate beyond 64 bits": lambda: _fit(learning_rate=10**400),
    "a learning rate that is a fraction beyond 64 bits": lambda: _fit(learning_rate=Fraction(10**400)),
    "a learning rate beyond 2**63": lambda: _fit(learning_rate=1e300),
    "a weight decay beyond 2**63": lambda: _fit(weight_decay=1e300),
    "a bound of memory beyond 2**63": lambda: _fit(max_gigabytes=1e300),
    "a bound of memory below one byte": lambda: _fit(max_gigabytes=1e-300),
    "epochs beyond 2**63": lambda: _fit(max_epochs=10**400),
    "a dropout of 5000 digits": lambda: _fit(dropout=HUGE),
    "a batch size of 5000 digits": lambda: _fit(batch_size=HUGE),
    "channels beyond 2**31": lambda: _fit(channels=(4, 10**20)),
    "a hidden layer of 5000 digits": lambda: _fit(hidden=(HUGE,)),
    "a device that torch was built without": lambda: _fit(device="hpu"),
    "a private device": lambda: _fit(device="privateuseone:0"),
    "a device with a number that does not exist": lambda: _fit(device="cuda:99"),
    "three wrong options": lambda: _fit(pool="min", max_epochs=0, dropout=2),
    "a negative seed": lambda: _fit(random_state=-1),
    "a seed of 33 bits": lambda: _fit(random_state=2**32),
    "a string for a seed": lambda: _fit(random_state="a"),
    "a fraction for a seed": lambda: _fit(random_state=1.5),
    "a boolean for a seed": lambda: _fit(random_state=True),
    # predictions
    "graphs without the node features of the fit": lambda: _fitted().predict(GRAPHS),
    "probabilities of graphs without the node features of the fit": lambda: _fitted().predict_proba(GRAPHS),
    "a graph with more node features than in the fit": lambda: _fitted().predict(
        [with_features(GRAPHS[0]), with_features(GRAPHS[1], 4)]
    ),
    "no graphs to predict": lambda: _fitted().predict([]),
    "a graph without nodes to predict": lambda: _fitted().predict([EMPTY]),
    "one graph for a list to predict": lambda: _fitted().predict(GRAPHS[0]),
    "None in a list of graphs to predict": lambda: _fitted().predict([with_features(GRAPHS[0]), None, EMPTY]),
    "node features that the fit did not have": lambda: _without_features().predict([with_features(GRAPHS[0])]),
    "a graph without the node labels of the fit": lambda: _fit(_labelled()).predict([_labelled()[0], GRAPHS[1]]),
    "more edge features than in the fit": lambda: _fit(_weighted()).predict(
        [Graph(2, [[0, 1], [1, 0]], edge_features=torch.ones(2, 2))]
    ),
}
