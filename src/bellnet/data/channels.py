"""The values of channels: a row for each edge and for each node, and their layout in padded and sparse tensors."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Literal

import torch
from torch import Tensor

from bellnet.data.graph import Graph
from bellnet.errors import DataError
from bellnet.tensors import Padded, Sparse, Support
from bellnet.tensors.padded import zero_padded

if TYPE_CHECKING:
    from bellnet.data.encoding import Encoding

Labels = tuple[int, ...] | tuple[tuple[int, ...], ...]
_NO_LABELS = torch.zeros(0, dtype=torch.int64)


def edge_rows(encoding: "Encoding", graphs: Sequence[Graph], dtype: torch.dtype) -> Tensor:
    """(edges of all graphs, channels of pairs), and the adjacency for each node label with adjacency_in_labels."""
    n_edges = sum(graph.n_edges for graph in graphs)
    columns = []
    if encoding.adjacency != "normalized":
        columns.append(torch.ones(n_edges, 1, dtype=dtype))
    if encoding.adjacency != "plain":
        columns.append(_normalized(graphs).to(dtype).unsqueeze(-1))
    if encoding.edge_features:
        features = [
            torch.ones(graph.n_edges, 1) if graph.edge_features is None else graph.edge_features for graph in graphs
        ]
        columns.append(_feature_rows(encoding, features, "edge", dtype))
    if encoding.edge_labels:
        columns.append(_label_rows(encoding.edge_labels, graphs, "edge_labels", n_edges, dtype))
    if encoding.adjacency_in_labels:
        columns.append(columns[0].expand(-1, n_labels(encoding.node_labels)))
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
        columns.append(_standardized(log_degrees(graphs), encoding.degrees, dtype))
    if encoding.degree_bins:
        columns.append(_bin_weights(graphs, encoding.degree_bins).to(dtype))
    if encoding.size_feature:
        columns.append(_standardized(torch.repeat_interleave(log_sizes(graphs), sizes), encoding.size_feature, dtype))
    return torch.cat(columns, 1)


def label_columns(labels: Labels) -> tuple[tuple[int, ...], ...]:
    """The known labels of each column."""
    if not labels:
        return ()
    return labels if isinstance(labels[0], tuple) else (labels,)


def n_labels(labels: Labels) -> int:
    """The number of known labels of all columns."""
    return sum(map(len, label_columns(labels)))


def width_of(values: Tensor | None) -> int:
    """The number of features, or of columns of labels."""
    if values is None:
        return 0
    return 1 if values.ndim == 1 else values.shape[1]


def common_width(graphs: Sequence[Graph], name: str) -> int:
    """The number of features, or of columns of labels, of all graphs; a `DataError` if they differ.

    Graphs without labels do not count; edges without features may have one, 1, since others have one.
    """
    is_labels = name.endswith("labels")
    first: tuple[int, int] | None = None
    for number, graph in enumerate(graphs):
        values = getattr(graph, name)
        rows = graph.n if name.startswith("node") else graph.n_edges
        if (values is None and (is_labels or not rows)) or (is_labels and not rows):
            continue
        width = width_of(values)
        first = (number, width) if first is None else first
        if width != first[1]:
            if name != "edge_features" or {width, first[1]} != {0, 1}:
                raise DataError(
                    f"Encoding.fit(graphs): all graphs must have the same number of {'columns of ' * is_labels}{name}, "
                    f"but graphs[{first[0]}] has {first[1]} and graphs[{number}] has {width}.\n"
                    f"Pass graphs with the same attributes, or {name}=False."
                )
            first = (number, 1)
    return 0 if first is None else first[1]


def all_labels(graphs: Sequence[Graph], name: str) -> Labels:
    """All labels of some graphs: a tuple, or one for each of several columns."""
    width = common_width(graphs, name)
    known = [
        labels.reshape(-1, width) for graph in graphs if (labels := getattr(graph, name)) is not None and len(labels)
    ]
    found = tuple(tuple(column.unique().tolist()) for column in torch.cat(known).T) if known else ()
    return found[0] if len(found) == 1 else found


def label_indices(known: Labels, graphs: Sequence[Graph], name: str) -> Iterator[tuple[Tensor, Tensor]]:
    """For each column of labels: the index of each label among all known ones, and whether it is known."""
    given = [labels for graph in graphs if (labels := getattr(graph, name)) is not None and len(labels)]
    before = 0
    for column, part in enumerate(label_columns(known)):
        labels = torch.cat([_NO_LABELS, *(one if one.ndim == 1 else one[:, column] for one in given)])
        vocabulary = torch.tensor(part, dtype=torch.int64)
        index = torch.searchsorted(vocabulary, labels).clamp(max=len(vocabulary) - 1)
        yield before + index, vocabulary[index] == labels
        before += len(part)


def _label_rows(known: Labels, graphs: Sequence[Graph], name: str, n_rows: int, dtype: torch.dtype) -> Tensor:
    rows = torch.zeros(n_rows, n_labels(known), dtype=dtype)
    for index, is_known in label_indices(known, graphs, name):
        rows[is_known.nonzero().flatten(), index[is_known]] = 1
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


def log_degrees(graphs: Sequence[Graph]) -> Tensor:
    """log(1 + degree) of each node; the degree is the mean of out-degree and in-degree."""
    return _degrees(graphs).mean(0).log1p()


def log_sizes(graphs: Sequence[Graph]) -> Tensor:
    """log(1 + n) of each graph of n nodes."""
    return torch.tensor([graph.n for graph in graphs], dtype=torch.float64).log1p()


def mean_and_deviation(values: Tensor) -> tuple[float, float]:
    """Mean and standard deviation; the deviation is 1 where all values are equal."""
    if not len(values):
        return 0.0, 1.0
    deviation = float(values.std(correction=0))
    return float(values.mean()), deviation if deviation > 1e-12 else 1.0


def _standardized(column: Tensor, scale: tuple[float, float], dtype: torch.dtype) -> Tensor:
    mean, deviation = scale
    return ((column - mean) / deviation).to(dtype).unsqueeze(-1)


def degree_bins_of(graphs: Sequence[Graph], most: int) -> tuple[float, ...]:
    """All degrees of nodes, or, if these are more than `most`, the finest quantiles with at most `most` values.

    A single degree distinguishes nothing and gives no bins.
    """
    found = _degrees(graphs).mean(0).sort().values
    bins = sorted(set(found.tolist()))
    if len(bins) > most:
        # If most nodes have the same few degrees, many quantiles are equal, and finer ones are needed.
        fine, too_fine = most, len(found)
        while too_fine - fine > 1:
            between = (fine + too_fine) // 2
            fine, too_fine = (between, too_fine) if len(_quantiles(found, between)) <= most else (fine, between)
        bins = _quantiles(found, fine)
    return tuple(bins) if len(bins) > 1 else ()


def _quantiles(ascending: Tensor, count: int) -> list[float]:
    """The different values at `count` equidistant positions, from the first to the last."""
    positions = torch.linspace(0, len(ascending) - 1, count, dtype=torch.float64).round().long()
    return sorted(set(ascending[positions].tolist()))


def _bin_weights(graphs: Sequence[Graph], bins: Sequence[float]) -> Tensor:
    """(nodes, bins): 1 at the degree of a node, or linear weights in log(1 + degree) of the two nearest bins.

    Degrees outside all bins count as the outermost bin.
    """
    positions = torch.tensor(bins, dtype=torch.float64).log1p()
    found = log_degrees(graphs).clamp(positions[0], positions[-1])
    after = torch.searchsorted(positions, found).clamp(min=1)
    before = after - 1
    weight = ((found - positions[before]) / (positions[after] - positions[before])).unsqueeze(-1)
    weights = found.new_zeros(len(found), len(positions))
    return weights.scatter_(1, after.unsqueeze(-1), weight).scatter_(1, before.unsqueeze(-1), 1 - weight)


def _normalized(graphs: Sequence[Graph]) -> Tensor:
    """For each edge 1 / sqrt(out-degree of its source * in-degree of its target)."""
    ends, degrees = _ends(graphs), _degrees(graphs)
    return (degrees[0, ends[0]] * degrees[1, ends[1]]).rsqrt()


def _degrees(graphs: Sequence[Graph]) -> Tensor:
    """(2, nodes): the out-degree and the in-degree of each node of all graphs."""
    total = sum(graph.n for graph in graphs)
    return torch.stack([torch.bincount(ends, minlength=total).double() for ends in _ends(graphs)])


def _ends(graphs: Sequence[Graph]) -> Tensor:
    """The ends of the edges of all graphs, whose nodes are numbered consecutively from graph to graph."""
    starts = torch.tensor([0, *(graph.n for graph in graphs)]).cumsum(0)
    return torch.cat([graph.edge_index + start for graph, start in zip(graphs, starts, strict=False)], 1)


def place_padded(
    graphs: Sequence[Graph],
    n_channels: int,
    *,
    of_edges: Tensor,
    of_nodes: Tensor,
    is_separate: bool,
    device: torch.device | str | None,
) -> Padded | tuple[Padded, Padded]:
    """Rows of channels as a `Padded` over pairs of nodes, or as two, of pairs and of nodes.

    `of_edges` has the first of the `n_channels` channels of each edge, graph by graph. `of_nodes` is added to the last
    channels of the diagonal, unless nodes have a tensor of their own.
    """
    sizes = torch.tensor([graph.n for graph in graphs])
    longest = int(sizes.max())
    values = of_edges.new_zeros(len(graphs), longest, longest, n_channels)
    edges, diagonal = _edges_and_diagonal(graphs)
    values[..., : of_edges.shape[1]][tuple(edges)] = of_edges
    if is_separate:
        nodes = values.new_zeros(*values.shape[:2], of_nodes.shape[1])
        nodes[tuple(diagonal[:2])] = of_nodes
        pairs = zero_padded(values.to(device), sizes, ("n", "n"))
        return pairs, zero_padded(nodes.to(device), pairs, ("n",))
    values[..., n_channels - of_nodes.shape[1] :][tuple(diagonal)] += of_nodes
    return zero_padded(values.to(device), sizes, ("n", "n"))


def place_sparse(
    graphs: Sequence[Graph],
    n_channels: int,
    *,
    of_edges: Tensor,
    of_nodes: Tensor,
    is_separate: bool,
    device: torch.device | str | None,
) -> Sparse | tuple[Sparse, Sparse]:
    """The same as a `Sparse` that stores edges and diagonal, or as two, of edges and of nodes."""
    edges, diagonal = _edges_and_diagonal(graphs)
    tuples = edges if is_separate else torch.cat([edges, diagonal], 1)
    sizes = torch.tensor([graph.n for graph in graphs])
    before = sizes.square().cumsum(0) - sizes.square()
    owner, source, target = tuples
    codes, rows = (before[owner] + source * sizes[owner] + target).unique(return_inverse=True)
    index = tuples.new_empty(3, len(codes))
    index[:, rows] = tuples
    values = of_edges.new_zeros(len(codes), n_channels)
    values[rows[: edges.shape[1]], : of_edges.shape[1]] = of_edges
    if not is_separate:
        values[rows[edges.shape[1] :], n_channels - of_nodes.shape[1] :] += of_nodes
    pairs = Sparse(index.to(device), values.to(device), sizes.to(device), is_sorted=True)
    return (
        (pairs, Sparse.on(Support.every_node(pairs.support.counts, "n"), of_nodes.to(device))) if is_separate else pairs
    )


def _edges_and_diagonal(graphs: Sequence[Graph]) -> tuple[Tensor, Tensor]:
    """Graph, first and second node of each edge, and of (v, v) for each node v, graph by graph."""
    edge_owner = torch.repeat_interleave(torch.tensor([graph.n_edges for graph in graphs]))
    node_owner = torch.repeat_interleave(torch.tensor([graph.n for graph in graphs]))
    node = torch.cat([torch.arange(graph.n) for graph in graphs])
    ends = torch.cat([graph.edge_index for graph in graphs], 1)
    return torch.cat([edge_owner.unsqueeze(0), ends]), torch.stack([node_owner, node, node])
