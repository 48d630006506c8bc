"""What an encoding says of every edge and of every node: a row of channels for each, wherever those then stand."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Literal

import torch
from torch import Tensor

from bellnet.data.degrees import log_degrees, log_sizes, normalized, shares_of_knots
from bellnet.data.graph import Graph
from bellnet.errors import DataError

if TYPE_CHECKING:
    from bellnet.data.encode import Encoding

Labels = tuple[int, ...] | tuple[tuple[int, ...], ...]
_NO_LABELS = torch.zeros(0, dtype=torch.int64)


def edge_rows(encoding: "Encoding", graphs: Sequence[Graph], dtype: torch.dtype) -> Tensor:
    """(edges of all graphs, channels of pairs); with the adjacency once more for each label of nodes, if asked."""
    n_edges = sum(graph.n_edges for graph in graphs)
    columns = []
    if encoding.adjacency != "normalized":
        columns.append(torch.ones(n_edges, 1, dtype=dtype))
    if encoding.adjacency != "plain":
        columns.append(normalized(graphs).to(dtype).unsqueeze(-1))
    if encoding.edge_features:
        columns.append(_feature_rows(encoding, [_edge_features(graph) for graph in graphs], "edge", dtype))
    if encoding.edge_labels:
        columns.append(_label_rows(encoding.edge_labels, graphs, "edge_labels", n_edges, dtype))
    if encoding.adjacency_in_labels:
        columns.append(columns[0].expand(-1, count(encoding.node_labels)))
    return torch.cat(columns, 1)


def node_rows(encoding: "Encoding", graphs: Sequence[Graph], dtype: torch.dtype) -> Tensor:
    """(nodes of all graphs, channels of nodes)."""
    sizes = torch.tensor([graph.n for graph in graphs])
    n_nodes = int(sizes.sum())
    columns = [torch.zeros(n_nodes, 0, dtype=dtype)]
    if encoding.node_labels:
        columns.append(_label_rows(encoding.node_labels, graphs, "node_labels", n_nodes, dtype))
    if encoding.node_features:
        columns.append(_feature_rows(encoding, [graph.node_features for graph in graphs], "node", dtype))
    if encoding.degrees:
        columns.append(_scaled(log_degrees(graphs), encoding.degrees, dtype))
    if encoding.degree_bins:
        columns.append(shares_of_knots(graphs, encoding.degree_bins).to(dtype))
    if encoding.size_feature:
        columns.append(_scaled(torch.repeat_interleave(log_sizes(graphs), sizes), encoding.size_feature, dtype))
    return torch.cat(columns, 1)


def label_places(known: Labels, graphs: Sequence[Graph], name: str) -> Iterator[tuple[Tensor, Tensor]]:
    """For every column of labels: the place of each label among all known ones, and whether it is one of them."""
    given = [labels for graph in graphs if (labels := getattr(graph, name)) is not None and len(labels)]
    before = 0
    for column, part in enumerate(apart(known)):
        labels = torch.cat([_NO_LABELS, *(one if one.ndim == 1 else one[:, column] for one in given)])
        vocabulary = torch.tensor(part, dtype=torch.int64)
        place = torch.searchsorted(vocabulary, labels).clamp(max=len(vocabulary) - 1)
        yield before + place, vocabulary[place] == labels
        before += len(part)


def apart(labels: Labels) -> tuple[tuple[int, ...], ...]:
    """The known labels of each column."""
    if not labels:
        return ()
    return labels if isinstance(labels[0], tuple) else (labels,)


def count(labels: Labels) -> int:
    """How many labels are known, of all columns together."""
    return sum(map(len, apart(labels)))


def _label_rows(known: Labels, graphs: Sequence[Graph], name: str, n_rows: int, dtype: torch.dtype) -> Tensor:
    rows = torch.zeros(n_rows, count(known), dtype=dtype)
    for place, is_known in label_places(known, graphs, name):
        rows[is_known.nonzero().flatten(), place[is_known]] = 1
    return rows


def _feature_rows(
    encoding: "Encoding", features: Sequence[Tensor | None], owner: Literal["node", "edge"], dtype: torch.dtype
) -> Tensor:
    """The features of all nodes or edges of some graphs; a `DataError` if one overflows in the dtype."""
    nothing = torch.zeros(0, getattr(encoding, f"{owner}_features"), dtype=dtype)
    rows = torch.cat([nothing, *(part.to(dtype) for part in features if part is not None and len(part))])
    if bool(rows.isfinite().all()):
        return rows
    for number, part in enumerate(features):
        if part is not None and bool((beyond := part.to(dtype).isinf()).any()):
            row, column = beyond.nonzero()[0].tolist()
            raise DataError(
                f"Encoding.encode(graphs): {encoding.feature_name(owner, column)} of {owner} {row} of "
                f"graphs[{number}] is {part[row, column].item():g}, which does not fit {dtype}.\n"
                "Divide the feature by a constant in all graphs, or encode with dtype=torch.float64."
            )
    return rows


def _scaled(column: Tensor, scale: tuple[float, float], dtype: torch.dtype) -> Tensor:
    mean, deviation = scale
    return ((column - mean) / deviation).to(dtype).unsqueeze(-1)


def _edge_features(graph: Graph) -> Tensor:
    return torch.ones(graph.n_edges, 1) if graph.edge_features is None else graph.edge_features
