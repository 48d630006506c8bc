"""Small graphs and small networks that are trained quickly."""

import torch

from bellnet.data import Graph, generated, undirected
from bellnet.estimator import GraphClassifier, GraphRegressor

PLAIN = {
    **{"pool": "max", "norm": None, "residual": False, "size_feature": False, "degree_bins": 0},
    **{"layout": "padded", "n_estimators": 1, "dropout": 0.0},
}
"""The paper's network, which learns from few graphs in few steps."""
TINY = {
    **PLAIN,
    "channels": (4,),
    "hidden": (8,),
    "max_epochs": 2,
    "batch_size": 20,
    "learning_rate": 0.01,
    "verbose": False,
}
LEARNS = {"channels": (8, 8), "batch_size": 5, "max_epochs": 25}
"""Enough to learn something simple."""


def classifier(**options):
    return GraphClassifier(**{**TINY, **options})


def regressor(**options):
    return GraphRegressor(**{**TINY, **options})


def leaves(count=24):
    """Graphs of different sizes with two classes, the labels as an array."""
    graphs, labels = generated.leaf_pairs(count)
    return graphs, labels.numpy()


def stars_and_paths(count=30):
    """Graphs of different sizes whose classes are easy: the maximal degree distinguishes them."""
    graphs, labels = [], []
    for number in range(count):
        n = 5 + number % 4
        star = number % 2
        edges = [(0, node) for node in range(1, n)] if star else [(node, node + 1) for node in range(n - 1)]
        graphs.append(undirected(n, edges))
        labels.append(star)
    return graphs, torch.tensor(labels).numpy()


def with_features(graph, width=3, value=None):
    """The graph with features on its nodes."""
    features = torch.randn(graph.n, width) if value is None else torch.full((graph.n, width), float(value))
    return Graph(graph.n, graph.edge_index, node_features=features, directed=graph.directed)
