"""How graphs become channels.

An `Encoding` is fitted once, to the training graphs, and then encodes any graphs as a `Padded` or a `Sparse` with the
same channels in the same order: the adjacency, edge features, edge labels (one channel for each label in the graphs of
the fit), and on the diagonal, or in a tensor of their own, node labels (likewise), node features, degrees and the size
of the graph. It stores the names of the attributes of the fit and reads other graphs by the same names.
"""

import json
import math
import sys
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, fields, replace
from itertools import pairwise
from numbers import Integral
from typing import Any, Literal, TypedDict, Unpack, overload

import torch

from bellnet._utils.json_text import read_json
from bellnet.data.attributes import Given, Names, part_names
from bellnet.data.channels import (
    Labels,
    all_labels,
    common_width,
    degree_bins_of,
    edge_rows,
    label_columns,
    label_indices,
    log_degrees,
    log_sizes,
    mean_and_deviation,
    n_labels,
    node_rows,
    place_padded,
    place_sparse,
    width_of,
)
from bellnet.data.converters.conversion import read, read_by
from bellnet.data.graph import FIELDS, NO_COLUMNS, ROLES, Columns, Graph
from bellnet.errors import DataError, OptionError, as_written
from bellnet.tensors import Padded, Sparse
from bellnet.tensors.node_tensor import check_room_for

ADJACENCIES = {
    "plain": ("adjacency",),
    "normalized": ("normalized adjacency",),
    "both": ("adjacency", "normalized adjacency"),
}
"""The names of the adjacency channels of each option."""
UNKNOWN = ("zero", "error")
LAYOUTS = ("padded", "sparse")
NODE_CHANNELS = ("diagonal", "separate")
FORMAT = "bellnet encoding"
VERSION = 1
Encoded = Padded | Sparse | tuple[Padded, Padded] | tuple[Sparse, Sparse]
"""Graphs as one tensor over pairs of nodes, or as two, over pairs and over nodes."""
Graphs = Iterable[object]
Diagonal = Literal["diagonal"]


class Where(TypedDict, total=False):
    """The dtype, device and maximum memory of encoded graphs."""

    dtype: torch.dtype
    device: torch.device | str | None
    max_gigabytes: float | None


