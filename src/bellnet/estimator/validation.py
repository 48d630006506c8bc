"""The validation of inputs: graphs and labels of `fit` and `predict`; and the validation set of a fit."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import log1p
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bellnet.data import Encoding, Graph, as_graphs
from bellnet.errors import DataError
from bellnet.estimator.labels import PLURAL, Array, check_both_directions, count_labels, flatten, known_labels


def read_graphs(call: str, given: Any, by: Mapping[str, Any] | Encoding) -> list[Graph]:
    """The graphs, of which there must be at least one; each must have at least one node.

    Args:
        call: How messages name the call.
        given: The graphs.
        by: What determines the attributes that are used: the options of the caller, or the encoding of a fit.
    """
    try:
        graphs = by.read(given) if isinstance(by, Encoding) else as_graphs(given, **by, call=call)
    except DataError as reason:
        raise DataError(f"{call}: {reason}") from reason
    if not graphs:
        raise DataError(f"{call}: there is no graph; the list is empty.")
    empty = [number for number, graph in enumerate(graphs) if graph.n == 0]
    if empty:
        raise DataError(
            f"{call}: graphs[{empty[0]}] has no nodes{_and_more(empty)}.\nLeave out empty graphs, and their labels: "
            "bellnet.data.problems(graphs) has the places of all."
        )
    return graphs


@dataclass(frozen=True)
class LabelledGraphs:
    """Graphs and their labels.

    Attributes:
        graphs: The graphs.
        counts: The number of labels of each graph.
        labels: The labels of all graphs, graph after graph.
        known: Which of them are known.
    """

    graphs: list[Graph]
    counts: NDArray[np.int64]
    labels: Array
    known: NDArray[np.bool_]

    @classmethod
    def read(cls, call: str, graphs: list[Graph], y: Any, target: str) -> "LabelledGraphs":
        """Graphs with the labels that a caller gives."""
        counts = count_labels(graphs, target)
        labels = flatten(call, "y", y, counts, target)
        if not len(labels):
            raise DataError(f"{call}: there is nothing to learn from; no graph has {PLURAL[target]}.")
        return cls(graphs, counts, labels, known_labels(call, labels, target))


@dataclass(frozen=True)
class Samples:
    """Validated graphs, and the known ones of their labels.

    Attributes:
        graphs: The graphs.
        counts: The number of labels of each graph, known or not.
        known: Which of all labels are known.
        targets: What the network is to predict for each known label.
        groups: The group (the class) of each known label.
        weights: The weight of each known label.
        group_weights: The weight of each group.
        mean_weight: The mean sample weight, which labels of validation data have.
    """

    graphs: list[Graph]
    counts: NDArray[np.int64]
    known: NDArray[np.bool_]
    targets: Tensor
    groups: NDArray[np.int64]
    weights: NDArray[np.float64]
    group_weights: NDArray[np.float64]
    mean_weight: float

    def followed_by(self, labelled: LabelledGraphs, targets: Tensor, groups: NDArray[np.int64]) -> "Samples":
        """These and validation data."""
        return Samples(
            graphs=[*self.graphs, *labelled.graphs],
            counts=np.concatenate([self.counts, labelled.counts]),
            known=np.concatenate([self.known, labelled.known]),
            targets=torch.cat([self.targets, targets]),
            groups=np.concatenate([self.groups, groups]),
            weights=np.concatenate([self.weights, self.group_weights[groups] * self.mean_weight]),
            group_weights=self.group_weights,
            mean_weight=self.mean_weight,
        )

    def among_all(self, values: Tensor, device: torch.device) -> Tensor:
        """Values of the known labels among all labels, with zero for unknown ones, on a device."""
        found = values.new_zeros(len(self.known), *values.shape[1:])
        found[torch.from_numpy(self.known)] = values
        return found.to(device)


def read_validation_data(call: str, given: Any, encoding: Encoding, *, target: str) -> LabelledGraphs:
    """The graphs and labels given as `validation_data`, which must fit the encoding of the training set.

    Args:
        call: How messages name the call.
        given: Graphs and their labels, as a pair.
        encoding: That of the training set.
        target: What has labels.
    """
    if not isinstance(given, tuple | list) or len(given) != 2:
        what = f"{len(given)} things" if isinstance(given, tuple | list) else type(given).__name__
        raise DataError(f"{call}: validation_data must be graphs and their labels, (graphs, y), not {what}.")
    graphs = read_graphs(call, given[0], encoding)
    check_fits(call, graphs, encoding)
    labelled = LabelledGraphs.read(call, graphs, given[1], target)
    if target == "edge":
        check_both_directions(call, graphs, labelled.labels, labelled.known)
    return labelled


def fit_encoding(call: str, graphs: Sequence[Graph], **options: Any) -> Encoding:
    """The encoding of everything that the graphs have."""
    try:
        return Encoding.fit(graphs, **options)
    except DataError as reason:
        raise DataError(f"{call}: {reason}") from reason


def check_fits(call: str, graphs: Sequence[Graph], encoding: Encoding) -> None:
    """Raise an error if graphs lack features or labels that the graphs of the fit have, or have others."""
    wrong = {number: found for number, graph in enumerate(graphs) if (found := encoding.mismatch(graph))}
    for name in ("node_features", "edge_features", "node_labels", "edge_labels"):
        numbers = [number for number, found in wrong.items() if found[0] == name]
        if numbers:
            raise DataError(
                f"{call}: graphs[{numbers[0]}] has {wrong[numbers[0]][1]}{_and_more(numbers)}.\n"
                f"Give graphs with the {name.partition('_')[2]} that were learned from."
            )


def warn_of_sizes(call: str, graphs: Sequence[Graph], encoding: Encoding, n_nodes: tuple[int, int]) -> None:
    """Warn if graphs are far larger or smaller than those of the fit and the number of nodes is a channel.

    Args:
        call: How the warning names the call.
        graphs: The graphs to predict.
        encoding: That of the fit.
        n_nodes: The fewest and the most nodes of a graph of the fit.
    """
    if encoding.size_feature is None:
        return
    fewest, most = n_nodes
    margin = encoding.size_feature[1] if fewest < most else 0.0
    least, greatest = log1p(fewest) - margin, log1p(most) + margin
    far = [graph.n for graph in graphs if not least - 1e-9 <= log1p(graph.n) <= greatest + 1e-9]
    if far:
        warnings.warn(
            f"{call}: the graphs that were learned from have {_from_to(fewest, most)} nodes, but {len(far)} of these "
            f"{len(graphs)} have {_from_to(min(far), max(far))}.\n"
            "The network sees the number of nodes, and what it says of numbers that it has not seen may be worth "
            "little. Where labels do not depend on it, fit with size_feature=False.",
            stacklevel=5,
        )


def _from_to(fewest: int, most: int) -> str:
    return f"{fewest} to {most}" if fewest < most else str(most)


def _and_more(numbers: list[int]) -> str:
    return f" ({len(numbers)} graphs are such)" if len(numbers) > 1 else ""


def split_units(graphs: Sequence[Graph], target: str, fraction: float) -> NDArray[np.int64]:
    """For each label the unit that goes to the validation set as a whole.

    If labels belong to nodes or edges, units are whole graphs, since labels within a graph depend on each other. If a
    share of the graphs is less than one graph, they are single nodes, or edges with their opposites if undirected.

    Args:
        graphs: The graphs.
        target: What has labels.
        fraction: The share of the validation set.
    """
    counts = count_labels(graphs, target)
    if target == "graph" or round(fraction * len(graphs)) >= 1:
        return np.repeat(np.arange(len(graphs)), counts)
    if target == "node":
        return np.arange(counts.sum())
    units: list[NDArray[np.int64]] = []
    start = 0
    for graph in graphs:
        ends = graph.edge_index.numpy()
        if not graph.directed:
            ends = np.sort(ends, axis=0)
        units.append(start + ends[0] * graph.n + ends[1])
        start += graph.n * graph.n
    return np.concatenate(units) if units else np.zeros(0, dtype=np.int64)


def validation_split(
    groups: NDArray[np.int64], units: NDArray[np.int64], fraction: float, random: np.random.Generator
) -> NDArray[np.bool_]:
    """Which labels are in the validation set: a stratified share of the units.

    The set has its share of each group (a class), but never all of it. It is empty if the share of all units is less
    than one unit.

    Args:
        groups: The group of each label.
        units: The unit of each label. A unit belongs to the group of its first label.
        fraction: The share.
        random: The random numbers.
    """
    names, first = np.unique(units, return_index=True)
    chosen: list[int] = []
    if round(fraction * len(names)) >= 1:
        group_of = groups[first]
        for group in np.unique(group_of):
            members = random.permutation(names[group_of == group])
            chosen += members[: min(round(fraction * len(members)), len(members) - 1)].tolist()
    return np.isin(units, chosen)
