"""What classifier and regressor have in common: options, training, outputs."""

import copy
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import partial
from os import PathLike
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from bellnet._utils.memory import freed_memory_kept
from bellnet.data import Encoding, Graph, Loader, problems
from bellnet.errors import DataError
from bellnet.estimator.blueprint import Blueprint
from bellnet.estimator.cost import affordable_epochs, allowed_bytes, cheaper_layout, most_pairs, usual_networks
from bellnet.estimator.ensemble import Ensemble
from bellnet.estimator.hold_out import hold_out, units_of
from bellnet.estimator.inputs import check_fits, fit_encoding, read_graphs, warn_of_sizes
from bellnet.estimator.labels import (
    PLURAL,
    Array,
    check_both_directions,
    count_labels,
    flatten,
    known_labels,
    only_known,
)
from bellnet.estimator.material import Material
from bellnet.estimator.nets import LabelNet
from bellnet.estimator.options import AUTO_NORM, ROLES, check_options
from bellnet.estimator.progress import Bar, told
from bellnet.estimator.scaling import FeatureScaling, channel_scale
from bellnet.estimator.training import ASKED_AT_ONCE, Lesson, Schedule, patience_of, train
from bellnet.estimator.validation import read_validation
from bellnet.estimator.weights import flat_weights, relative_weights, times_class_weights

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Callback = Callable[[Any, dict[str, Any]], None]
"""Called after every epoch of a fit, see `GraphEstimator.fit`."""