@dataclass(frozen=True)
class Encoding:
    """The channels of graphs, as a value that can be compared, hashed and stored.

    Args:
        adjacency: "plain" for a channel that is one at each edge, "normalized" for D^-1/2 A D^-1/2 (in a directed graph
            the left D counts outgoing, the right one incoming edges), "both" for both.
        edge_features: The number of features of an edge, each of which becomes a channel. Edges without features have
            one feature, 1.
        node_labels: The known node labels, each of which becomes a channel: 1 on the diagonal where a node has it. If
            nodes have several columns of labels, a tuple for each column.
        node_features: The number of features of a node, each of which becomes a channel, on the diagonal.
        unknown: The encoding of a label that is not known: with "zero" all its label channels are 0, with "error" a
            `DataError` is raised.
        adjacency_in_labels: Whether the (first) adjacency channel is added to each label channel, as in the code of the
            paper's authors.
        degrees: None, or the mean and standard deviation of log(1 + degree) over all nodes of the graphs of the fit.
            Then standardized log(1 + degree) is a channel, on the diagonal. In a directed graph the degree is the mean
            of outgoing and incoming edges.
        edge_labels: The known edge labels, each of which becomes a channel: 1 where an edge has it. In the form of
            `node_labels`.
        columns: The names of the attributes that features and labels are read from; the defaults where there are none.
        size_feature: None, or the mean and standard deviation of log(1 + n) over all graphs of n nodes of the fit. Then
            standardized log(1 + n) is a channel, on the whole diagonal.
        degree_bins: Ascending degrees, at least two or none, each of which becomes a channel: 1 on the diagonal where
            a node has that degree. Degrees between two of them are interpolated linearly in log(1 + degree), degrees
            outside count as the nearest one.
    """

    adjacency: str = "plain"
    edge_features: int = 0
    node_labels: Labels = ()
    node_features: int = 0
    unknown: str = "zero"
    adjacency_in_labels: bool = False
    degrees: tuple[float, float] | None = None
    edge_labels: Labels = ()
    columns: Columns = NO_COLUMNS
    size_feature: tuple[float, float] | None = None
    degree_bins: tuple[float, ...] = ()

    def __post_init__(self) -> None:  # the fields may come from a file
        count, labels = "an integer from 0 up", "a tuple of ascending int64 labels, or several such tuples"
        scale = "None or a tuple of a mean and a positive deviation"
        for name, is_valid, expected in (
            ("adjacency", _is_one_of(ADJACENCIES), "'plain', 'normalized' or 'both'"),
            ("unknown", _is_one_of(UNKNOWN), "'zero' or 'error'"),
            ("edge_features", _is_count, count),
            ("node_features", _is_count, count),
            ("node_labels", _are_labels, labels),
            ("edge_labels", _are_labels, labels),
            ("adjacency_in_labels", lambda value: type(value) is bool, "True or False"),
            ("degrees", _is_scale, scale),
            ("size_feature", _is_scale, scale),
            ("degree_bins", _are_bins, "a tuple of ascending numbers from 0 up, at least two or none"),
            ("columns", self._are_columns, "Columns that fit features and labels"),
        ):
            if not is_valid(getattr(self, name)):
                raise OptionError(f"Encoding: {name} must be {expected}, not {as_written(getattr(self, name))}.")

    def _are_columns(self, columns: object) -> bool:
        if not isinstance(columns, Columns) or not _are_texts(columns.texts):
            return False
        widths = (
            self.node_features,
            self.edge_features,
            *(len(label_columns(part)) for part in (self.node_labels, self.edge_labels)),
        )
        return all(
            names is None or (type(names) is tuple and len(names) == width and all(type(name) is str for name in names))
            for names, width in zip((getattr(columns, role) for role in ROLES), widths, strict=True)
        )

    @classmethod
    def fit(
        cls,
        graphs: Graphs,
        *,
        adjacency: str = "plain",
        edge_features: bool = True,
        node_features: bool = True,
        unknown: str = "zero",
        adjacency_in_labels: bool = False,
        degrees: bool = False,
        node_attrs: Given = None,
        edge_attrs: Given = None,
        node_labels: Given | bool = True,
        edge_labels: Given | bool = True,
        size_feature: bool = False,
        degree_bins: int = 0,
    ) -> "Encoding":
        """The encoding of all features and labels of these graphs.

        Args:
            graphs: Graphs of any kind that `as_graph` takes.
            adjacency: See `Encoding`.
            edge_features: Whether edge features become channels.
            node_features: Whether node features become channels.
            unknown: See `Encoding`.
            adjacency_in_labels: See `Encoding`.
            degrees: Whether the degree of a node becomes a channel.
            node_attrs: The name or names of the attributes that are node features, see `as_graph`.
            edge_attrs: The same for edge features.
            node_labels: The same for node labels; False for no channels of node labels.
            edge_labels: The same for edge labels.
            size_feature: Whether the number of nodes of a graph becomes a channel.
            degree_bins: 0, or the maximum number of degrees, at least two, that become channels of their own: all that
                occur if these are no more, otherwise quantiles.

        >>> triangle = Graph(3, [[0, 1, 1, 2, 2, 0], [1, 0, 2, 1, 0, 2]], node_labels=torch.tensor([6, 6, 8]))
        >>> Encoding.fit([triangle]).names
        ('adjacency', 'label 6', 'label 8')
        """
        names = Names.of(node_attrs=node_attrs, edge_attrs=edge_attrs, node_labels=node_labels, edge_labels=edge_labels)
        if not _is_bin_count(degree_bins):
            raise OptionError(
                f"Encoding.fit(graphs): degree_bins must be 0 or an integer from 2 up, not {degree_bins!r}."
            )
        known = read("Encoding.fit(graphs)", graphs, names)
        if not known:
            raise DataError("Encoding.fit(graphs): there is no graph.\nPass at least one graph.")
        has_node_labels, has_edge_labels = node_labels is not False, edge_labels is not False
        of_nodes = all_labels(known, "node_labels") if has_node_labels else ()
        of_edges = all_labels(known, "edge_labels") if has_edge_labels else ()
        columns = Columns.common(graph.columns for graph in known)
        labels = {label for part in (*label_columns(of_nodes), *label_columns(of_edges)) for label in part}
        return cls(
            adjacency=adjacency,
            unknown=unknown,
            adjacency_in_labels=adjacency_in_labels,
            degrees=mean_and_deviation(log_degrees(known)) if degrees else None,
            size_feature=mean_and_deviation(log_sizes(known)) if size_feature else None,
            degree_bins=degree_bins_of(known, int(degree_bins)) if degree_bins else (),
            edge_features=common_width(known, "edge_features") if edge_features else 0,
            node_features=common_width(known, "node_features") if node_features else 0,
            node_labels=of_nodes,
            edge_labels=of_edges,
            columns=Columns(
                columns.node_attrs if node_features else (),
                columns.edge_attrs if edge_features else (),
                columns.node_labels if has_node_labels else (),
                columns.edge_labels if has_edge_labels else (),
                tuple(pair for pair in columns.texts if pair[0] in labels),
            ),
        )

    def read(self, graphs: Graphs) -> list[Graph]:
        """Graphs of any kind that `as_graph` takes, with the attributes that this encoding uses and no others.

        Attributes are read by the names of the fit. An encoding without names (fitted to `Graph`s made by hand) reads
        those with default names.
        """
        names = {role: getattr(self.columns, role) for role in ROLES}
        if not self.edge_labels:
            names["edge_labels"] = ()
        by_name = Names(
            **{role: None if given is None else tuple(dict.fromkeys(given)) for role, given in names.items()}
        )
        return [self._select(graph, number) for number, graph in enumerate(read_by(graphs, by_name))]

    def _select(self, graph: Graph, number: int) -> Graph:
        """The graph with the columns of this encoding, in their order; columns without names stay as they are.

        Named columns of a role that the encoding has no channels for are removed.
        """
        changes: dict[str, Any] = {}
        columns: dict[str, Any] = {}
        for role, field in FIELDS.items():
            have, want = getattr(graph.columns, role), getattr(self.columns, role)
            if have is None or have == want or (want is None and getattr(self, field)):
                continue
            want = want or ()
            for name in want:
                if name not in have:
                    raise DataError(
                        f"graphs[{number}] has no {role[:4]} attribute {name!r}, which the fit used.\n"
                        "Pass graphs with the attributes of the fit."
                    )
            values = getattr(graph, field)
            chosen = [column for name in dict.fromkeys(want) for column, one in enumerate(have) if one == name]
            if values is not None and values.ndim == 1:
                values = values.unsqueeze(-1)
            changes[field] = values[:, chosen] if chosen else None
            columns[role] = tuple(have[column] for column in chosen)
        return replace(graph, **changes, columns=replace(graph.columns, **columns)) if changes else graph

    @property
    def names(self) -> tuple[str, ...]:
        """The name of each channel, in order."""
        columns = self.columns
        edge = range(self.edge_features) if columns.edge_attrs is None else part_names(columns.edge_attrs)
        node = range(self.node_features) if columns.node_attrs is None else part_names(columns.node_attrs)
        return (
            *ADJACENCIES[self.adjacency],
            *(f"edge feature {name}" for name in edge),
            *(f"edge label {name}" for name in self._label_names("edge_labels")),
            *(f"label {name}" for name in self._label_names("node_labels")),
            *(f"node feature {name}" for name in node),
            *(("degree",) if self.degrees else ()),
            *(f"degree {int(degree) if degree == int(degree) else degree}" for degree in self.degree_bins),
            *(("size",) if self.size_feature else ()),
        )

    def _label_names(self, role: str) -> list[str]:
        """The labels, as texts where they stand for texts; with their attribute if there are several columns."""
        parts, texts = label_columns(getattr(self, role)), dict(self.columns.texts)
        if len(parts) == 1:
            return [str(texts.get(label, label)) for label in parts[0]]
        owners = getattr(self.columns, role) or [str(number) for number in range(len(parts))]
        return [
            f"{owner}={texts.get(label, label)}" for owner, part in zip(owners, parts, strict=True) for label in part
        ]

    @property
    def channels(self) -> int:
        """The number of channels."""
        # Not the number of names: an integer from a file can be larger than any list.
        return self.n_pair_channels + self.n_node_channels

    @property
    def n_pair_channels(self) -> int:
        """The number of channels of pairs of nodes; they come first, those of nodes follow."""
        return len(ADJACENCIES[self.adjacency]) + self.edge_features + n_labels(self.edge_labels)

    @property
    def n_node_channels(self) -> int:
        """The number of channels of nodes: on the diagonal of pairs, or in a tensor of their own."""
        of_degrees = bool(self.degrees) + len(self.degree_bins)
        return n_labels(self.node_labels) + self.node_features + of_degrees + bool(self.size_feature)

    @overload
    def encode(
        self,
        graphs: Graphs,
        *,
        layout: Literal["padded"] = ...,
        node_channels: Diagonal = ...,
        **options: Unpack[Where],
    ) -> Padded: ...
    @overload
    def encode(
        self, graphs: Graphs, *, layout: Literal["sparse"], node_channels: Diagonal = ..., **options: Unpack[Where]
    ) -> Sparse: ...
    @overload
    def encode(
        self, graphs: Graphs, *, layout: str = ..., node_channels: str = ..., **options: Unpack[Where]
    ) -> Encoded: ...
    def encode(
        self,
        graphs: Graphs,
        *,
        layout: str = "padded",
        node_channels: str = "diagonal",
        dtype: torch.dtype = torch.float32,
        device: torch.device | str | None = None,
        max_gigabytes: float | None = None,
    ) -> Encoded:
        """The graphs as one tensor over pairs of nodes, or as two, over pairs of nodes and over nodes.

        Args:
            graphs: Graphs of any kind that `as_graph` takes.
            layout: "padded" for a `Padded` of shape (graphs, n, n, channels), n being the size of the largest graph;
                "sparse" for a `Sparse` that stores the edges and the diagonal.
            node_channels: "diagonal" for channels of nodes on the diagonal, "separate" for two tensors of the same
                layout, for "n n, n": over pairs with `n_pair_channels` channels (a `Sparse` then stores the edges
                only), and over nodes with `n_node_channels`.
            dtype: The dtype of the values.
            device: The device of the values.
            max_gigabytes: Maximum memory of a padded batch; the memory of the machine if None.
        """
        if layout not in LAYOUTS:
            raise OptionError(f"Encoding.encode(graphs): layout must be 'padded' or 'sparse', not {layout!r}.")
        self.check_node_channels("Encoding.encode(graphs)", node_channels)
        known = self.read(graphs)
        if not known:
            raise DataError("Encoding.encode(graphs): there is no graph.\nLeave out empty batches.")
        for number, graph in enumerate(known):
            self._check_usable(graph, number)
        is_separate = node_channels == "separate"
        n_channels = self.n_pair_channels if is_separate else self.channels
        if layout == "padded":
            longest = max(graph.n for graph in known)
            check_room_for("Encoding.encode(graphs)", (len(known), longest, longest, n_channels), dtype, max_gigabytes)
        place = place_padded if layout == "padded" else place_sparse
        return place(
            known,
            n_channels,
            of_edges=edge_rows(self, known, dtype),
            of_nodes=node_rows(self, known, dtype),
            is_separate=is_separate,
            device=device,
        )

    def check_node_channels(self, call: str, node_channels: object) -> None:
        """Raises an `OptionError` if `node_channels` is no option, or not possible with this encoding."""
        if not isinstance(node_channels, str) or node_channels not in NODE_CHANNELS:
            raise OptionError(f"{call}: node_channels must be 'diagonal' or 'separate', not {node_channels!r}.")
        if node_channels == "diagonal":
            return
        if self.adjacency_in_labels:
            raise OptionError(
                f"{call}: adjacency_in_labels adds values of pairs to channels of nodes, which is not possible "
                "with node_channels='separate'; leave out one of them."
            )
        if not self.n_node_channels:
            raise OptionError(
                f"{call}: node_channels='separate' needs channels of nodes, but these nodes have "
                "neither labels nor features.\nLeave it out, or add degrees=True or size_feature=True."
            )

    def feature_name(self, owner: Literal["node", "edge"], column: int) -> str:
        """A feature in messages: by its attribute if it has one, otherwise by its column."""
        names = self.columns.node_attrs if owner == "node" else self.columns.edge_attrs
        return f"{owner} feature {column if names is None else repr(part_names(names)[column])}"

    def mismatch(self, graph: Graph, *, strict: bool = True) -> tuple[str, str] | None:
        """The field of a graph that differs from the graphs of the fit, and how it differs; None if none does.

        If strict, features that the graphs of the fit lack are a difference; `encode` ignores them.
        """
        for name in ("node_features", "edge_features", "node_labels", "edge_labels"):
            is_labels, values = name.endswith("labels"), getattr(graph, name)
            expected = len(label_columns(getattr(self, name))) if is_labels else getattr(self, name)
            is_read = (graph.n if name.startswith("node") else graph.n_edges) and (
                expected or (strict and not is_labels)
            )
            is_weightless = name == "edge_features" and values is None and expected == 1  # they have one feature, 1
            if is_read and width_of(values) != expected and not is_weightless:
                columns = "columns of " * is_labels
                return name, f"{width_of(values)} {columns}{name}, but the graphs of the fit had {expected}"
        return None

    def _check_usable(self, graph: Graph, number: int) -> None:
        """Raises a `DataError` if graph `number` lacks what this encoding has channels for, or has an unknown label."""
        if differs := self.mismatch(graph, strict=False):
            raise DataError(
                f"Encoding.encode(graphs): graphs[{number}] has {differs[1]}.\n"
                f"Pass graphs with the same {differs[0]}, or fit with {differs[0]}=False."
            )
        for name in ("node_labels", "edge_labels") if self.unknown == "error" else ():
            labels, parts = getattr(graph, name), label_columns(getattr(self, name))
            for column, (_, known) in enumerate(label_indices(getattr(self, name), [graph], name)):
                if not bool(known.all()):
                    row = int(known.logical_not().nonzero()[0])
                    label = int(labels[row] if labels.ndim == 1 else labels[row, column])
                    texts = {**dict(self.columns.texts), **dict(graph.columns.texts)}
                    is_edge = name == "edge_labels"
                    which = f"edge {tuple(graph.edge_index[:, row].tolist())}" if is_edge else f"node {row}"
                    raise DataError(
                        f"Encoding.encode(graphs): {which} of graphs[{number}] has label {texts.get(label, label)}, "
                        "which no graph of the fit had.\nKnown labels: "
                        f"{', '.join(str(texts.get(one, one)) for one in parts[column])}. "
                        "With unknown='zero' all its label channels are 0."
                    )

    def to_json(self) -> str:
        """The encoding as JSON text, which `from_json` reads."""
        return json.dumps({"format": FORMAT, "version": VERSION, **asdict(self)})

    @classmethod
    def from_json(cls, text: str) -> "Encoding":
        """The encoding that `to_json` wrote."""
        call = "Encoding.from_json(text)"
        try:
            stored = read_json(text)
        except DataError as reason:
            raise DataError(f"{call}: {reason}") from reason
        if not isinstance(stored, dict) or stored.pop("format", None) != FORMAT:
            raise DataError(f'{call}: this is no encoding; "format" must be "{FORMAT}".')
        version = stored.pop("version", None)
        if type(version) is not int or version != VERSION:
            raise DataError(
                f"{call}: expected format version {VERSION}, got version {version!r}.\n"
                "Use the version of bellnet that wrote it, or write it again."
            )
        columns = stored.get("columns")
        for kind, found, where in ((cls, stored, ""), (Columns, columns, " in columns")):
            expected = sorted(field.name for field in fields(kind))
            if not isinstance(found, dict) or sorted(found) != expected:
                got = ", ".join(sorted(found)) if isinstance(found, dict) else repr(found)
                raise DataError(f"{call}: expected the fields {', '.join(expected)}{where}, got {got or 'none'}.")
        stored["columns"] = Columns(**_with_tuples(columns))
        return cls(**_with_tuples(stored))


