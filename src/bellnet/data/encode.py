"""How graphs become channels.

An `Encoding` is fitted once, to the graphs that are learned from, and then turns any graphs into a `Padded` or a
`Sparse` with the same channels in the same order: the adjacency, edge features, edge labels (one channel for each label
seen when it was fitted), and on the diagonal, or in a tensor of their own, node labels, likewise, node features,
degrees and the size of the graph. It remembers by which names features and labels were read, and reads other graphs by
the same.
"""

import json
import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal, overload

import torch
from torch import Tensor

from bellnet.data.columns import NO_COLUMNS, ROLES, Columns, part_names
from bellnet.data.convert import read, read_by
from bellnet.data.degrees import log_degrees, log_sizes, scale_of
from bellnet.data.graph import Graph
from bellnet.data.kinds import Given, Names
from bellnet.data.rows import Labels, apart, count, edge_rows, label_places, node_rows
from bellnet.data.select import FIELDS, select
from bellnet.errors import DataError, OptionError
from bellnet.tensors import Padded, Sparse, Support
from bellnet.tensors.room import check_room_for

ADJACENCIES = {
    "plain": ("adjacency",),
    "normalized": ("normalized adjacency",),
    "both": ("adjacency", "normalized adjacency"),
}
UNKNOWN = ("zero", "error")
LAYOUTS = ("padded", "sparse")
NODE_CHANNELS = ("diagonal", "apart")
FORMAT = "bellnet encoding"
VERSION = 4
NEW_FIELDS = {2: {"edge_labels", "columns", "sizes"}, 3: {"sizes"}}
"""What earlier versions, which can still be read, did not know: labels of edges and names, and sizes of graphs."""
Encoded = Padded | Sparse | tuple[Padded, Padded] | tuple[Sparse, Sparse]
"""Graphs as one tensor over pairs of nodes, or as two: pairs, and nodes."""