class GraphEstimator(ABC, BaseEstimator):
    """An estimator over lists of graphs; `GraphClassifier` and `GraphRegressor` say what is learned."""

    target: str
    order: int
    channels: Sequence[int]
    hidden: Sequence[int]
    pool: str | Sequence[str]
    jumping_knowledge: bool
    norm: str | None
    residual: bool
    adjacency: str
    degrees: bool
    degree_bins: int
    size_feature: bool
    node_attrs: str | Sequence[str] | None
    edge_attrs: str | Sequence[str] | None
    node_labels: str | Sequence[str] | None
    edge_labels: str | Sequence[str] | None
    layout: str
    node_channels: str
    n_estimators: int | str
    dropout: float
    learning_rate: float
    weight_decay: float
    batch_size: int
    max_epochs: int | str
    patience: int | None
    validation_fraction: float
    random_state: Any
    device: str | torch.device
    max_gigabytes: float | None
    verbose: bool

    _measure_name: str
    """What the history calls that which `score` says."""
    layout_: str
    n_estimators_: int
    n_nodes_: tuple[int, int]
    encoding_: Encoding
    scaling_: FeatureScaling
    net_: LabelNet | Ensemble
    history_: list[dict[str, Any]]
    best_epoch_: int
    fit_summary_: str

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        validation_data: tuple[Any, Any] | None = None,
        callback: Callback | None = None,
    ) -> Self:
        """Learn from graphs and their labels.

        Args:
            X: Graphs: a list of `bellnet.data.Graph`, PyTorch Geometric `Data`, networkx graphs, sparse or dense
                matrices; or a PyTorch Geometric dataset.
            y: A label for each graph. For target="node" or "edge" a list with an array for each graph, an entry for
                each node, or for each edge in the order of `bellnet.data.as_graph(graph).edge_index`; None, NaN or
                what is masked in an array of numpy is not known. Classes are all integers, all strings or all booleans;
                more than ten are refused where they are more than half as many as the labels, and so are strings that
                are numbers with fractions: these are for `GraphRegressor`.
            sample_weight: How much each label counts, in the form of y, or for nodes and edges also a number for each
                graph.
            validation_data: Graphs and their labels, in the form of X and y, that say when to stop and which epoch to
                keep; then nothing of X is held out. Of nodes and edges they may be the same graphs with other labels
                known.
            callback: Called after every epoch with an estimator that predicts by the weights of that epoch, until the
                next begins, and with the epoch's record, as in `history_`. It changes nothing of what is learned.
        """
        start, call = time.perf_counter(), f"{type(self).__name__}.fit(graphs, y)"
        check_options(call, self.get_params(deep=False))
        self.__dict__.pop("net_", None)  # a fit that fails half-way shall not leave old weights with new classes
        graphs = read_graphs(call, X, {role: getattr(self, role) for role in ROLES})
        counts = count_labels(graphs, self.target)
        flat = flatten(call, "y", y, counts, self.target)
        if not len(flat):
            raise DataError(f"{call}: there is nothing to learn from; no graph has {PLURAL[self.target]}.")
        known = known_labels(call, flat, self.target)
        targets, groups = self._learn_labels(call, only_known(flat, known))
        if self.target == "edge":
            check_both_directions(call, graphs, flat, known)
        given = flat_weights(call, sample_weight, counts, self.target)[known]
        of_classes = self._class_weights(call, groups)
        weights = times_class_weights(call, given, of_classes)
        encoding = fit_encoding(
            call,
            graphs,
            self.adjacency,
            degrees=self.degrees,
            degree_bins=int(self.degree_bins) if self.degrees else 0,
            size_feature=self.size_feature,
        )
        encoding.check_node_channels(call, self.node_channels)
        self.layout_ = cheaper_layout(graphs, self.order) if self.layout == "auto" else self.layout
        is_given = self.n_estimators != "auto"
        self.n_estimators_ = (
            int(self.n_estimators) if is_given else usual_networks(graphs, self.layout_, int(self.order))
        )
        seed, device = self._seed(), self._device()
        blueprint, allowed = self._blueprint(encoding), allowed_bytes(self.max_gigabytes, device)
        net = blueprint.affordable_net(call, allowed)
        scaling, n_learned = FeatureScaling.fit(graphs), len(graphs)
        held = np.zeros(len(targets), dtype=np.bool_)
        if validation_data is None:
            units = units_of(graphs, self.target, self.validation_fraction)[known]
            held = hold_out(groups, units, self.validation_fraction, np.random.default_rng(seed))
        material = Material(graphs, counts, known, targets, weights, held)
        if validation_data is not None:
            of_groups = np.zeros(groups.max() + 1)
            of_groups[groups] = of_classes
            material = self._beside(material, validation_data, encoding, of_groups * given.mean())
        sizes = [graph.n for graph in material.graphs]
        blueprint.check_training(call, sizes, batch_size=int(self.batch_size), allowed=allowed)
        scaled = scaling.apply(call, material.graphs[:n_learned], encoding)
        scaled += scaling.apply(self._validation_call, material.graphs[n_learned:], encoding)
        relative = relative_weights(call, material.weights, material.held)
        lesson = Lesson(
            graphs=scaled,
            encoding=encoding,
            layout=self.layout_,
            starts=material.starts,
            targets=material.among_all(material.targets).to(device),
            weights=material.among_all(torch.from_numpy(relative)).to(device),
            held=material.among_all(torch.from_numpy(material.held)).to(device),
            known=torch.from_numpy(material.known).to(device),
            loss=self._loss,
            judge=self._judge,
            score_name=self._measure_name,
            score=self._measure,
            node_channels=self.node_channels,
            max_entries=most_pairs(sizes, self.order),
        )
        schedule = self._schedule(material.graphs)
        # Generators of its own: torch's is shared by all threads, and a fit neither reads nor changes it.
        chance = torch.Generator().manual_seed(seed)
        net = net.to_empty(device="cpu")
        net.reset_parameters(chance)
        net.scale_by(channel_scale(scaled[:n_learned], encoding, self.layout_, self.node_channels))
        net.to(device)
        after_epoch = None
        n_nodes = min(graph.n for graph in graphs), max(graph.n for graph in graphs)
        if callback is not None:
            learning = copy.copy(self)  # a fit that fails half-way leaves no estimator that seems fitted
            learning.encoding_, learning.scaling_, learning.net_ = encoding, scaling, net
            learning.n_nodes_ = n_nodes
            after_epoch = partial(callback, learning)
        if device.type != "cpu":
            chance = torch.Generator(device).manual_seed(seed)
        with (
            Bar(f"fit {n_learned} graphs", schedule.max_epochs, show=bool(self.verbose)) as bar,
            net.dropping_by(chance),
            freed_memory_kept(),
        ):
            outcome = train(net, lesson, schedule, seed=seed, bar=bar, after_epoch=after_epoch)
        self.encoding_, self.scaling_, self.net_ = encoding, scaling, net
        self.n_nodes_ = n_nodes
        self.history_, self.best_epoch_ = outcome.history, outcome.best_epoch
        seconds = time.perf_counter() - start
        self.fit_summary_ = told(self, n_graphs=n_learned, max_epochs=schedule.max_epochs, seconds=seconds)
        if self.verbose:
            print(self.fit_summary_, file=sys.stderr)
        return self

    def problems(self, X: Any) -> dict[int, str]:
        """The places of all graphs that cannot be predicted, each with the reason; nothing if all can.

        Args:
            X: Graphs, as in `fit`, of which some may be anything.
        """
        check_is_fitted(self, "net_")
        return problems(X, encoding=self.encoding_)

    def plot_history(self) -> "Figure":
        """The learning curve: loss and score after every epoch of the fit, of what was learned and what was held out.

        It is a figure of matplotlib, which notebooks show by itself; elsewhere, `figure.savefig("curve.png")`. A line
        marks the epoch that was kept. `pip install 'bellnet[draw]'` brings matplotlib.
        """
        from bellnet.estimator.curves import draw_history

        check_is_fitted(self, "net_")
        call = f"{type(self).__name__}.plot_history()"
        return draw_history(call, self.history_, self.best_epoch_, score=self._measure_name)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the fitted estimator to a file that `bellnet.estimator.load` reads: safetensors with JSON, no pickle.

        The file is replaced as a whole or not at all.
        """
        from bellnet.estimator.files import save

        check_is_fitted(self, "net_")
        save(self, path)

    @abstractmethod
    def _learn_labels(self, call: str, flat: Array) -> tuple[Tensor, NDArray[np.int64]]:
        """What the network has to say for every label, and the group of which each label is one."""

    @abstractmethod
    def _as_targets(self, call: str, flat: Array) -> tuple[Tensor, NDArray[np.int64]]:
        """The same for further labels, which must be such as were learned."""

    @abstractmethod
    def _n_outputs(self) -> int:
        """How many numbers the network says for a label."""

    @abstractmethod
    def _loss(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """The loss of every label."""

    @abstractmethod
    def _judge(self, outputs: Tensor, targets: Tensor, weights: Tensor) -> tuple[float, float]:
        """How bad outputs for labels held out are, and the standard error of that: by these, an epoch is chosen."""

    @staticmethod
    @abstractmethod
    def _measure(outputs: Tensor, targets: Tensor) -> float | None:
        """What `score` would say of these, every label counting alike; None where that is not defined."""

    @abstractmethod
    def _labels_to_json(self) -> dict[str, Any]:
        """What was learned of the labels, for a file."""

    @abstractmethod
    def _labels_from_json(self, stored: Any) -> None:
        """Take what `_labels_to_json` gave."""

    def _class_weights(self, call: str, groups: NDArray[np.int64]) -> NDArray[np.float64]:
        """A weight for every label by its group."""
        return np.ones(len(groups))

    def _check_label_options(self, call: str) -> None:
        """Refuse options that do not fit the labels."""

    @property
    def _validation_call(self) -> str:
        return f"{type(self).__name__}.fit(validation_data=(graphs, y))"

    def _beside(
        self, material: Material, validation_data: Any, encoding: Encoding, of_groups: NDArray[np.float64]
    ) -> Material:
        """What is learned from and, held out, what was given to validate; `of_groups` is the weight of each group."""
        call = self._validation_call
        asked = read_validation(call, validation_data, encoding, target=self.target)
        if self.target == "edge":
            check_both_directions(call, asked.graphs, asked.flat, asked.known)
        targets, groups = self._as_targets(call, only_known(asked.flat, asked.known))
        return material.beside(asked, targets, of_groups[groups])

    def _schedule(self, graphs: Sequence[Graph]) -> Schedule:
        """How long and how fast the options say to learn."""
        is_given = self.max_epochs != "auto"
        max_epochs = int(self.max_epochs) if is_given else affordable_epochs(graphs, self.layout_, self.order)
        return Schedule(
            max_epochs=max_epochs,
            patience=patience_of(self.patience, max_epochs),
            batch_size=int(self.batch_size),
            learning_rate=self.learning_rate,
            weight_decay=self.weight_decay,
        )

    def _blueprint(self, encoding: Encoding) -> Blueprint:
        """The network that the options ask for."""
        is_apart = self.node_channels == "separate"
        return Blueprint(
            target=self.target,
            given=(encoding.n_of_pairs, encoding.n_of_nodes) if is_apart else encoding.channels,
            channels=list(map(int, self.channels)),
            order=int(self.order),
            hidden=list(map(int, self.hidden)),
            outputs=self._n_outputs(),
            pool=self.pool,
            jumping_knowledge=bool(self.jumping_knowledge),
            norm=AUTO_NORM[int(self.order)] if self.norm == "auto" else self.norm,
            residual=bool(self.residual),
            dropout=self.dropout,
            layout=self.layout_,
            n_estimators=self.n_estimators_,
        )

    @torch.no_grad()
    def _outputs(self, call: str, X: Any) -> tuple[Tensor, NDArray[np.int64]]:
        """What the network says for every label, and how many labels each graph has.

        In double precision: how graphs are put into batches then shows in the last digits of doubles at most.
        """
        check_is_fitted(self, "net_")
        check_options(call, {"device": self.device})
        graphs = read_graphs(call, X, self.encoding_)
        check_fits(call, graphs, self.encoding_)
        warn_of_sizes(call, graphs, self.encoding_, self.n_nodes_)
        device = self._device()
        sizes, allowed = [graph.n for graph in graphs], allowed_bytes(self.max_gigabytes, device)
        self._blueprint(self.encoding_).check_prediction(call, sizes, batch_size=ASKED_AT_ONCE, allowed=allowed)
        net = copy.deepcopy(self.net_).to(device, torch.float64).eval()
        scaled = self.scaling_.apply(call, graphs, self.encoding_)
        loader = Loader(
            scaled,
            batch_size=ASKED_AT_ONCE,
            encoding=self.encoding_,
            layout=self.layout_,
            node_channels=self.node_channels,
            shuffle=False,
            max_entries=most_pairs(sizes, self.order),
            cache_bytes=0,  # every graph is asked once
            dtype=torch.float64,
            device=device,
        )
        counts = count_labels(graphs, self.target)
        parts: list[Tensor] = [torch.empty(0)] * len(graphs)
        for batch, _, places in loader:
            chosen = places.tolist()
            outputs = net(batch, [scaled[place] for place in chosen]).cpu()
            for place, part in zip(chosen, outputs.split(counts[chosen].tolist()), strict=True):
                parts[place] = part
        return torch.cat(parts), counts

    def _seed(self) -> int:
        state = self.random_state
        if state is None:
            return int(np.random.SeedSequence().generate_state(1)[0])
        if isinstance(state, np.random.RandomState):
            return int(state.randint(2**31))
        if isinstance(state, np.random.Generator):
            return int(state.integers(2**31))
        return int(state)

    def _device(self) -> torch.device:
        if self.device == "auto":
            return torch.device("cuda" if torch.cuda.is_available() else "cpu")
        return torch.device(self.device)

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = super().__getstate__()
        if "net_" in state:  # what was learned on a GPU must be readable where there is none
            state = {**state, "net_": copy.deepcopy(state["net_"]).cpu()}
        return state

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "net_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.target_tags.required = True
        return tags
