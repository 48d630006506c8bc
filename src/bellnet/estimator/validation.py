"""The inputs of `fit` and `predict`: checks of graphs and labels, the scaling of features, and the validation set."""

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bellnet.data import Encoding, Graph, as_graphs
from bellnet.errors import DataError
from bellnet.estimator.labels import (
    PLURAL,
    Array,
    check_both_directions,
    count_labels,
    flatten,
    known_labels,
    only_known,
)

LARGEST = torch.finfo(torch.float32).max
Owner = Literal["node", "edge"]
OWNERS: tuple[Owner, Owner] = ("node", "edge")


def read_graphs(call: str, given: Any, by: Mapping[str, Any] | Encoding) -> list[Graph]:
    """The graphs, of which there must be at least one; each must have at least one node.

    Args:
        call: How messages name the call.
        given: The graphs.
        by: What determines the attributes that are used: the options of the caller, or the encoding of a fit, whose
            features and labels the graphs must have.
    """
    try:
        graphs = by.read(given) if isinstance(by, Encoding) else as_graphs(given, **by, call=call)
    except DataError as reason:
        raise DataError(f"{call}: {reason}") from reason
    if not graphs:
        raise DataError(f"{call}: expected at least one graph, got an empty list.")
    empty = [number for number, graph in enumerate(graphs) if graph.n == 0]
    if empty:
        raise DataError(
            f"{call}: graphs[{empty[0]}] has no nodes{_and_more(empty)}.\nLeave out empty graphs, and their labels: "
            "bellnet.data.problems(graphs) has the indices of all."
        )
    if isinstance(by, Encoding):
        wrong = {number: found for number, graph in enumerate(graphs) if (found := by.mismatch(graph))}
        for name in ("node_features", "edge_features", "node_labels", "edge_labels"):
            numbers = [number for number, found in wrong.items() if found[0] == name]
            if numbers:
                raise DataError(
                    f"{call}: graphs[{numbers[0]}] has {wrong[numbers[0]][1]}{_and_more(numbers)}.\n"
                    f"Give graphs with the {name.partition('_')[2]} of the training graphs."
                )
    return graphs


def graphs_and_labels(call: str, given: Any) -> tuple[Any, Any]:
    """The pair that is given as `validation_data`."""
    if not isinstance(given, tuple | list) or len(given) != 2:
        got = f"{len(given)} items" if isinstance(given, tuple | list) else type(given).__name__
        raise DataError(f"{call}: validation_data must be graphs and their labels, (graphs, y), not {got}.")
    return given[0], given[1]


def _and_more(numbers: list[int]) -> str:
    return f" (and {len(numbers) - 1} more)" if len(numbers) > 1 else ""


def warn_of_sizes(call: str, graphs: Sequence[Graph], encoding: Encoding, n_nodes: tuple[int, int]) -> None:
    """Warn if graphs are far larger or smaller than those of the fit and the number of nodes is a channel.

    Args:
        call: How the warning names the call.
        graphs: The graphs to predict.
        encoding: That of the fit.
        n_nodes: The smallest and the largest number of nodes of a graph of the fit.
    """
    if encoding.size_feature is None:
        return
    fewest, most = n_nodes
    margin = encoding.size_feature[1] if fewest < most else 0.0
    least, greatest = math.log1p(fewest) - margin - 1e-9, math.log1p(most) + margin + 1e-9
    far = [graph.n for graph in graphs if not least <= math.log1p(graph.n) <= greatest]
    if far:
        warnings.warn(
            f"{call}: the training graphs have {_from_to(fewest, most)} nodes, but {len(far)} of these "
            f"{len(graphs)} graphs have {_from_to(min(far), max(far))}.\n"
            "The number of nodes is an input of the network, which does not extrapolate reliably. If labels do not "
            "depend on it, fit with size_feature=False.",
            stacklevel=5,
        )


def _from_to(fewest: int, most: int) -> str:
    return f"{fewest} to {most}" if fewest < most else str(most)


