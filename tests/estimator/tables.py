"""An adapter for scikit-learn's estimator checks, which use tables: every row becomes a graph of one node."""

import numpy as np
import torch
from sklearn.utils.validation import check_is_fitted, validate_data

from bellnet.data import Graph
from bellnet.estimator import GraphClassifier, GraphRegressor

SMALL = {
    "channels": (8,),
    "hidden": (16,),
    "learning_rate": 0.05,
    "batch_size": 50,
    "max_epochs": 12,
    "verbose": False,
}


def graphs_of(table):
    no_edges = torch.empty(2, 0, dtype=torch.int64)
    rows = torch.from_numpy(np.array(table, dtype=np.float64))
    return [Graph(1, no_edges, node_features=row.unsqueeze(0)) for row in rows]


class _FromTables:
    def fit(self, X, y, sample_weight=None):
        X = validate_data(self, X, dtype="numeric")
        return super().fit(graphs_of(X), y, sample_weight)

    def _outputs(self, call, X):
        check_is_fitted(self)
        return super()._outputs(call, graphs_of(validate_data(self, X, dtype="numeric", reset=False)))

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = True
        return tags


class TableClassifier(_FromTables, GraphClassifier):
    pass


class TableRegressor(_FromTables, GraphRegressor):
    pass
