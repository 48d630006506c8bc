"""The scaling of features, of numeric targets and of channels, fitted to the training set."""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

import torch
from torch import Tensor

from bellnet.data import Encoding, Graph
from bellnet.errors import DataError

LARGEST = torch.finfo(torch.float32).max


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

    def to_json(self) -> dict[str, list[float]]:
        """The numbers, for a file."""
        return {name: list(values) for name, values in asdict(self).items()}

    @classmethod
    def from_json(cls, stored: Any) -> "Scaling":
        """The inverse of `to_json`; all numbers are finite, since `read_json` refuses others."""
        if not isinstance(stored, dict) or stored.keys() != {"mean", "scale"}:
            raise DataError(f"a scaling must have mean and scale, but this is {stored!r}.")
        for values in stored.values():
            if not isinstance(values, list) or not all(type(value) in (float, int) for value in values):
                raise DataError(f"a scaling must be lists of numbers, but this is {stored!r}.")
        mean, scale = (tuple(map(float, stored[name])) for name in ("mean", "scale"))
        if len(mean) != len(scale):
            raise DataError(
                f"a scaling must have a scale for each mean, but it has {len(mean)} means and {len(scale)} scales."
            )
        if any(value <= 0 for value in scale):
            raise DataError(f"the scales of a scaling must be positive, but this is {stored!r}.")
        return cls(mean, scale)


@dataclass(frozen=True)
class FeatureScaling:
    """The scaling of the features of nodes and edges; None without features."""

    node: Scaling | None
    edge: Scaling | None

    @classmethod
    def fit(cls, graphs: Sequence[Graph]) -> "FeatureScaling":
        """The scaling of the features of all nodes and edges of the graphs."""
        nodes = [graph.node_features for graph in graphs if graph.node_features is not None and graph.n]
        edges = []
        if any(graph.edge_features is not None for graph in graphs):
            edges = [_edge_features(graph) for graph in graphs if graph.n_edges]
        return cls(*(Scaling.fit(torch.cat(rows), keep_binary=True) if rows else None for rows in (nodes, edges)))

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
        if self.node is not None and graph.node_features is not None:
            changes["node_features"] = self.node.apply(graph.node_features)
            _check_float32(call, encoding, "node", number, graph.node_features, changes["node_features"])
        if self.edge is not None and graph.n_edges:
            changes["edge_features"] = self.edge.apply(_edge_features(graph))
            _check_float32(call, encoding, "edge", number, _edge_features(graph), changes["edge_features"])
        return replace(graph, **changes) if changes else graph

    def check_fits(self, encoding: Encoding) -> None:
        """Raise an error if the scaling is not one of the encoded features."""
        for name, part, encoded in (
            ("node", self.node, encoding.node_features),
            ("edge", self.edge, encoding.edge_features),
        ):
            if part is not None and len(part.mean) != encoded:
                raise DataError(f"it scales {len(part.mean)} {name} features, but encodes {encoded}.")

    def to_json(self) -> dict[str, Any]:
        """The numbers, for a file."""
        return {name: part and part.to_json() for name, part in (("node", self.node), ("edge", self.edge))}

    @classmethod
    def from_json(cls, stored: Any) -> "FeatureScaling":
        """The inverse of `to_json`."""
        if not isinstance(stored, dict) or stored.keys() != {"node", "edge"}:
            raise DataError(f"the scaling of features must be for node and edge, but this is {stored!r}.")
        return cls(*(None if stored[name] is None else Scaling.from_json(stored[name]) for name in ("node", "edge")))


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
        squares[: encoding.n_of_pairs] += pairs.values[:, : encoding.n_of_pairs].double().square().sum(0)
        n_pairs += graph.n**2 if layout == "padded" else len(pairs.values)
    return torch.where(squares > 0, n_pairs / squares, 1).sqrt().float()


def _edge_features(graph: Graph) -> Tensor:
    """The edge features, by default a column of ones, as in an `Encoding`."""
    return torch.ones(graph.n_edges, 1) if graph.edge_features is None else graph.edge_features


def _check_float32(
    call: str, encoding: Encoding, owner: Literal["node", "edge"], number: int, given: Tensor, scaled: Tensor
) -> None:
    fits = scaled.abs() <= LARGEST
    if not bool(fits.all()):
        row, column = fits.logical_not().nonzero()[0].tolist()
        raise DataError(
            f"{call}: {encoding.feature_name(owner, column)} of {owner} {row} of graphs[{number}] is "
            f"{given[row, column].item():g}, which is {scaled[row, column].item():g} after scaling and does not fit "
            "float32.\nThe scaling is that of the training graphs: correct the value, or train on graphs with such."
        )