@dataclass(frozen=True)
class Samples:
    """Validated graphs, and the known ones of their labels.

    Attributes:
        graphs: The graphs.
        counts: The number of labels of each graph, known or not.
        known: Which of all labels are known.
        targets: What the network is to predict for each known label.
        groups: The group (the class) of each known label.
        weights: The sample weight of each known label.
    """

    graphs: list[Graph]
    counts: NDArray[np.int64]
    known: NDArray[np.bool_]
    targets: Tensor
    groups: NDArray[np.int64]
    weights: NDArray[np.float64]

    @classmethod
    def read(
        cls,
        call: str,
        graphs: list[Graph],
        y: Any,
        target: str,
        encode: Callable[[str, Array], tuple[Tensor, NDArray[np.int64]]],
    ) -> "Samples":
        """Graphs and the labels of a caller, which have weight one.

        Args:
            call: How messages name the call.
            graphs: The graphs.
            y: The labels.
            target: What has labels.
            encode: Returns the targets and the groups of known labels.
        """
        counts = count_labels(graphs, target)
        labels = flatten(call, "y", y, counts, target)
        if not len(labels):
            raise DataError(f"{call}: expected at least one label, but no graph has {PLURAL[target]}.")
        known = known_labels(call, labels, target)
        targets, groups = encode(call, only_known(labels, known))
        if target == "edge":
            check_both_directions(call, graphs, labels, known)
        return cls(graphs, counts, known, targets, groups, np.ones(len(groups)))

    def followed_by(self, other: "Samples") -> "Samples":
        """These and others."""
        names = ("counts", "known", "groups", "weights")
        return Samples(
            graphs=[*self.graphs, *other.graphs],
            targets=torch.cat([self.targets, other.targets]),
            **{name: np.concatenate([getattr(self, name), getattr(other, name)]) for name in names},
        )

    def among_all(self, values: Tensor, device: torch.device) -> Tensor:
        """Values of the known labels among all labels, with zero for unknown ones, on a device."""
        found = values.new_zeros(len(self.known), *values.shape[1:])
        found[torch.from_numpy(self.known)] = values
        return found.to(device)


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
    return np.concatenate(units)


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


@dataclass(frozen=True)
class Scaling:
    """What is subtracted from each column, and what the difference is divided by."""

    mean: tuple[float, ...]
    scale: tuple[float, ...]

    @classmethod
    def fit(cls, rows: Tensor, *, keep_binary: bool) -> "Scaling":
        """The scaling to mean zero and variance one; `keep_binary` excludes columns of zeros and ones."""
        rows = rows.double()
        largest = rows.abs().amax(0)
        # A power of two for each column, so that sums and squares do not overflow and nothing is rounded.
        units = [math.ldexp(1.0, max(math.frexp(value)[1] - 1, -1022)) for value in largest.tolist()]
        unit = torch.tensor(units, dtype=torch.float64)
        mean, scale = (rows / unit).mean(0) * unit, (rows / unit).std(0, correction=0) * unit
        # The mean of large equal values is off by its rounding, which must stay small.
        still = scale <= 1e-12 * largest
        scale = torch.where(still, torch.where(largest > 1e6, largest, 1), scale)
        if keep_binary:
            binary = ((rows == 0) | (rows == 1)).all(0)
            mean, scale = mean.masked_fill(binary, 0), scale.masked_fill(binary, 1)
        return cls(tuple(mean.tolist()), tuple(scale.tolist()))

    def apply(self, rows: Tensor) -> Tensor:
        """The scaled rows."""
        mean, scale = (torch.tensor(values, dtype=torch.float64) for values in (self.mean, self.scale))
        return (rows.double() / 2 - mean / 2) / scale * 2  # halves, since the difference could overflow

    def undo(self, rows: Tensor) -> Tensor:
        """The inverse of `apply`."""
        mean, scale = (torch.tensor(values, dtype=torch.float64) for values in (self.mean, self.scale))
        return rows.double() * scale + mean

    @classmethod
    def from_json(cls, stored: Any) -> "Scaling":
        """The inverse of `dataclasses.asdict`; all numbers are finite, since `read_json` refuses others."""
        columns = [stored[name] for name in ("mean", "scale")]
        if not all(isinstance(column, list) for column in columns) or len(columns[0]) != len(columns[1]):
            raise DataError(f"mean and scale must be lists of the same length, not {stored!r}.")
        if not all(type(value) in (float, int) for column in columns for value in column) or any(
            value <= 0 for value in columns[1]
        ):
            raise DataError(f"mean must be numbers and scale positive numbers, not {stored!r}.")
        return cls(*(tuple(map(float, column)) for column in columns))


