"""What classifier and regressor have in common: their options, `fit` in four steps, and the outputs of the network."""

import copy
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from os import PathLike
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from bellnet._utils.memory import freed_memory_kept
from bellnet._utils.optional import require
from bellnet.data import Encoding, Graph, Loader, problems
from bellnet.errors import DataError
from bellnet.estimator.labels import Array, count_labels, flat_weights, relative_weights
from bellnet.estimator.model import Ensemble, NetConfig
from bellnet.estimator.options import (
    ATTRIBUTES,
    AUTO_NORM,
    PREDICTION_BATCH,
    allowed_bytes,
    auto_layout,
    auto_max_epochs,
    auto_n_estimators,
    check_options,
    check_prediction,
    check_training,
    check_weights,
    device_of,
    max_pairs,
    seed_of,
)
from bellnet.estimator.training import Objective, ProgressBar, Schedule, TrainingData, train
from bellnet.estimator.validation import (
    FeatureScaling,
    Samples,
    channel_scale,
    graphs_and_labels,
    read_graphs,
    split_units,
    validation_split,
    warn_of_sizes,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Callback = Callable[[Any, dict[str, Any]], None]
"""Called after every epoch of a fit, see `GraphEstimator.fit`."""


@dataclass(kw_only=True, eq=False, repr=False)
class GraphEstimator(ABC, BaseEstimator):
    """An estimator over lists of graphs; its subclasses determine what labels are."""

    target: str = "graph"
    order: int = 2
    channels: Sequence[int] = (48, 48, 48, 48)
    hidden: Sequence[int] = (64,)
    pool: str | Sequence[str] = ("mean", "max")
    jumping_knowledge: bool = False
    norm: str | None = "auto"
    residual: bool = True
    adjacency: str = "both"
    degrees: bool = True
    degree_bins: int = 16
    size_feature: bool = True
    node_attrs: str | Sequence[str] | None = None
    edge_attrs: str | Sequence[str] | None = None
    node_labels: str | Sequence[str] | None = None
    edge_labels: str | Sequence[str] | None = None
    layout: str = "auto"
    node_channels: str = "diagonal"
    n_estimators: int | str = "auto"
    dropout: float = 0.1
    learning_rate: float = 0.004
    weight_decay: float = 0.0
    batch_size: int = 32
    max_epochs: int | str = "auto"
    patience: int | None = None
    validation_fraction: float = 0.1
    random_state: int | np.random.RandomState | np.random.Generator | None = 0
    device: str | torch.device = "auto"
    max_gigabytes: float | None = None
    verbose: bool = True
    encoding_: Encoding = field(init=False)
    scaling_: FeatureScaling = field(init=False)
    layout_: str = field(init=False)
    n_nodes_: tuple[int, int] = field(init=False)
    n_estimators_: int = field(init=False)
    ensemble_: Ensemble = field(init=False)
    history_: list[dict[str, Any]] = field(init=False)
    best_epoch_: int = field(init=False)
    fit_summary_: str = field(init=False)

    _score_name: ClassVar[str]
    """The name of what `score` returns in the history."""

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        validation_data: tuple[Any, Any] | None = None,
        callback: Callback | None = None,
    ) -> Self:
        """Train on graphs and their labels.

        Args:
            X: Graphs: a list of `bellnet.data.Graph`, PyTorch Geometric `Data`, networkx graphs, sparse or dense
                matrices; or a PyTorch Geometric dataset.
            y: A label for each graph. For target="node" or "edge" a list with an array for each graph, an entry for
                each node, or for each edge in the order of `bellnet.data.as_graph(graph).edge_index`; None, NaN or
                a masked entry of a NumPy array stands for an unknown label. Classes are all integers, all strings or
                all booleans. More than ten classes are refused if they are more than half as many as the labels, and
                so are strings of numbers that are not integers: these are for `GraphRegressor`.
            sample_weight: The weight of each label, in the form of y, or for nodes and edges also a number for each
                graph.
            validation_data: The validation set: graphs and their labels, in the form of X and y. Then all of X is
                trained on. For nodes and edges it may have the same graphs with other known labels.
            callback: Called after every epoch with an estimator that predicts with the weights of that epoch, until the
                next epoch begins, and with the record of the epoch, as in `history_`. It does not change the result.
        """
        start, call = time.perf_counter(), f"{type(self).__name__}.fit(graphs, y)"
        check_options(call, self.get_params(deep=False))
        self.__dict__.pop("ensemble_", None)  # a fit that fails must not combine old weights with new classes
        samples = self._validate(call, X, y, sample_weight)
        self._fit_encoding(call, samples.graphs)
        seed = seed_of(self.random_state)
        data = self._training_data(call, samples, validation_data, seed)
        schedule, n_graphs = self._schedule(data.graphs), len(samples.graphs)
        self._train(data, schedule, callback, n_graphs=n_graphs, seed=seed)
        self.fit_summary_ = self._summary(n_graphs, schedule.max_epochs, time.perf_counter() - start)
        if self.verbose:
            print(self.fit_summary_, file=sys.stderr)
        return self

    def _validate(self, call: str, X: Any, y: Any, sample_weight: Any) -> Samples:
        """Read and check graphs, labels and weights; classes, or the scaling of targets, become attributes."""
        graphs = read_graphs(call, X, {name: getattr(self, name) for name in ATTRIBUTES})
        samples = Samples.read(call, graphs, y, self.target, self._fit_labels)
        weights = flat_weights(call, sample_weight, samples.counts, self.target)[samples.known]
        return replace(samples, weights=weights)

    def _fit_encoding(self, call: str, graphs: Sequence[Graph]) -> None:
        """Set what depends on the graphs alone: their encoding and scaling, and the architecture."""
        try:
            self.encoding_ = Encoding.fit(
                graphs,
                adjacency=self.adjacency,
                degrees=self.degrees,
                degree_bins=int(self.degree_bins) if self.degrees else 0,
                size_feature=self.size_feature,
            )
        except DataError as reason:
            raise DataError(f"{call}: {reason}") from reason
        self.encoding_.check_node_channels(call, self.node_channels)
        self.scaling_ = FeatureScaling.fit(graphs)
        self.n_nodes_ = min(graph.n for graph in graphs), max(graph.n for graph in graphs)
        order = int(self.order)
        self.layout_ = auto_layout(graphs, order) if self.layout == "auto" else self.layout
        is_auto = self.n_estimators == "auto"
        self.n_estimators_ = auto_n_estimators(graphs, self.layout_, order) if is_auto else int(self.n_estimators)

    def _training_data(self, call: str, samples: Samples, validation_data: Any, seed: int) -> TrainingData:
        """Split off or read the validation set, scale features and weights, and check the memory."""
        config, device = self._net_config(), device_of(self.device)
        allowed = allowed_bytes(self.max_gigabytes, device)
        check_weights(call, config, allowed)
        group_weights = self._group_weights(call, samples.groups)
        n_graphs, validation_call = len(samples.graphs), f"{type(self).__name__}.fit(validation_data=(graphs, y))"
        if validation_data is None:
            units = split_units(samples.graphs, self.target, self.validation_fraction)[samples.known]
            random = np.random.default_rng(seed)
            in_validation = validation_split(samples.groups, units, self.validation_fraction, random)
        else:
            graphs, labels = graphs_and_labels(validation_call, validation_data)
            graphs = read_graphs(validation_call, graphs, self.encoding_)
            further = Samples.read(validation_call, graphs, labels, self.target, self._encode_labels)
            further = replace(further, weights=np.full(len(further.groups), samples.weights.mean()))
            in_validation = np.repeat([False, True], [len(samples.groups), len(further.groups)])
            samples = samples.followed_by(further)
        sizes = [graph.n for graph in samples.graphs]
        check_training(call, config, sizes, batch_size=int(self.batch_size), allowed=allowed)
        scaled = self.scaling_.apply(call, samples.graphs[:n_graphs], self.encoding_)
        scaled += self.scaling_.apply(validation_call, samples.graphs[n_graphs:], self.encoding_)
        weights = relative_weights(call, samples.weights, group_weights[samples.groups], ~in_validation)
        return TrainingData(
            graphs=scaled,
            starts=np.concatenate([[0], np.cumsum(samples.counts)]),
            targets=samples.among_all(samples.targets, device),
            weights=samples.among_all(torch.from_numpy(weights), device),
            known=torch.from_numpy(samples.known).to(device),
            in_validation=samples.among_all(torch.from_numpy(in_validation), device),
            loader=self._loader(sizes, device),
        )

    def _schedule(self, graphs: Sequence[Graph]) -> Schedule:
        is_auto = self.max_epochs == "auto"
        max_epochs = auto_max_epochs(graphs, self.layout_, self.order) if is_auto else int(self.max_epochs)
        return Schedule(
            max_epochs=max_epochs,
            patience=max(5, max_epochs // 3) if self.patience is None else self.patience,
            batch_size=int(self.batch_size),
            learning_rate=self.learning_rate,
            weight_decay=self.weight_decay,
        )

    def _train(
        self, data: TrainingData, schedule: Schedule, callback: Callback | None, *, n_graphs: int, seed: int
    ) -> None:
        """Train a new ensemble, whose input is scaled by the first `n_graphs` graphs."""
        # Generators of its own: torch's is shared by all threads, and a fit neither reads nor changes it.
        random, device = torch.Generator().manual_seed(seed), data.targets.device
        ensemble = Ensemble.on_meta(self._net_config()).to_empty(device="cpu")
        scale = channel_scale(data.graphs[:n_graphs], self.encoding_, self.layout_, self.node_channels)
        ensemble.reset_parameters(random, scale)
        ensemble.to(device)
        after_epoch = None
        if callback is not None:
            in_training = copy.copy(self)  # so that a fit that fails leaves no estimator that seems fitted
            in_training.ensemble_ = ensemble
            after_epoch = partial(callback, in_training)
        if device.type != "cpu":
            random = torch.Generator(device).manual_seed(seed)
        objective = Objective(self._loss, self._validation_error, self._score, self._score_name)
        with (
            ProgressBar(f"fit {n_graphs} graphs", schedule.max_epochs, show=bool(self.verbose)) as bar,
            ensemble.dropout_from(random),
            freed_memory_kept(),
        ):
            outcome = train(ensemble, data, objective, schedule, seed=seed, bar=bar, after_epoch=after_epoch)
        self.ensemble_, self.history_, self.best_epoch_ = ensemble, outcome.history, outcome.best_epoch

    def _loader(self, sizes: Sequence[int], device: torch.device) -> Callable[..., Loader]:
        """A `Loader` of graphs that are encoded as in the fit, in batches that fit graphs of some sizes."""
        return partial(
            Loader,
            encoding=self.encoding_,
            layout=self.layout_,
            node_channels=self.node_channels,
            max_entries=max_pairs(sizes, self.order),
            device=device,
        )

    def _net_config(self) -> NetConfig:
        """The architecture that the options and the encoding determine."""
        encoding, order = self.encoding_, int(self.order)
        is_separate = self.node_channels == "separate"
        return NetConfig(
            target=self.target,
            in_channels=(encoding.n_pair_channels, encoding.n_node_channels) if is_separate else encoding.channels,
            channels=list(map(int, self.channels)),
            order=order,
            hidden=list(map(int, self.hidden)),
            out_channels=self._n_outputs(),
            pool=self.pool,
            jumping_knowledge=bool(self.jumping_knowledge),
            norm=AUTO_NORM[order] if self.norm == "auto" else self.norm,
            residual=self.residual,
            dropout=self.dropout,
            layout=self.layout_,
            n_estimators=self.n_estimators_,
        )

    def _summary(self, n_graphs: int, max_epochs: int, seconds: float) -> str:
        """The fit in a line: its time, and the losses and the scores of the best epoch."""
        nets = f"{self.n_estimators_} networks" if self.n_estimators_ > 1 else "a network"
        classes = getattr(self, "classes_", None)
        what = "numbers" if classes is None else f"{len(classes)} classes"
        of = "" if self.target == "graph" else f" of {self.target}s"
        best = self.history_[self.best_epoch_]
        figures = [
            f"{name.replace('_', ' ')} {best[name]:.3f}" for name in best if name != "epoch" and best[name] is not None
        ]
        return (
            f"trained {nets} on {n_graphs} graph{'s' if n_graphs > 1 else ''} with {what}{of} in {seconds:.0f} s: "
            f"best epoch {self.best_epoch_} of {len(self.history_)} (at most {max_epochs}), {', '.join(figures)}"
        )

    def problems(self, X: Any) -> dict[int, str]:
        """The indices of all graphs that cannot be predicted, each with the reason; empty if all can.

        Args:
            X: Graphs, as in `fit`, or anything else.
        """
        check_is_fitted(self)
        return problems(X, encoding=self.encoding_)

    def plot_history(self) -> "Figure":
        """The learning curve: loss and score of the training set and of the validation set after every epoch.

        It is a matplotlib figure, which notebooks show; elsewhere, use `figure.savefig("curve.png")`. A line marks the
        best epoch. `pip install 'bellnet[draw]'` installs matplotlib.
        """
        check_is_fitted(self)
        require("matplotlib", extra="draw", call=f"{type(self).__name__}.plot_history()")
        from bellnet.draw import Panels

        score = {"r2": "coefficient of determination"}.get(self._score_name, self._score_name)
        has_score = any(record[self._score_name] is not None for record in self.history_)
        titles = {"loss": "loss", **({self._score_name: score} if has_score else {})}
        panels = Panels(list(titles.values()), across="epoch", up="", scales=("linear", "linear"))
        for name, title in titles.items():
            curves = (
                ("training", name, {"linewidth": 1.1, "alpha": 0.45}),
                ("validation set", f"validation_{name}", {"linewidth": 1.5, "marker": "o", "markersize": 3.5}),
            )
            for label, key, look in curves:
                points = [(record["epoch"], record[key]) for record in self.history_ if record[key] is not None]
                if points:
                    epochs, values = zip(*points, strict=True)
                    panels.curve(title, (epochs, values), label, **look)
            panels.vertical(title, self.best_epoch_, "best epoch")
        return panels.finish()

    def save(self, path: str | PathLike[str]) -> None:
        """Write the fitted estimator to a file that `bellnet.estimator.load` reads: safetensors with JSON, no pickle.

        The file is replaced atomically.
        """
        from bellnet.estimator.serialization import save

        check_is_fitted(self)
        save(self, path)

    @abstractmethod
    def _fit_labels(self, call: str, labels: Array) -> tuple[Tensor, NDArray[np.int64]]:
        """The target and the group of each label of the training set; what they depend on becomes attributes."""

    @abstractmethod
    def _encode_labels(self, call: str, labels: Array) -> tuple[Tensor, NDArray[np.int64]]:
        """The same for further labels."""

    @abstractmethod
    def _n_outputs(self) -> int:
        """The number of outputs for a label."""

    @abstractmethod
    def _loss(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """The loss of each label."""

    @abstractmethod
    def _validation_error(self, outputs: Tensor, targets: Tensor, weights: Tensor) -> tuple[float, float]:
        """The error on the validation set, by which the epoch is selected, and its standard error."""

    @staticmethod
    @abstractmethod
    def _score(outputs: Tensor, targets: Tensor) -> float | None:
        """What `score` returns for these without weights; None where it is not defined."""

    @abstractmethod
    def _labels_to_json(self) -> dict[str, Any]:
        """What `_fit_labels` has set, for a file."""

    @abstractmethod
    def _labels_from_json(self, stored: Any) -> None:
        """The inverse of `_labels_to_json`."""

    def _group_weights(self, call: str, groups: NDArray[np.int64]) -> NDArray[np.float64]:
        """The weight of each group."""
        return np.ones(groups.max() + 1)

    def _check_label_options(self, call: str) -> None:
        """Raise an error if options do not fit the labels."""

    def _outputs(self, call: str, X: Any) -> tuple[Tensor, NDArray[np.int64]]:
        """The outputs for each label, and the number of labels of each graph.

        They are computed in float64, so that the composition of batches changes the last digits at most.
        """
        check_is_fitted(self)
        check_options(call, {"device": self.device})
        graphs = read_graphs(call, X, self.encoding_)
        warn_of_sizes(call, graphs, self.encoding_, self.n_nodes_)
        sizes, device = [graph.n for graph in graphs], device_of(self.device)
        check_prediction(call, self._net_config(), sizes, allowed=allowed_bytes(self.max_gigabytes, device))
        scaled, counts = self.scaling_.apply(call, graphs, self.encoding_), count_labels(graphs, self.target)
        loader = self._loader(sizes, device)(
            scaled,
            batch_size=PREDICTION_BATCH,
            shuffle=False,
            cache_bytes=0,  # there is one pass
            dtype=torch.float64,
        )
        ensemble = copy.deepcopy(self.ensemble_).to(device, torch.float64).eval()
        return ensemble.predict_logits(loader, scaled, counts), counts

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = super().__getstate__()
        if "ensemble_" in state:  # an estimator fitted on a GPU must be readable without one
            state = {**state, "ensemble_": copy.deepcopy(state["ensemble_"]).cpu()}
        return state

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "ensemble_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.target_tags.required = True
        return tags
