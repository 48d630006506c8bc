"""Numbers that belong to graphs, nodes or edges."""

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

    The network and its training are those of `GraphClassifier`, with the mean square error as loss. Targets are
    brought to mean zero and variance one before they are learned; a target may be one number or several.

    Args:
        target: What has a number: "graph", "node" or "edge".
        order: As in `GraphClassifier`, like all that follow.
        channels: The channels of the equivariant layers.
        hidden: The widths of the fully connected layers.
        pool: What is taken of the entries of a graph.
        jumping_knowledge: Whether that is taken after every layer.
        norm: What is normalised before every activation.
        residual: Whether layers add their input to their output.
        adjacency: The channels that say where edges are.
        degrees: Whether a channel says the degrees of nodes.
        degree_bins: With degrees=True, how many degrees have a channel of their own besides, or 0: all that occur, or
            if they are more, quantiles, which share what lies between them.
        size_feature: Whether the number of nodes is a channel.
        node_attrs: The name or names of the attributes of networkx graphs and of `Data` that are features of nodes, an
            empty list for none. Without names those whose meaning is plain are used, and what is left out is said in a
            warning: see `bellnet.data.as_graph`.
        edge_attrs: Likewise of the features of edges.
        node_labels: Likewise of the labels of nodes.
        edge_labels: Likewise of the labels of edges.
        layout: "padded" holds all pairs of nodes; "sparse" holds edges and nodes only, and takes means over those;
            "auto" takes what is cheaper for the graphs of the fit.
        node_channels: Where labels, features and degrees of nodes stand: on the "diagonal" of the pairs of nodes, or
            "separate", in a tensor of their own that every layer has beside that of the pairs.
        n_estimators: How many networks learn from the same batches, each with initial weights of its own, and answer
            together by the mean of their outputs. "auto" stands for 3, or for 1 where there are more than 250,000 edges
            (counted in both directions) and nodes, or with layout="padded" pairs of nodes, with order=3 triples.
        dropout: The probability to drop a channel while learning.
        learning_rate: Of Adam.
        weight_decay: Of Adam with decoupled weight decay.
        batch_size: Graphs in a batch.
        max_epochs: The most times that every graph is seen. "auto" stands for 60, or for fewer, down to 5, where there
            are more than 10 million edges and nodes (or pairs of nodes): half as many where there are 40 million.
        patience: For how many epochs none may be as good as the best before training stops; None for a third of
            max_epochs, and at least five.
        validation_fraction: The share of numbers that is held out.
        random_state: A seed, a random state of numpy, or None for another result each time. The same seed gives the
            same model for the same number of torch threads, on one kind of device with one version of torch; otherwise
            sums are taken in another order, and outputs differ slightly, probabilities by about 1e-3.
        device: "auto" takes a GPU if there is one; or a device of torch.
        max_gigabytes: The most memory that a padded batch may take when learning or predicting, and that weights may
            when learning, in units of 10^9 bytes; what would take more is refused before it is begun. None stands for
            half of what there is.
        verbose: Whether to show progress on the terminal, and to say at the end on standard error what happened.

    Attributes:
        history_: A dict for every epoch: its number, "loss" and "r2", the coefficient of determination, of the numbers
            that are learned, as they were while learning, "validation_loss" and "validation_r2" of those held out. None
            where there are none, or where they do not differ.
        best_epoch_: The epoch whose weights were kept.
        fit_summary_: What happened in the fit, in a line; it is not in files.
        layout_: What was taken, "padded" or "sparse".
        n_estimators_: How many networks there are.
        n_nodes_: The fewest and the most nodes of a graph in the training data.
        encoding_: How graphs become channels.
        net_: The network, or the ensemble of several.

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
            sample_weight: How much each label counts.
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
                f"{call}: y must hold numbers of 64 bits, but some are too large for that.\nScale them down."
            ) from reason
        except (TypeError, ValueError) as reason:
            raise DataError(
                f"{call}: y must hold numbers, but it is {labels.dtype}.\nFor classes take GraphClassifier."
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
                f"{call}: y must hold numbers in the form of those that are learned, an array of shape {shape}, "
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
                ("beyond 64 bits", "Divide", "multiply")
                if largest > LARGEST
                else ("below what 64 bits can tell", "Multiply", "divide")
            )
            raise DataError(
                f"{call}: {y} has numbers up to {largest:.3g}, and the variance of such numbers is {beyond}.\n"
                f"{way} y by a constant, and {back} what is predicted by it."
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