@dataclass(frozen=True)
class FeatureScaling:
    """The scaling of the features of nodes and edges; None without features."""

    node: Scaling | None
    edge: Scaling | None

    @classmethod
    def fit(cls, graphs: Sequence[Graph]) -> "FeatureScaling":
        """The scaling of the features of all nodes and edges of the graphs."""
        found: dict[str, Scaling | None] = dict.fromkeys(OWNERS)
        for owner in OWNERS:
            if any(getattr(graph, f"{owner}_features") is not None for graph in graphs):
                rows = [rows for graph in graphs if (rows := _features(graph, owner)) is not None and len(rows)]
                found[owner] = Scaling.fit(torch.cat(rows), keep_binary=True) if rows else None
        return cls(**found)

    def apply(self, call: str, graphs: Sequence[Graph], encoding: Encoding) -> list[Graph]:
        """The graphs with scaled features, which must fit float32.

        Args:
            call: How messages name the call.
            graphs: Any graphs with the features of the fit.
            encoding: That of the fit, which names the features.
        """
        return [self._apply(call, graph, number, encoding) for number, graph in enumerate(graphs)]

    def _apply(self, call: str, graph: Graph, number: int, encoding: Encoding) -> Graph:
        changes: dict[str, Any] = {}
        for owner in OWNERS:
            scaling, rows = getattr(self, owner), _features(graph, owner)
            if scaling is None or rows is None:
                continue
            scaled = changes[f"{owner}_features"] = scaling.apply(rows)
            fits = scaled.abs() <= LARGEST
            if not bool(fits.all()):
                row, column = fits.logical_not().nonzero()[0].tolist()
                raise DataError(
                    f"{call}: {encoding.feature_name(owner, column)} of {owner} {row} of graphs[{number}] is "
                    f"{rows[row, column]:g}, which is {scaled[row, column]:g} after scaling and does not fit float32.\n"
                    "The scaling is that of the training graphs: correct the value, or train on graphs with such."
                )
        return replace(graph, **changes) if changes else graph

    def check_fits(self, encoding: Encoding) -> None:
        """Raise an error if the scaling is not one of the encoded features."""
        for owner in OWNERS:
            scaling, encoded = getattr(self, owner), getattr(encoding, f"{owner}_features")
            if scaling is not None and len(scaling.mean) != encoded:
                raise DataError(f"it scales {len(scaling.mean)} {owner} features, but encodes {encoded}.")

    @classmethod
    def from_json(cls, stored: Any) -> "FeatureScaling":
        """The inverse of `dataclasses.asdict`."""
        return cls(*(None if stored[name] is None else Scaling.from_json(stored[name]) for name in OWNERS))


def _features(graph: Graph, owner: Owner) -> Tensor | None:
    """The features of nodes, or of edges, where the default is a column of ones as in an `Encoding`."""
    if owner == "node":
        return graph.node_features
    if not graph.n_edges or graph.edge_features is not None:
        return graph.edge_features if graph.n_edges else None
    return torch.ones(graph.n_edges, 1)


def channel_scale(graphs: Sequence[Graph], encoding: Encoding, layout: str, node_channels: str = "diagonal") -> Tensor:
    """The factor of each channel of an encoding.

    Layers take means over nodes, in which few edges between many nodes are small. The channels of pairs of nodes,
    adjacency and edge features, get a mean square of one over all pairs of the layout. Those of nodes have a factor of
    one: labels are zeros and ones, bins of degrees are shares, and features and degrees have variance one.
    """
    squares, n_pairs = torch.zeros(encoding.channels, dtype=torch.float64), 0
    for graph in graphs:
        encoded = encoding.encode([graph], layout="sparse", node_channels=node_channels)  # other pairs are zero
        pairs = encoded[0] if isinstance(encoded, tuple) else encoded
        squares[: encoding.n_pair_channels] += pairs.values[:, : encoding.n_pair_channels].double().square().sum(0)
        n_pairs += graph.n**2 if layout == "padded" else len(pairs.values)
    return torch.where(squares > 0, n_pairs / squares, 1).sqrt().float()
