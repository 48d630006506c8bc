"""How graphs become channels.

An `Encoding` is fitted once, to the graphs that are learned from, and then turns any graphs into a `Padded` or a
`Sparse` with the same channels in the same order: the adjacency, edge features, edge labels (one channel for each label
seen when it was fitted), and on the diagonal, or in a tensor of their own, node labels, likewise, node features,
degrees and the size of the graph. It remembers by which names features and labels were read, and reads other graphs by
the same.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal, overload

import torch

from bellnet.data import as_fitted, encoding_json
from bellnet.data.columns import NO_COLUMNS, ROLES, Columns, part_names
from bellnet.data.convert import read, read_by
from bellnet.data.degrees import knots_of, log_degrees, log_sizes, scale_of
from bellnet.data.encoding_fields import ADJACENCIES, check_fields, is_number_of_knots
from bellnet.data.graph import Graph
from bellnet.data.in_common import common_width, seen_labels
from bellnet.data.kinds import Given, Names
from bellnet.data.placing import place_padded, place_sparse
from bellnet.data.rows import Labels, apart, count, edge_rows, node_rows
from bellnet.data.select import FIELDS, select
from bellnet.errors import DataError, OptionError
from bellnet.tensors import Padded, Sparse
from bellnet.tensors.node_counts import check_room_for

LAYOUTS = ("padded", "sparse")
NODE_CHANNELS = ("diagonal", "separate")
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
        size_feature: None, or the mean and standard deviation of log(1 + n) over all graphs of n nodes of the fit: then
            there is a channel with log(1 + n), less the mean and divided by the deviation, on the whole diagonal.
        degree_bins: Ascending degrees, at least two or none, each of which becomes a channel: 1 on the diagonal where
            a node has that degree. A degree between two knots is shared by them, on a straight line of log(1 + degree);
            one outside of all belongs to the outermost.
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

    def __post_init__(self) -> None:
        check_fields(self)

    @classmethod
    def fit(
        cls,
        graphs: Iterable[object],
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
        """The encoding of everything that these graphs have.

        Args:
            graphs: Graphs of any kind that `as_graph` takes.
            adjacency: See `Encoding`.
            edge_features: Whether edge features become channels.
            node_features: Whether node features become channels.
            unknown: See `Encoding`.
            adjacency_in_labels: See `Encoding`.
            degrees: Whether the degrees of nodes become a channel.
            node_attrs: The name or names of the attributes that are node features, see `as_graph`.
            edge_attrs: Likewise of the edge features.
            node_labels: Likewise of the node labels; False for no channels of node labels.
            edge_labels: Likewise of the edge labels.
            size_feature: Whether the number of nodes of a graph becomes a channel.
            degree_bins: 0, or how many degrees, at least two, become channels of their own: all that occur if they
                are no more than so many, else quantiles.

        >>> triangle = Graph(3, [[0, 1, 1, 2, 2, 0], [1, 0, 2, 1, 0, 2]], node_labels=torch.tensor([6, 6, 8]))
        >>> Encoding.fit([triangle]).names
        ('adjacency', 'label 6', 'label 8')
        """
        names = Names.of(
            node_attrs=node_attrs,
            edge_attrs=edge_attrs,
            node_labels=None if isinstance(node_labels, bool) else node_labels,
            edge_labels=None if isinstance(edge_labels, bool) else edge_labels,
        )
        if not is_number_of_knots(degree_bins):
            raise OptionError(
                f"Encoding.fit(graphs): degree_bins must be 0 or a whole number from 2 up, not {degree_bins!r}."
            )
        known = read("Encoding.fit(graphs)", graphs, names)
        if not known:
            raise DataError("Encoding.fit(graphs): there is no graph.\nGive at least one graph to learn the channels.")
        chosen = {
            "node_attrs": node_features,
            "edge_attrs": edge_features,
            "node_labels": node_labels is not False,
            "edge_labels": edge_labels is not False,
        }
        found: dict[str, Any] = {
            "edge_features": common_width(known, "edge_features") if edge_features else 0,
            "node_features": common_width(known, "node_features") if node_features else 0,
            "node_labels": seen_labels(known, "node_labels") if chosen["node_labels"] else (),
            "edge_labels": seen_labels(known, "edge_labels") if chosen["edge_labels"] else (),
        }
        columns = Columns.common(graph.columns for graph in known)
        numbers = {number for name in ("node_labels", "edge_labels") for part in apart(found[name]) for number in part}
        return cls(
            adjacency=adjacency,
            unknown=unknown,
            adjacency_in_labels=adjacency_in_labels,
            degrees=scale_of(log_degrees(known)) if degrees else None,
            size_feature=scale_of(log_sizes(known)) if size_feature else None,
            degree_bins=knots_of(known, int(degree_bins)) if degree_bins else (),
            columns=Columns(
                **{role: getattr(columns, role) if is_used else () for role, is_used in chosen.items()},
                texts=tuple(pair for pair in columns.texts if pair[0] in numbers),
            ),
            **found,
        )

    def read(self, graphs: Iterable[object]) -> list[Graph]:
        """Graphs of any kind that `as_graph` takes, with those attributes that this encoding uses, and no others.

        Attributes are read by the names of the fit. An encoding without names (fitted to `Graph`s that were made by
        hand) reads the usual ones.
        """
        columns, used = self.columns, self._used
        names = {role: getattr(columns, role) for role in ROLES}
        names |= {} if used["edge_labels"] else {"edge_labels": ()}
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
        edge = range(self.edge_features) if columns.edge_attrs is None else part_names(columns.edge_attrs)
        node = range(self.node_features) if columns.node_attrs is None else part_names(columns.node_attrs)
        return (
            *ADJACENCIES[self.adjacency],
            *(f"edge feature {name}" for name in edge),
            *(f"edge label {name}" for name in self._label_names(self.edge_labels, columns.edge_labels)),
            *(f"label {name}" for name in self._label_names(self.node_labels, columns.node_labels)),
            *(f"node feature {name}" for name in node),
            *(("degree",) if self.degrees else ()),
            *(f"degree {int(knot) if knot == int(knot) else knot}" for knot in self.degree_bins),
            *(("size",) if self.size_feature else ()),
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
        of_degrees = bool(self.degrees) + len(self.degree_bins)
        return count(self.node_labels) + self.node_features + of_degrees + bool(self.size_feature)

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
            node_channels: Where the channels of nodes are: on the "diagonal", or "separate". Then there are two tensors
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
            as_fitted.check_usable(self, graph, number)
        is_apart = node_channels == "separate"
        n_channels = self.n_of_pairs if is_apart else self.channels
        if layout == "padded":
            longest = max(graph.n for graph in known)
            check_room_for("Encoding.encode(graphs)", (len(known), longest, longest, n_channels), dtype, max_gigabytes)
        place = place_padded if layout == "padded" else place_sparse
        return place(
            known,
            n_channels,
            of_edges=edge_rows(self, known, dtype),
            of_nodes=node_rows(self, known, dtype),
            is_apart=is_apart,
            device=device,
        )

    def check_node_channels(self, call: str, node_channels: object) -> None:
        """Refuse a place for the channels of nodes that is none, or that they cannot stand in."""
        if not isinstance(node_channels, str) or node_channels not in NODE_CHANNELS:
            raise OptionError(f"{call}: node_channels must be 'diagonal' or 'separate', not {node_channels!r}.")
        if node_channels == "diagonal":
            return
        if self.adjacency_in_labels:
            raise OptionError(
                f"{call}: adjacency_in_labels adds values of pairs to channels of nodes, which cannot be with "
                "node_channels='separate'; leave out one of them."
            )
        if not self.n_of_nodes:
            raise OptionError(
                f"{call}: node_channels='separate' needs channels of nodes, but these nodes have "
                "neither labels nor features.\nLeave it out, or add degrees=True or size_feature=True."
            )

    def feature_name(self, owner: Literal["node", "edge"], column: int) -> str:
        """A feature of nodes or edges as messages name it: by its attribute if that is known, else by its column."""
        names = self.columns.node_attrs if owner == "node" else self.columns.edge_attrs
        return f"{owner} feature {column if names is None else repr(part_names(names)[column])}"

    def mismatch(self, graph: Graph) -> tuple[str, str] | None:
        """Which field of a graph is not as in the graphs of the fit, and how it differs; None if all are.

        This is stricter than `encode`, which passes over features that the fit had not.
        """
        return as_fitted.mismatch(self, graph)

    def to_json(self) -> str:
        """The encoding as JSON text, which `from_json` reads."""
        return encoding_json.to_json(self)

    @classmethod
    def from_json(cls, text: str) -> "Encoding":
        """The encoding that `to_json` wrote."""
        return cls(**encoding_json.fields_from_json(text, cls))
