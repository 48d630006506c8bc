"""The regression of numbers of graphs, nodes or edges."""

import math
from dataclasses import asdict
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import RegressorMixin
from sklearn.metrics import r2_score
from torch import Tensor

from bellnet.errors import DataError
from bellnet.estimator.base import GraphEstimator
from bellnet.estimator.labels import Array, check_present, flat_weights, flatten, known_labels, only_known, split_up
from bellnet.estimator.validation import Scaling

LARGEST, SMALLEST = 1e150, 1e-150
"""Bounds of numbers whose squares, and sums of squares, can be computed."""


class GraphRegressor(RegressorMixin, GraphEstimator):
    """A scikit-learn regressor for lists of graphs, or for the nodes or edges of graphs.

    The network and its training are those of `GraphClassifier`, with the mean square error as loss and as error on the
    validation set. Targets are standardised; a label may be one number or several.

    Args:
        **options: Those of `GraphClassifier`, without `label_smoothing` and `class_weight`.

    Attributes:
        history_: A dict for each epoch: its number, "loss" and "r2", the coefficient of determination, of the training
            set, measured in training, "validation_loss" and "validation_r2" of the validation set. None without a
            validation set, or if all its targets are equal.
        target_scaling_: The mean and the scale of the targets.
        best_epoch_, fit_summary_, layout_, n_estimators_, n_nodes_, encoding_, ensemble_: As in `GraphClassifier`.

    >>> from bellnet.data import generated
    >>> graphs, _ = generated.leaf_pairs(40)
    >>> model = GraphRegressor(max_epochs=2, verbose=False).fit(graphs, [float(graph.n) for graph in graphs])
    >>> model.predict(graphs[:3]).shape
    (3,)
    """

    _score_name = "r2"
    target_scaling_: Scaling
    several_outputs_: bool

    def predict(self, X: Any) -> Any:
        """The numbers: an array for graphs, a list with an array for each graph for nodes and edges.

        Args:
            X: Graphs, as in `fit`.
        """
        found, counts = self._numbers(f"{type(self).__name__}.predict(graphs)", X)
        return split_up(found, counts, self.target)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The coefficient of determination: 1 for a perfect prediction, 0 for the mean.

        Args:
            X: Graphs, as in `fit`.
            y: Their numbers, as in `fit`.
            sample_weight: The weight of each label.
        """
        call = f"{type(self).__name__}.score(graphs, y)"
        found, counts = self._numbers(call, X)
        truth = flatten(call, "y", y, counts, self.target)
        known = known_labels(call, truth, self.target)
        weights = None if sample_weight is None else flat_weights(call, sample_weight, counts, self.target)[known]
        return float(r2_score(only_known(truth, known), found[known], sample_weight=weights))

    def _numbers(self, call: str, X: Any) -> tuple[Array, NDArray[np.int64]]:
        outputs, counts = self._outputs(call, X)
        found = self.target_scaling_.undo(outputs).numpy()
        return found if self.several_outputs_ else found[:, 0], counts

    def _fit_labels(self, call: str, labels: Array) -> tuple[Tensor, NDArray[np.int64]]:
        check_present(call, labels)
        try:
            numbers = labels.astype(np.float64)
        except OverflowError as reason:
            raise DataError(
                f"{call}: y must hold numbers that fit float64, but some are too large.\nScale them down."
            ) from reason
        except (TypeError, ValueError) as reason:
            raise DataError(
                f"{call}: y must hold numbers, but it is {labels.dtype}.\nFor classes use GraphClassifier."
            ) from reason
        if numbers.ndim > 2:
            raise DataError(f"{call}: y must have one axis, or two for several numbers each, not {numbers.ndim}.")
        self.several_outputs_ = numbers.ndim == 2
        rows = torch.from_numpy(numbers.reshape(len(numbers), -1))
        self._refuse_extremes(call, rows)
        self.target_scaling_ = Scaling.fit(rows, keep_binary=False)
        return self._encode_labels(call, numbers)

    def _encode_labels(self, call: str, labels: Array) -> tuple[Tensor, NDArray[np.int64]]:
        check_present(call, labels)
        shape = (len(labels), self._n_outputs()) if self.several_outputs_ else (len(labels),)
        if labels.shape != shape or labels.dtype.kind not in "biuf":
            raise DataError(
                f"{call}: y must hold numbers like the training set, an array of shape {shape}, "
                f"but it is {labels.dtype} of shape {labels.shape}."
            )
        rows = torch.from_numpy(labels.astype(np.float64).reshape(len(labels), -1))
        return self.target_scaling_.apply(rows).float(), np.zeros(len(rows), dtype=np.int64)

    def _refuse_extremes(self, call: str, rows: Tensor) -> None:
        """Raise an error if squares of numbers overflow or underflow."""
        for column, values in enumerate(rows.T):
            largest = float(values.abs().max())
            if largest <= LARGEST and (largest >= SMALLEST or bool((values == values[0]).all())):
                continue
            y = f"y[:, {column}]" if self.several_outputs_ else "y"
            beyond, way, back = (
                ("overflows", "Divide", "multiply") if largest > LARGEST else ("underflows", "Multiply", "divide")
            )
            raise DataError(
                f"{call}: {y} has numbers up to {largest:.3g}, whose variance {beyond} float64.\n"
                f"{way} y by a constant, and {back} the predictions by it."
            )

    def _n_outputs(self) -> int:
        return len(self.target_scaling_.mean)

    def _loss(self, outputs: Tensor, targets: Tensor) -> Tensor:
        return (outputs - targets).square().mean(1)

    def _validation_error(self, outputs: Tensor, targets: Tensor, weights: Tensor) -> tuple[float, float]:
        losses = (self._loss(outputs, targets) * weights).double()
        return float(losses.mean()), float(losses.std(correction=0)) / math.sqrt(len(losses))

    @staticmethod
    def _score(outputs: Tensor, targets: Tensor) -> float | None:
        outputs, targets = outputs.double(), targets.double()
        varied = (targets - targets.mean(0)).square().sum(0)
        if not bool((varied > 0).all()):
            return None
        return float((1 - (outputs - targets).square().sum(0) / varied).mean())

    def _labels_to_json(self) -> dict[str, Any]:
        return {"scaling": asdict(self.target_scaling_), "several": self.several_outputs_}

    def _labels_from_json(self, stored: Any) -> None:
        self.target_scaling_ = Scaling.from_json(stored["scaling"])
        if type(stored["several"]) is not bool:
            raise DataError(f"several must be true or false, not {stored['several']!r}.")
        self.several_outputs_ = stored["several"]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags
