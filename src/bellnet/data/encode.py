"""How graphs become channels.

An `Encoding` is fitted once, to the graphs that are learned from, and then turns any graphs into a `Padded` or a
`Sparse` with the same channels in the same order: the adjacency, edge features, and on the diagonal node labels (one
channel for each label seen when it was fitted), node features and degrees.
"""

import json
import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal, overload

import torch
from torch import Tensor

from bellnet.data.convert import as_graphs
from bellnet.data.degrees import log_degrees, normalized, scale_of_degrees
from bellnet.data.graph import Graph
from bellnet.errors import DataError, OptionError
from bellnet.tensors import Padded, Sparse

ADJACENCIES = {
    "plain": ("adjacency",),
    "normalized": ("normalized adjacency",),
    "both": ("adjacency", "normalized adjacency"),
}
UNKNOWN = ("zero", "error")
LAYOUTS = ("padded", "sparse")
FORMAT = "bellnet encoding"
VERSION = 2
_NO_LABELS = torch.zeros(0, dtype=torch.int64)


@dataclass(frozen=True)
class Encoding:
    """Which channels a graph gets, as a value that can be compared, hashed and stored.

    Args:
        adjacency: "plain" for a channel that is one where there is an edge, "normalized" for D^-1/2 A D^-1/2 (in a
            directed graph the left D counts outgoing, the right one incoming edges), "both" for both.
        edge_features: The number of features of an edge, each of which becomes a channel. Edges without features
            count as one feature, 1.
        node_labels: The known node labels, each of which becomes a channel: 1 on the diagonal where a node has it.
        node_features: The number of features of a node, each of which becomes a channel, on the diagonal.
        unknown: What becomes of a node whose label is not known: "zero" leaves all label channels 0 there, "error"
            refuses the graph.
        adjacency_in_labels: Whether the (first) adjacency channel is added to every label channel, as the paper's
            authors did.
        degrees: None, or the mean and standard deviation of log(1 + degree) over all nodes of the graphs of the fit:
            then there is a channel with log(1 + degree), less the mean and divided by the deviation, on the diagonal.
            In a directed graph the degree is the mean of outgoing and incoming edges.
    """

    adjacency: str = "plain"
    edge_features: int = 0
    node_labels: tuple[int, ...] = ()
    node_features: int = 0
    unknown: str = "zero"
    adjacency_in_labels: bool = False
    degrees: tuple[float, float] | None = None

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
        labels: object = self.node_labels
        if not isinstance(labels, tuple) or not all(map(_is_label, labels)):
            raise OptionError(f"Encoding: node_labels must be a tuple of whole numbers of 64 bits, not {labels!r}.")
        if list(labels) != sorted(set(labels)):
            raise OptionError(f"Encoding: node_labels must be sorted, each once, not {labels!r}.")
        if type(self.adjacency_in_labels) is not bool:
            raise OptionError(f"Encoding: adjacency_in_labels must be True or False, not {self.adjacency_in_labels!r}.")
        if self.degrees is not None and not _is_scale(self.degrees):
            raise OptionError(
                f"Encoding: degrees must be None or a tuple of a mean and a positive deviation, not {self.degrees!r}."
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

        >>> triangle = Graph(3, [[0, 1, 1, 2, 2, 0], [1, 0, 2, 1, 0, 2]], node_labels=torch.tensor([6, 6, 8]))
        >>> Encoding.fit([triangle]).names
        ('adjacency', 'label 6', 'label 8')
        """
        known = as_graphs(graphs)
        if not known:
            raise DataError("Encoding.fit(graphs): there is no graph.\nGive at least one graph to learn the channels.")
        seen = [graph.node_labels for graph in known if graph.node_labels is not None]
        return cls(
            adjacency=adjacency,
            edge_features=_common_width(known, "edge_features") if edge_features else 0,
            node_labels=tuple(sorted(set(torch.cat(seen).tolist()))) if seen and node_labels else (),
            node_features=_common_width(known, "node_features") if node_features else 0,
            unknown=unknown,
            adjacency_in_labels=adjacency_in_labels,
            degrees=scale_of_degrees(known) if degrees else None,
        )

    @property
    def names(self) -> tuple[str, ...]:
        """What every channel holds, in order."""
        return (
            *ADJACENCIES[self.adjacency],
            *(f"edge feature {number}" for number in range(self.edge_features)),
            *(f"label {label}" for label in self.node_labels),
            *(f"node feature {number}" for number in range(self.node_features)),
            *(("degree",) if self.degrees else ()),
        )

    @property
    def channels(self) -> int:
        """The number of channels."""
        # Not the length of the names: a number from a file can be larger than any list.
        return self.n_of_pairs + len(self.node_labels) + self.node_features + bool(self.degrees)

    @property
    def n_of_pairs(self) -> int:
        """The number of channels that say something of pairs of nodes; they come first, those of nodes follow."""
        return len(ADJACENCIES[self.adjacency]) + self.edge_features

    @overload
    def encode(
        self,
        graphs: Iterable[object],
        *,
        layout: Literal["padded"] = "padded",
        dtype: torch.dtype = torch.float32,
        device: torch.device | str | None = None,
    ) -> Padded: ...
    @overload
    def encode(
        self,
        graphs: Iterable[object],
        *,
        layout: Literal["sparse"],
        dtype: torch.dtype = torch.float32,
        device: torch.device | str | None = None,
    ) -> Sparse: ...
    @overload
    def encode(
        self,
        graphs: Iterable[object],
        *,
        layout: str,
        dtype: torch.dtype = torch.float32,
        device: torch.device | str | None = None,
    ) -> Padded | Sparse: ...
    def encode(
        self,
        graphs: Iterable[object],
        *,
        layout: str = "padded",
        dtype: torch.dtype = torch.float32,
        device: torch.device | str | None = None,
    ) -> Padded | Sparse:
        """The graphs as one tensor.

        Args:
            graphs: Graphs of any kind that `as_graph` takes.
            layout: "padded" for a `Padded` of shape (graphs, n, n, channels), n being the size of the largest;
                "sparse" for a `Sparse` that lists the edges and, for every node v, (v, v).
            dtype: The type of the values.
            device: Where the values are.
        """
        if layout not in LAYOUTS:
            raise OptionError(f"Encoding.encode(graphs): layout must be 'padded' or 'sparse', not {layout!r}.")
        known = as_graphs(graphs)
        if not known:
            raise DataError("Encoding.encode(graphs): there is no graph.\nLeave out empty batches.")
        for number, graph in enumerate(known):
            self._check(graph, number)
        return (self._padded if layout == "padded" else self._sparse)(known, dtype, device)

    def _padded(self, graphs: list[Graph], dtype: torch.dtype, device: torch.device | str | None) -> Padded:
        longest = max(graph.n for graph in graphs)
        values = torch.zeros(len(graphs), longest, longest, self.channels, dtype=dtype)
        edges, nodes = _edges_and_diagonal(graphs)
        self._write_edges(values, graphs, tuple(edges))
        self._write_nodes(values, graphs, tuple(nodes))
        return Padded.clean(values.to(device), torch.tensor([graph.n for graph in graphs]), ("n", "n"))

    def _sparse(self, graphs: list[Graph], dtype: torch.dtype, device: torch.device | str | None) -> Sparse:
        edges, nodes = _edges_and_diagonal(graphs)
        tuples, sizes = torch.cat([edges, nodes], 1), torch.tensor([graph.n for graph in graphs])
        before = sizes.square().cumsum(0) - sizes.square()
        owner, source, target = tuples
        codes, rows = (before[owner] + source * sizes[owner] + target).unique(return_inverse=True)
        index = tuples.new_empty(3, len(codes))
        index[:, rows] = tuples
        values = torch.zeros(len(codes), self.channels, dtype=dtype)
        self._write_edges(values, graphs, (rows[: edges.shape[1]],))
        self._write_nodes(values, graphs, (rows[edges.shape[1] :],))
        return Sparse(index.to(device), values.to(device), sizes.to(device), is_sorted=True)

    def _write_edges(self, values: Tensor, graphs: list[Graph], here: tuple[Tensor, ...]) -> None:
        columns = []
        if self.adjacency != "normalized":
            columns.append(torch.ones(len(here[0]), 1, dtype=values.dtype))
        if self.adjacency != "plain":
            columns.append(normalized(graphs).to(values.dtype).unsqueeze(-1))
        if self.edge_features:
            features = [_edge_features(graph) for graph in graphs if graph.n_edges]
            nothing = torch.zeros(0, self.edge_features, dtype=values.dtype)
            columns.append(torch.cat([nothing, *(part.to(values.dtype) for part in features)]))
        if self.adjacency_in_labels:
            columns.append(columns[0].expand(-1, len(self.node_labels)))
        row = torch.cat(columns, 1)
        values[..., : row.shape[1]][here] = row

    def _write_nodes(self, values: Tensor, graphs: list[Graph], here: tuple[Tensor, ...]) -> None:
        first = self.n_of_pairs
        if self.node_labels:
            place, known = self._places(graphs)
            values[(*(axis[known] for axis in here), first + place[known])] += 1
        if self.node_features:
            features = [graph.node_features for graph in graphs if graph.node_features is not None and graph.n]
            nothing = torch.zeros(0, self.node_features, dtype=values.dtype)
            columns = torch.cat([nothing, *(part.to(values.dtype) for part in features)])
            after_labels = first + len(self.node_labels)
            values[..., after_labels : after_labels + self.node_features][here] = columns
        if self.degrees:
            mean, deviation = self.degrees
            values[..., -1][here] = ((log_degrees(graphs) - mean) / deviation).to(values.dtype)

    def _places(self, graphs: list[Graph]) -> tuple[Tensor, Tensor]:
        """For every node the place of its label among the known ones, and whether it is one of them."""
        labels = torch.cat([_NO_LABELS, *(graph.node_labels for graph in graphs if graph.node_labels is not None)])
        vocabulary = torch.tensor(self.node_labels)
        place = torch.searchsorted(vocabulary, labels).clamp(max=len(vocabulary) - 1)
        return place, vocabulary[place] == labels

    def _check(self, graph: Graph, number: int) -> None:
        width = 0 if graph.edge_features is None else graph.edge_features.shape[1]
        weighs_one = graph.edge_features is None and self.edge_features == 1
        if self.edge_features and width != self.edge_features and not weighs_one and graph.n_edges:
            raise _mismatch(number, "edge_features", self.edge_features, width)
        width = 0 if graph.node_features is None else graph.node_features.shape[1]
        if self.node_features and width != self.node_features and graph.n:
            raise _mismatch(number, "node_features", self.node_features, width)
        if not self.node_labels or not graph.n:
            return
        if graph.node_labels is None:
            raise DataError(
                f"Encoding.encode(graphs): graphs[{number}] has no node_labels, but the graphs of the fit had.\n"
                "Give every graph labels, or fit with node_labels=False."
            )
        if self.unknown == "error":
            known = self._places([graph])[1]
            if not bool(known.all()):
                node = int(known.logical_not().nonzero()[0])
                raise DataError(
                    f"Encoding.encode(graphs): node {node} of graphs[{number}] has label "
                    f"{int(graph.node_labels[node])}, which no graph of the fit had.\n"
                    f"Known are {', '.join(map(str, self.node_labels))}. With unknown='zero' it gets no label."
                )

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
        if (version := stored.pop("version", None)) != VERSION:
            raise DataError(
                f"Encoding.from_json(text): this is version {version!r}, but here only version {VERSION} can be read.\n"
                "Update bellnet, or write it again."
            )
        if stored.keys() != (expected := {field.name for field in fields(cls)}):
            raise DataError(
                f"Encoding.from_json(text): expected the fields {', '.join(sorted(expected))}; came "
                f"{', '.join(sorted(stored)) or 'none'}."
            )
        given: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value for name, value in stored.items()
        }
        return cls(**given)


def _edges_and_diagonal(graphs: list[Graph]) -> tuple[Tensor, Tensor]:
    """Graph, first and second node of every edge, and of (v, v) for every node v, one graph after the other."""
    edge_owner = torch.repeat_interleave(torch.tensor([graph.n_edges for graph in graphs]))
    node_owner = torch.repeat_interleave(torch.tensor([graph.n for graph in graphs]))
    node = torch.cat([torch.arange(graph.n) for graph in graphs])
    ends = torch.cat([graph.edge_index for graph in graphs], 1)
    return torch.cat([edge_owner.unsqueeze(0), ends]), torch.stack([node_owner, node, node])


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


def _edge_features(graph: Graph) -> Tensor:
    return torch.ones(graph.n_edges, 1) if graph.edge_features is None else graph.edge_features


def _is_label(value: object) -> bool:
    return type(value) is int and -(2**63) <= value < 2**63


def _is_scale(value: object) -> bool:
    if not isinstance(value, tuple) or len(value) != 2 or not all(type(number) in (int, float) for number in value):
        return False
    return all(map(math.isfinite, value)) and value[1] > 0