def _with_tuples(value: Any) -> Any:
    """The same with tuples for lists, also in the values of a mapping."""
    if isinstance(value, dict):
        return {name: _with_tuples(item) for name, item in value.items()}
    return tuple(map(_with_tuples, value)) if isinstance(value, list) else value


def _is_one_of(known: Iterable[str]) -> Callable[[object], bool]:
    return lambda value: isinstance(value, str) and value in known


def _is_count(value: Any) -> bool:
    return type(value) is int and value >= 0


def _is_bin_count(value: Any) -> bool:
    return type(value) is not bool and isinstance(value, Integral) and (int(value) == 0 or int(value) >= 2)


def _is_finite(value: Any) -> bool:
    """Whether this is a finite number in float64."""
    return isinstance(value, int | float) and type(value) is not bool and abs(value) <= sys.float_info.max


def _is_scale(value: Any) -> bool:
    is_pair = isinstance(value, tuple) and len(value) == 2 and all(map(_is_finite, value))
    return value is None or (is_pair and value[1] > 0)


def _are_ascending_labels(value: Any) -> bool:
    is_tuple = isinstance(value, tuple) and all(type(label) is int and -(2**63) <= label < 2**63 for label in value)
    return is_tuple and list(value) == sorted(set(value))


def _are_labels(value: Any) -> bool:
    parts = value if isinstance(value, tuple) and value and isinstance(value[0], tuple) else (value,)
    return all(map(_are_ascending_labels, parts)) and (len(parts) == 1 or all(parts))


def _are_texts(value: Any) -> bool:
    """Whether this is a tuple of ascending labels, each with a text."""
    if not isinstance(value, tuple) or not all(isinstance(pair, tuple) and len(pair) == 2 for pair in value):
        return False
    return _are_ascending_labels(tuple(label for label, _ in value)) and all(isinstance(text, str) for _, text in value)


def _are_bins(value: Any) -> bool:
    if not isinstance(value, tuple) or len(value) == 1 or not all(_is_finite(one) and one >= 0 for one in value):
        return False
    # Degrees are interpolated between these positions.
    return all(one < other for one, other in pairwise(map(math.log1p, value)))
