"""The classification of graphs, nodes or edges."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets
from torch import Tensor

from bellnet.errors import DataError, OptionError
from bellnet.estimator.base import GraphEstimator
from bellnet.estimator.labels import (
    Array,
    check_classes,
    check_present,
    check_shared,
    flat_weights,
    flatten,
    known_labels,
    one_dimensional,
    only_known,
    split_up,
)
from bellnet.estimator.serialization import classes_from_json, classes_to_json


@dataclass(kw_only=True, eq=False, repr=False)
class GraphClassifier(ClassifierMixin, GraphEstimator):
    """A scikit-learn classifier for lists of graphs, or for the nodes or edges of graphs.

    The network is the paper's, made deeper: equivariant layers from pairs of nodes to pairs of nodes, then for graphs
    the mean and maximum over each orbit and fully connected layers, for nodes and edges an equivariant layer to them.
    Epochs are compared by the error rate on a validation set. Training stops when for `patience` epochs none was as
    good as the best one, and the weights of the last epoch that was as good are used.

    Args:
        target: What has a class: "graph", "node" or "edge".
        order: 2 for a network over pairs of nodes, 3 for one over triples, which distinguishes more graphs and takes
            more memory and time by a factor of the number of nodes; with order=3 the layout is padded.
        channels: The channels of the equivariant layers.
        hidden: The widths of the fully connected layers after them.
        pool: The pooling over each orbit: "max", "mean" or "sum", or several of them. For target="graph".
        jumping_knowledge: Whether the output of every layer is pooled, instead of the last one. For target="graph".
        norm: The normalisation before every activation: over all entries of a batch ("batch"), of each graph ("graph")
            or over the channels of each entry ("channels"); None for none. "auto" is "batch" with order=2 and "graph"
            with order=3.
        residual: Whether layers between equal numbers of channels add their input to their output.
        adjacency: The channels of the edges: "plain" (0 and 1), "normalized" (by degrees) or "both".
        degrees: Whether log(1 + degree) is a channel, standardised.
        degree_bins: With degrees=True, the maximum number of degrees that have a channel each, or 0. If more degrees
            occur, quantiles have channels, and degrees between two quantiles share their channels.
        size_feature: Whether log(1 + n) for n nodes is a channel, standardised. Without it a network can be evaluated
            on graphs of other sizes than those of the fit.
        node_attrs: The name or names of the attributes of networkx graphs and of `Data` that are features of nodes, an
            empty list for none. By default those with an unambiguous meaning are used, and a warning names the others:
            see `bellnet.data.as_graph`.
        edge_attrs: The same for features of edges.
        node_labels: The same for labels of nodes.
        edge_labels: The same for labels of edges.
        layout: "padded" stores all pairs of nodes; "sparse" stores edges and nodes only, and takes means over those;
            "auto" is the cheaper one for the graphs of the fit.
        node_channels: Where labels, features and degrees of nodes are: on the "diagonal" of the pairs of nodes, or
            "separate", in a tensor over nodes that every layer has beside that over pairs.
        n_estimators: The number of networks, whose outputs are averaged. They are trained on the same batches and
            differ in their initial weights. "auto" is 3, or 1 if there are more than 250,000 edges (counted in both
            directions) and nodes, or with layout="padded" pairs of nodes, with order=3 triples.
        dropout: The probability to drop a channel in training.
        label_smoothing: The share of each label that is spread over all classes in training.
        learning_rate: Of Adam.
        weight_decay: Of Adam with decoupled weight decay.
        batch_size: Graphs in a batch.
        max_epochs: The maximum number of epochs. "auto" is 60, or fewer, down to 5, if there are more than 10 million
            edges and nodes (or pairs of nodes): half as many for four times as many entries.
        patience: The number of epochs without an epoch as good as the best one after which training stops; None for a
            third of max_epochs, and at least five.
        validation_fraction: The share of the labels of each class that is in the validation set; with 0 there is none,
            and training takes max_epochs epochs.
        class_weight: None for equal weights, "balanced" for the inverse frequencies of the classes, or a dict with the
            weights of classes.
        random_state: A seed, a random state of NumPy, or None for a random seed. The same seed gives the same model for
            the same number of torch threads, on one kind of device with one version of torch; otherwise the order of
            sums differs, and probabilities differ by about 1e-3.
        device: "auto" is a GPU if there is one; or a device of torch.
        max_gigabytes: The maximum memory of a padded batch in training and in prediction, and of the weights in
            training, in units of 10^9 bytes; more is refused in advance. None is half of the memory of the machine.
        verbose: Whether to show the progress on a terminal, and to print a summary to standard error.

    Attributes:
        classes_: The classes, sorted.
        history_: A dict for each epoch: its number, "loss" and "accuracy" of the training set, measured in training,
            "validation_loss" and "validation_accuracy" of the validation set, None without one.
        best_epoch_: The epoch whose weights are used.
        fit_summary_: The fit in a line; it is not in files.
        layout_: The layout, "padded" or "sparse".
        n_estimators_: The number of networks.
        n_nodes_: The smallest and the largest number of nodes of a training graph.
        encoding_: The encoding of graphs as channels.
        ensemble_: The networks, `ensemble_.members`, and their mean.

    >>> from bellnet.data import generated
    >>> graphs, labels = generated.leaf_pairs(40)
    >>> model = GraphClassifier(max_epochs=2, verbose=False).fit(graphs, labels)
    >>> model.predict(graphs[:3]).shape, model.predict_proba(graphs[:3]).shape
    ((3,), (3, 2))
    """

    label_smoothing: float = 0.0
    class_weight: str | Mapping[Any, float] | None = None
    classes_: Array = field(init=False)

    _score_name = "accuracy"

    def predict(self, X: Any) -> Any:
        """The most probable classes: an array for graphs, a list with an array for each graph for nodes and edges.

        Args:
            X: Graphs, as in `fit`.
        """
        outputs, counts = self._outputs(f"{type(self).__name__}.predict(graphs)", X)
        return split_up(self.classes_[outputs.argmax(1).numpy()], counts, self.target)

    def predict_proba(self, X: Any) -> Any:
        """The probabilities of all classes, in the order of `classes_`, as arrays (labels, classes).

        Args:
            X: Graphs, as in `fit`.
        """
        outputs, counts = self._outputs(f"{type(self).__name__}.predict_proba(graphs)", X)
        return split_up(outputs.softmax(1).numpy(), counts, self.target)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The accuracy: the share of the known labels that are predicted correctly.

        Args:
            X: Graphs, as in `fit`.
            y: Their labels, as in `fit`.
            sample_weight: The weight of each label.
        """
        call = f"{type(self).__name__}.score(graphs, y)"
        outputs, counts = self._outputs(call, X)
        truth = one_dimensional(call, flatten(call, "y", y, counts, self.target))
        known = known_labels(call, truth, self.target)
        check_classes(call, only_known(truth, known))
        weights = None if sample_weight is None else flat_weights(call, sample_weight, counts, self.target)[known]
        found = self.classes_[outputs.argmax(1).numpy()[known]]
        return float(accuracy_score(only_known(truth, known), found, sample_weight=weights))

    def _fit_labels(self, call: str, labels: Array) -> tuple[Tensor, NDArray[np.int64]]:
        labels = one_dimensional(call, labels)
        check_present(call, labels)
        check_classes(call, labels)
        try:
            check_classification_targets(labels)
            self.classes_ = np.unique(labels)
        except (TypeError, ValueError) as reason:
            raise DataError(
                f"{call}: y must hold classes, integers or strings. {reason}\nFor real numbers use GraphRegressor."
            ) from reason
        if len(self.classes_) < 2:
            raise DataError(
                f"{call}: y holds one class only, {self.classes_[:1].tolist()[0]!r}; a classifier needs at least two."
            )
        check_shared(call, labels, self.classes_)
        return self._encode_labels(call, labels)

    def _encode_labels(self, call: str, labels: Array) -> tuple[Tensor, NDArray[np.int64]]:
        names = one_dimensional(call, labels).tolist()
        index = {name: number for number, name in enumerate(self.classes_.tolist())}
        unknown = [name for name in names if name not in index]
        if unknown:
            raise DataError(
                f"{call}: y holds the class {unknown[0]!r}, which is not one of the {len(index)} training classes.\n"
                "Remove graphs of other classes, or train on some of them."
            )
        codes = np.array([index[name] for name in names], dtype=np.int64)
        return torch.from_numpy(codes), codes

    def _n_outputs(self) -> int:
        return len(self.classes_)

    def _loss(self, outputs: Tensor, targets: Tensor) -> Tensor:
        return torch.nn.functional.cross_entropy(
            outputs, targets, reduction="none", label_smoothing=float(self.label_smoothing)
        )

    def _validation_error(self, outputs: Tensor, targets: Tensor, weights: Tensor) -> tuple[float, float]:
        """The misclassification rate; the loss rises when probabilities become more extreme without more errors."""
        weights = weights.double()
        total, squares = float(weights.sum()), float(weights.square().sum())
        if not total:
            return 0.0, 0.0
        share = float(weights[outputs.argmax(1) != targets].sum()) / total
        # The effective number of labels (Kish), and the standard error of Agresti and Coull, who add two misclassified
        # and two correct labels: a few labels can all be correct by chance.
        count = total**2 / squares
        adjusted = (count * share + 2) / (count + 4)
        return share, math.sqrt(adjusted * (1 - adjusted) / (count + 4))

    @staticmethod
    def _score(outputs: Tensor, targets: Tensor) -> float | None:
        return float((outputs.argmax(1) == targets).double().mean())

    def _group_weights(self, call: str, groups: NDArray[np.int64]) -> NDArray[np.float64]:
        given: Any = self.class_weight
        self._check_label_options(call)
        if given is None:
            return np.ones(len(self.classes_))
        if isinstance(given, Mapping):
            weights = np.array([float(given.get(name, 1)) for name in self.classes_.tolist()])
        else:
            weights = compute_class_weight("balanced", classes=np.arange(len(self.classes_)), y=groups)
        return np.asarray(weights, dtype=np.float64)

    def _check_label_options(self, call: str) -> None:
        given: Any = self.class_weight
        if given is None or (isinstance(given, str) and given == "balanced"):
            return
        if not isinstance(given, Mapping):
            raise OptionError(
                f"{call}: class_weight must be None, 'balanced' or a dict with a weight for every class, not {given!r}."
            )
        classes = self.classes_.tolist()
        for name, weight in given.items():
            if name not in classes:
                raise OptionError(f"{call}: class_weight has {name!r}, which is not a class of y.")
            try:
                fine = 0 <= float(weight) < math.inf
            except OverflowError as reason:
                raise OptionError(
                    f"{call}: class_weight must hold finite numbers from 0 up, but that of {name!r} is beyond 64 bits."
                ) from reason
            except (TypeError, ValueError):
                fine = False
            if not fine:
                raise OptionError(f"{call}: class_weight must hold finite numbers from 0 up, not {dict(given)!r}.")

    def _labels_to_json(self) -> dict[str, Any]:
        return classes_to_json(self.classes_)

    def _labels_from_json(self, stored: Any) -> None:
        self.classes_ = classes_from_json(stored)