@dataclass(frozen=True)
class Encoding:
    """Which channels a graph gets, as a value that can be compared, hashed and stored.

    Args:
        adjacency: "plain" for a channel that is one where there is an edge, "normalized" for D^-1/2 A D^-1/2 (in a
            directed graph the left D counts outgoing, the right one incoming edges), "both" for both.
        edge_features: The number of features of an edge, each of which becomes a channel. Edges without features
            count as one feature, 1.
        node_labels: The known node labels, each of which becomes a channel: 1 on the diagonal where a node has it. If
            nodes have several columns of labels, a tuple of such for each column.
        node_features: The number of features of a node, each of which becomes a channel, on the diagonal.
        unknown: What becomes of a node or edge whose label is not known: "zero" leaves all label channels 0 there,
            "error" refuses the graph.
        adjacency_in_labels: Whether the (first) adjacency channel is added to every label channel, as the paper's
            authors did.
        degrees: None, or the mean and standard deviation of log(1 + degree) over all nodes of the graphs of the fit:
            then there is a channel with log(1 + degree), less the mean and divided by the deviation, on the diagonal.
            In a directed graph the degree is the mean of outgoing and incoming edges.
        edge_labels: The known edge labels, each of which becomes a channel: 1 where an edge has it. In the form of
            `node_labels`.
        columns: The names of the attributes that features and labels are read from; the usual ones where there are
            none.
        sizes: None, or the mean and standard deviation of log(1 + n) over all graphs of n nodes of the fit: then there
            is a channel with log(1 + n), less the mean and divided by the deviation, on the whole diagonal.
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
    sizes: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        if self.adjacency not in ADJACENCIES:
            raise OptionError(
                f"Encoding: adjacency must be one of {', '.join(map(repr, ADJACENCIES))}, not {self.adjacency!r}."
            )
        if self.unknown not in UNKNOWN:
            raise OptionError(f"Encoding: unknown must be 'zero' or 'error', not {self.unknown!r}.")
        for name in ("edge_features", "node_features"):
            value = getattr(self, name)
            if type(value) is not int or value < 0:
                raise OptionError(f"Encoding: {name} must be a whole number from 0 up, not {value!r}.")
        for name in ("node_labels", "edge_labels"):
            _check_labels(name, getattr(self, name))
        if type(self.adjacency_in_labels) is not bool:
            raise OptionError(f"Encoding: adjacency_in_labels must be True or False, not {self.adjacency_in_labels!r}.")
        for name in ("degrees", "sizes"):
            if (scale := getattr(self, name)) is not None and not _is_scale(scale):
                raise OptionError(
                    f"Encoding: {name} must be None or a tuple of a mean and a positive deviation, not {scale!r}."
                )
        self._check_columns()

    def _check_columns(self) -> None:
        columns: object = self.columns
        if not isinstance(columns, Columns) or not _is_texts(columns.texts):
            raise OptionError(f"Encoding: columns must be Columns with the texts of labels, not {columns!r}.")
        widths = (self.node_features, self.edge_features, len(apart(self.node_labels)), len(apart(self.edge_labels)))
        for role, width in zip(ROLES, widths, strict=True):
            names = getattr(columns, role)
            if names is not None and not (_is_strings(names) and len(names) == width):
                raise OptionError(
                    f"Encoding: columns must name each of the {width} columns of {FIELDS[role]}, not {names!r}."
                )

    @classmethod
    def fit(
        cls,
        graphs: Iterable[object],
        *,
        adjacency: str = "plain",
        edge_features: bool = True,
        node_labels: bool = True,
        node_features: bool = True,
        unknown: str = "zero",
        adjacency_in_labels: bool = False,
        degrees: bool = False,
        edge_labels: bool = True,
        node: Given = None,
        edge: Given = None,
        label: Given = None,
        edge_label: Given = None,
        sizes: bool = False,
    ) -> "Encoding":
        """The encoding of everything that these graphs have.

        Args:
            graphs: Graphs of any kind that `as_graph` takes.
            adjacency: See `Encoding`.
            edge_features: Whether edge features become channels.
            node_labels: Whether node labels become channels.
            node_features: Whether node features become channels.
            unknown: See `Encoding`.
            adjacency_in_labels: See `Encoding`.
            degrees: Whether the degrees of nodes become a channel.
            edge_labels: Whether edge labels become channels.
            node: The name or names of the attributes that are node features, see `as_graph`.
            edge: Likewise of the edge features.
            label: Likewise of the node labels.
            edge_label: Likewise of the edge labels.
            sizes: Whether the number of nodes of a graph becomes a channel.

        >>> triangle = Graph(3, [[0, 1, 1, 2, 2, 0], [1, 0, 2, 1, 0, 2]], node_labels=torch.tensor([6, 6, 8]))
        >>> Encoding.fit([triangle]).names
        ('adjacency', 'label 6', 'label 8')
        """
        names = Names.of(node=node, edge=edge, label=label, edge_label=edge_label)
        known = read("Encoding.fit(graphs)", graphs, names)
        if not known:
            raise DataError("Encoding.fit(graphs): there is no graph.\nGive at least one graph to learn the channels.")
        chosen = {"node": node_features, "edge": edge_features, "label": node_labels, "edge_label": edge_labels}
        found: dict[str, Any] = {
            "edge_features": _common_width(known, "edge_features") if edge_features else 0,
            "node_features": _common_width(known, "node_features") if node_features else 0,
            "node_labels": _seen_labels(known, "node_labels") if node_labels else (),
            "edge_labels": _seen_labels(known, "edge_labels") if edge_labels else (),
        }
        columns = Columns.common(graph.columns for graph in known)
        numbers = {number for name in ("node_labels", "edge_labels") for part in apart(found[name]) for number in part}
        return cls(
            adjacency=adjacency,
            unknown=unknown,
            adjacency_in_labels=adjacency_in_labels,
            degrees=scale_of(log_degrees(known)) if degrees else None,
            sizes=scale_of(log_sizes(known)) if sizes else None,
            columns=Columns(
                **{role: getattr(columns, role) if is_used else () for role, is_used in chosen.items()},
                texts=tuple(pair for pair in columns.texts if pair[0] in numbers),
            ),
            **found,
        )

    def read(self, graphs: Iterable[object]) -> list[Graph]:
        """Graphs of any kind that `as_graph` takes, with those attributes that this encoding uses, and no others.

        Attributes are read by the names of the fit. An encoding without names (fitted to `Graph`s that were made by
        hand, or stored when there were none) reads the usual ones.
        """
        columns, used = self.columns, self._used
        names = {role: getattr(columns, role) for role in ROLES}
        names |= {} if used["edge_label"] else {"edge_label": ()}
        by_name = Names(
            **{role: None if given is None else tuple(dict.fromkeys(given)) for role, given in names.items()}
        )
        known = enumerate(read_by(graphs, by_name))
        return [select(graph, columns, used, number=number) for number, graph in known]

    @property
    def _used(self) -> dict[str, bool]:
        return {role: bool(getattr(self, name)) for role, name in FIELDS.items()}

    @property
    def names(self) -> tuple[str, ...]:
        """What every channel holds, in order."""
        columns = self.columns
        edge = range(self.edge_features) if columns.edge is None else part_names(columns.edge)
        node = range(self.node_features) if columns.node is None else part_names(columns.node)
        return (
            *ADJACENCIES[self.adjacency],
            *(f"edge feature {name}" for name in edge),
            *(f"edge label {name}" for name in self._label_names(self.edge_labels, columns.edge_label)),
            *(f"label {name}" for name in self._label_names(self.node_labels, columns.label)),
            *(f"node feature {name}" for name in node),
            *(("degree",) if self.degrees else ()),
            *(("size",) if self.sizes else ()),
        )

    def _label_names(self, labels: Labels, attributes: tuple[str, ...] | None) -> list[str]:
        """The texts of labels, where there are any; with their attribute if there are several columns of labels."""
        parts, texts = apart(labels), dict(self.columns.texts)
        if len(parts) == 1:
            return [str(texts.get(label, label)) for label in parts[0]]
        owners = attributes or [str(number) for number in range(len(parts))]
        return [
            f"{owner}={texts.get(label, label)}" for owner, part in zip(owners, parts, strict=True) for label in part
        ]

    @property
    def channels(self) -> int:
        """The number of channels."""
        # Not the length of the names: a number from a file can be larger than any list.
        return self.n_of_pairs + self.n_of_nodes

    @property
    def n_of_pairs(self) -> int:
        """The number of channels that say something of pairs of nodes; they come first, those of nodes follow."""
        return len(ADJACENCIES[self.adjacency]) + self.edge_features + count(self.edge_labels)

    @property
    def n_of_nodes(self) -> int:
        """The number of channels that say something of nodes: on the diagonal of pairs, or apart."""
        return count(self.node_labels) + self.node_features + bool(self.degrees) + bool(self.sizes)

    @overload
    def encode(
        self,
        graphs: Iterable[object],
        *,
        layout: Literal["padded"] = "padded",
        node_channels: Literal["diagonal"] = "diagonal",
        dtype: torch.dtype = torch.float32,
        device: torch.device | str | None = None,
        max_gigabytes: float | None = None,
    ) -> Padded: ...
    @overload
    def encode(
        self,
        graphs: Iterable[object],
        *,
        layout: Literal["sparse"],
        node_channels: Literal["diagonal"] = "diagonal",
        dtype: torch.dtype = torch.float32,
        device: torch.device | str | None = None,
    ) -> Sparse: ...
    @overload
    def encode(
        self,
        graphs: Iterable[object],
        *,
        layout: str,
        node_channels: Literal["diagonal"] = "diagonal",
        dtype: torch.dtype = torch.float32,
        device: torch.device | str | None = None,
        max_gigabytes: float | None = None,
    ) -> Padded | Sparse: ...
    @overload
    def encode(
        self,
        graphs: Iterable[object],
        *,
        layout: str = "padded",
        node_channels: str,
        dtype: torch.dtype = torch.float32,
        device: torch.device | str | None = None,
        max_gigabytes: float | None = None,
    ) -> Encoded: ...
    def encode(
        self,
        graphs: Iterable[object],
        *,
        layout: str = "padded",
        node_channels: str = "diagonal",
        dtype: torch.dtype = torch.float32,
        device: torch.device | str | None = None,
        max_gigabytes: float | None = None,
    ) -> Encoded:
        """The graphs as one tensor over pairs of nodes, or as two: what is said of pairs, and what is said of nodes.

        Args:
            graphs: Graphs of any kind that `as_graph` takes.
            layout: "padded" for a `Padded` of shape (graphs, n, n, channels), n being the size of the largest;
                "sparse" for a `Sparse` that lists the edges and, for every node v, (v, v).
            node_channels: Where the channels of nodes stand: on the "diagonal", or "apart". Apart there are two tensors
                of the same layout, for "n n, n": over pairs with `n_of_pairs` channels (of a `Sparse` the edges alone
                are listed), and over nodes with `n_of_nodes`.
            dtype: The type of the values.
            device: Where the values are.
            max_gigabytes: A padded batch that would take more is refused; the memory of the machine if None.
        """
        if layout not in LAYOUTS:
            raise OptionError(f"Encoding.encode(graphs): layout must be 'padded' or 'sparse', not {layout!r}.")
        self.check_node_channels("Encoding.encode(graphs)", node_channels)
        known = self.read(graphs)
        if not known:
            raise DataError("Encoding.encode(graphs): there is no graph.\nLeave out empty batches.")
        for number, graph in enumerate(known):
            self._check(graph, number)
        if layout == "sparse":
            return self._sparse(known, dtype, device, is_apart=node_channels == "apart")
        longest = max(graph.n for graph in known)
        shape = len(known), longest, longest, self.n_of_pairs if node_channels == "apart" else self.channels
        check_room_for("Encoding.encode(graphs)", shape, dtype, max_gigabytes)
        return self._padded(known, torch.zeros(shape, dtype=dtype), device, is_apart=node_channels == "apart")

    def check_node_channels(self, call: str, node_channels: object) -> None:
        """Refuse a place for the channels of nodes that is none, or that they cannot stand in."""
        if not isinstance(node_channels, str) or node_channels not in NODE_CHANNELS:
            raise OptionError(f"{call}: node_channels must be 'diagonal' or 'apart', not {node_channels!r}.")
        if node_channels == "diagonal":
            return
        if self.adjacency_in_labels:
            raise OptionError(
                f"{call}: adjacency_in_labels adds values of pairs to channels of nodes, which cannot be with "
                "node_channels='apart'; leave out one of them."
            )
        if not self.n_of_nodes:
            raise OptionError(
                f"{call}: node_channels='apart' needs channels of nodes, but here nothing is said of nodes: they have "
                "neither labels nor features.\nLeave it out, or add degrees=True or sizes=True."
            )

    def _padded(
        self, graphs: list[Graph], values: Tensor, device: torch.device | str | None, *, is_apart: bool
    ) -> Padded | tuple[Padded, Padded]:
        edges, diagonal = _edges_and_diagonal(graphs)
        _write(values, tuple(edges), edge_rows(self, graphs, values.dtype))
        of_nodes = node_rows(self, graphs, values.dtype)
        if not is_apart:
            _add_last(values, tuple(diagonal), of_nodes)
        pairs = Padded.clean(values.to(device), torch.tensor([graph.n for graph in graphs]), ("n", "n"))
        if not is_apart:
            return pairs
        nodes = values.new_zeros(*values.shape[:2], self.n_of_nodes)
        _write(nodes, tuple(diagonal[:2]), of_nodes)
        return pairs, pairs.with_clean_values(nodes.to(device), ("n",))

    def _sparse(
        self, graphs: list[Graph], dtype: torch.dtype, device: torch.device | str | None, *, is_apart: bool
    ) -> Sparse | tuple[Sparse, Sparse]:
        edges, diagonal = _edges_and_diagonal(graphs)
        tuples = edges if is_apart else torch.cat([edges, diagonal], 1)
        sizes = torch.tensor([graph.n for graph in graphs])
        before = sizes.square().cumsum(0) - sizes.square()
        owner, source, target = tuples
        codes, rows = (before[owner] + source * sizes[owner] + target).unique(return_inverse=True)
        index = tuples.new_empty(3, len(codes))
        index[:, rows] = tuples
        values = torch.zeros(len(codes), self.n_of_pairs if is_apart else self.channels, dtype=dtype)
        _write(values, (rows[: edges.shape[1]],), edge_rows(self, graphs, dtype))
        of_nodes = node_rows(self, graphs, dtype)
        if not is_apart:
            _add_last(values, (rows[edges.shape[1] :],), of_nodes)
        pairs = Sparse(index.to(device), values.to(device), sizes.to(device), is_sorted=True)
        return (pairs, nodes_beside(pairs, of_nodes.to(device))) if is_apart else pairs

    def _check(self, graph: Graph, number: int) -> None:
        width = 0 if graph.edge_features is None else graph.edge_features.shape[1]
        weighs_one = graph.edge_features is None and self.edge_features == 1
        if self.edge_features and width != self.edge_features and not weighs_one and graph.n_edges:
            raise _mismatch(number, "edge_features", self.edge_features, width)
        width = 0 if graph.node_features is None else graph.node_features.shape[1]
        if self.node_features and width != self.node_features and graph.n:
            raise _mismatch(number, "node_features", self.node_features, width)
        for name, owner, rows in (("node_labels", "node", graph.n), ("edge_labels", "edge", graph.n_edges)):
            if getattr(self, name) and rows:
                self._check_labels(graph, number, name, owner)

    def _check_labels(self, graph: Graph, number: int, name: str, owner: str) -> None:
        labels, parts = getattr(graph, name), apart(getattr(self, name))
        if labels is None:
            raise DataError(
                f"Encoding.encode(graphs): graphs[{number}] has no {name}, but the graphs of the fit had.\n"
                f"Give every graph labels, or fit with {name}=False."
            )
        if (width := 1 if labels.ndim == 1 else labels.shape[1]) != len(parts):
            raise DataError(
                f"Encoding.encode(graphs): graphs[{number}] has {width} columns of {name}, but the graphs of the fit "
                f"had {len(parts)}.\nGive the same labels, or fit with {name}=False."
            )
        if self.unknown != "error":
            return
        for column, (_, known) in enumerate(label_places(getattr(self, name), [graph], name)):
            if not bool(known.all()):
                place = int(known.logical_not().nonzero()[0])
                label = int(labels[place] if labels.ndim == 1 else labels[place, column])
                texts = {**dict(self.columns.texts), **dict(graph.columns.texts)}
                which = f"edge {tuple(graph.edge_index[:, place].tolist())}" if owner == "edge" else f"node {place}"
                others = ", ".join(str(texts.get(one, one)) for one in parts[column])
                raise DataError(
                    f"Encoding.encode(graphs): {which} of graphs[{number}] has label {texts.get(label, label)}, which "
                    f"no graph of the fit had.\nKnown are {others}. "
                    "With unknown='zero' it gets no label."
                )

    def mismatch(self, graph: Graph) -> tuple[str, str] | None:
        """Which field of a graph is not as in the graphs of the fit, and how it differs; None if all are.

        This is stricter than `encode`, which passes over features that the fit had not.
        """
        for name in ("node_features", "edge_features"):
            expected, values = getattr(self, name), getattr(graph, name)
            width = 0 if values is None else values.shape[1]
            # Edges without features may stand for edges with one.
            as_good_as = name == "edge_features" and (not graph.n_edges or (width, expected) == (0, 1))
            if width != expected and not as_good_as:
                return name, f"{width} {name}, but the graphs of the fit had {expected}"
        for name in ("node_labels", "edge_labels"):
            known, labels = getattr(self, name), getattr(graph, name)
            if not known or (name == "edge_labels" and not graph.n_edges):
                continue
            if labels is None:
                return name, f"no {name}, but the graphs of the fit had"
            columns, expected = (1 if labels.ndim == 1 else labels.shape[1]), len(apart(known))
            if columns != expected:
                return name, f"{columns} columns of {name}, but the graphs of the fit had {expected}"
        return None

    def to_json(self) -> str:
        """The encoding as JSON text, which `from_json` reads."""
        return json.dumps({"format": FORMAT, "version": VERSION, **asdict(self)})

    @classmethod
    def from_json(cls, text: str) -> "Encoding":
        """The encoding that `to_json` wrote."""
        try:
            stored = json.loads(text)
        except (TypeError, ValueError) as reason:
            raise DataError(f"Encoding.from_json(text): this is not JSON: {reason}.") from reason
        except RecursionError as reason:
            raise DataError("Encoding.from_json(text): this is JSON nested too deeply to be read.") from reason
        if not isinstance(stored, dict) or stored.pop("format", None) != FORMAT:
            raise DataError('Encoding.from_json(text): this is no encoding; "format" must be "bellnet encoding".')
        if (version := stored.pop("version", None)) not in (*NEW_FIELDS, VERSION):
            raise DataError(
                f"Encoding.from_json(text): this is version {version!r}, but here only versions {min(NEW_FIELDS)} to "
                f"{VERSION} can be read.\nUpdate bellnet, or write it again."
            )
        expected = {field.name for field in fields(cls)} - NEW_FIELDS.get(version, set())
        if stored.keys() != expected:
            raise DataError(
                f"Encoding.from_json(text): expected the fields {', '.join(sorted(expected))}; came "
                f"{', '.join(sorted(stored)) or 'none'}."
            )
        given: dict[str, Any] = {name: _with_tuples(value) for name, value in stored.items()}
        if "columns" in given:
            if not isinstance(stored["columns"], dict) or stored["columns"].keys() != {*ROLES, "texts"}:
                raise DataError(
                    f"Encoding.from_json(text): columns must be {', '.join((*ROLES, 'texts'))}, not "
                    f"{stored['columns']!r}."
                )
            given["columns"] = Columns(**{name: _with_tuples(value) for name, value in stored["columns"].items()})
        return cls(**given)


def _edges_and_diagonal(graphs: list[Graph]) -> tuple[Tensor, Tensor]:
    """Graph, first and second node of every edge, and of (v, v) for every node v, one graph after the other."""
    edge_owner = torch.repeat_interleave(torch.tensor([graph.n_edges for graph in graphs]))
    node_owner = torch.repeat_interleave(torch.tensor([graph.n for graph in graphs]))
    node = torch.cat([torch.arange(graph.n) for graph in graphs])
    ends = torch.cat([graph.edge_index for graph in graphs], 1)
    return torch.cat([edge_owner.unsqueeze(0), ends]), torch.stack([node_owner, node, node])


def nodes_beside(pairs: Sparse, values: Tensor) -> Sparse:
    """Rows of all nodes of the graphs of a `Sparse`, those of the first graph first, as a `Sparse` over nodes."""
    return Sparse.on(Support.every_node(pairs.support.counts, "n"), values)


def _write(values: Tensor, here: tuple[Tensor, ...], rows: Tensor) -> None:
    """Put rows into the first channels."""
    values[..., : rows.shape[1]][here] = rows


def _add_last(values: Tensor, here: tuple[Tensor, ...], rows: Tensor) -> None:
    """Add rows to the last channels, of places that are different from each other."""
    values[..., values.shape[-1] - rows.shape[1] :][here] += rows


def _common_width(graphs: list[Graph], name: str) -> int:
    """The number of features that all graphs have."""
    first: tuple[int, int] | None = None
    for number, graph in enumerate(graphs):
        features = getattr(graph, name)
        if features is None and (graph.n_edges if name == "edge_features" else graph.n) == 0:
            continue  # nothing has no features
        width = 0 if features is None else features.shape[1]
        first = (number, width) if first is None else first
        if width == first[1] or (name == "edge_features" and {width, first[1]} == {0, 1}):
            first = (number, max(width, first[1]))
            continue
        raise DataError(
            f"Encoding.fit(graphs): all graphs must have the same number of {name}, but graphs[{first[0]}] has "
            f"{first[1]} and graphs[{number}] has {width}.\nFill in what is missing, or pass {name}=False."
        )
    return 0 if first is None else first[1]


def _mismatch(number: int, name: str, expected: int, width: int) -> DataError:
    return DataError(
        f"Encoding.encode(graphs): graphs[{number}] has {width} {name}, but the graphs of the fit had {expected}.\n"
        f"Give the same features, or fit with {name}=False."
    )


def _seen_labels(graphs: list[Graph], name: str) -> Labels:
    """All labels that occur: a tuple, or one for each of several columns."""
    first: tuple[int, int] | None = None
    parts: list[set[int]] = []
    for number, graph in enumerate(graphs):
        labels = getattr(graph, name)
        if labels is None or not len(labels):
            continue
        width = 1 if labels.ndim == 1 else labels.shape[1]
        if first is None:
            first, parts = (number, width), [set() for _ in range(width)]
        if width != first[1]:
            raise DataError(
                f"Encoding.fit(graphs): all graphs must have the same number of columns of {name}, but "
                f"graphs[{first[0]}] has {first[1]} and graphs[{number}] has {width}.\n"
                f"Name the same attributes of all, or pass {name}=False."
            )
        for part, column in zip(parts, labels.reshape(len(labels), width).T, strict=True):
            part.update(column.unique().tolist())
    found = tuple(tuple(sorted(part)) for part in parts)
    return found[0] if len(found) == 1 else found


def _check_labels(name: str, labels: object) -> None:
    parts = labels if isinstance(labels, tuple) and labels and isinstance(labels[0], tuple) else (labels,)
    for part in parts:
        if not isinstance(part, tuple) or not all(map(_is_label, part)):
            raise OptionError(f"Encoding: {name} must be a tuple of whole numbers of 64 bits, not {labels!r}.")
        if list(part) != sorted(set(part)):
            raise OptionError(f"Encoding: {name} must be sorted, each once, not {labels!r}.")
    if len(parts) > 1 and not all(parts):
        raise OptionError(f"Encoding: each column of {name} must have a label, not {labels!r}.")


def _is_strings(value: object) -> bool:
    return isinstance(value, tuple) and all(isinstance(text, str) for text in value)


def _is_texts(value: object) -> bool:
    """Whether these are labels, ascending, each with a text."""
    if not isinstance(value, tuple) or not all(isinstance(pair, tuple) and len(pair) == 2 for pair in value):
        return False
    numbers = [number for number, _ in value]
    return (
        all(map(_is_label, numbers))
        and all(isinstance(text, str) for _, text in value)
        and numbers == sorted(set(numbers))
    )


def _with_tuples(value: Any) -> Any:
    return tuple(map(_with_tuples, value)) if isinstance(value, list) else value


def _is_label(value: object) -> bool:
    return type(value) is int and -(2**63) <= value < 2**63


def _is_scale(value: object) -> bool:
    if not isinstance(value, tuple) or len(value) != 2 or not all(type(number) in (int, float) for number in value):
        return False
    return all(map(math.isfinite, value)) and value[1] > 0
