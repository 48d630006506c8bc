"""Where rows of channels stand: those of edges and nodes, put into tensors over pairs of nodes, and over nodes."""

from collections.abc import Sequence

import torch
from torch import Tensor

from bellnet.data.graph import Graph
from bellnet.tensors import Padded, Sparse, Support
from bellnet.tensors.padded import zero_padded


def place_padded(
    graphs: Sequence[Graph],
    n_channels: int,
    *,
    of_edges: Tensor,
    of_nodes: Tensor,
    is_apart: bool,
    device: torch.device | str | None,
) -> Padded | tuple[Padded, Padded]:
    """Rows in a `Padded` over pairs of nodes, or in two.

    Args:
        graphs: The graphs.
        n_channels: How many channels pairs have.
        of_edges: A row for each edge, those of the first graph first; it goes into the first channels.
        of_nodes: A row for each node likewise; it is added to the last channels of the diagonal.
        is_apart: Whether nodes have a tensor of their own instead.
        device: Where the result is.
    """
    sizes = torch.tensor([graph.n for graph in graphs])
    longest = int(sizes.max())
    values = of_edges.new_zeros(len(graphs), longest, longest, n_channels)
    edges, diagonal = _edges_and_diagonal(graphs)
    _write(values, tuple(edges), of_edges)
    if not is_apart:
        _add_last(values, tuple(diagonal), of_nodes)
    pairs = zero_padded(values.to(device), sizes, ("n", "n"))
    if not is_apart:
        return pairs
    nodes = values.new_zeros(*values.shape[:2], of_nodes.shape[1])
    _write(nodes, tuple(diagonal[:2]), of_nodes)
    return pairs, zero_padded(nodes.to(device), pairs, ("n",))


def place_sparse(
    graphs: Sequence[Graph],
    n_channels: int,
    *,
    of_edges: Tensor,
    of_nodes: Tensor,
    is_apart: bool,
    device: torch.device | str | None,
) -> Sparse | tuple[Sparse, Sparse]:
    """The same in a `Sparse` that lists edges and diagonal, or in two, of edges and of nodes."""
    edges, diagonal = _edges_and_diagonal(graphs)
    tuples = edges if is_apart else torch.cat([edges, diagonal], 1)
    sizes = torch.tensor([graph.n for graph in graphs])
    before = sizes.square().cumsum(0) - sizes.square()
    owner, source, target = tuples
    codes, rows = (before[owner] + source * sizes[owner] + target).unique(return_inverse=True)
    index = tuples.new_empty(3, len(codes))
    index[:, rows] = tuples
    values = of_edges.new_zeros(len(codes), n_channels)
    _write(values, (rows[: edges.shape[1]],), of_edges)
    if not is_apart:
        _add_last(values, (rows[edges.shape[1] :],), of_nodes)
    pairs = Sparse(index.to(device), values.to(device), sizes.to(device), is_sorted=True)
    if not is_apart:
        return pairs
    return pairs, Sparse.on(Support.every_node(pairs.support.counts, "n"), of_nodes.to(device))


def _edges_and_diagonal(graphs: Sequence[Graph]) -> tuple[Tensor, Tensor]:
    """Graph, first and second node of every edge, and of (v, v) for every node v, one graph after the other."""
    edge_owner = torch.repeat_interleave(torch.tensor([graph.n_edges for graph in graphs]))
    node_owner = torch.repeat_interleave(torch.tensor([graph.n for graph in graphs]))
    node = torch.cat([torch.arange(graph.n) for graph in graphs])
    ends = torch.cat([graph.edge_index for graph in graphs], 1)
    return torch.cat([edge_owner.unsqueeze(0), ends]), torch.stack([node_owner, node, node])


def _write(values: Tensor, here: tuple[Tensor, ...], rows: Tensor) -> None:
    """Put rows into the first channels."""
    values[..., : rows.shape[1]][here] = rows


def _add_last(values: Tensor, here: tuple[Tensor, ...], rows: Tensor) -> None:
    """Add rows to the last channels, of places that are different from each other."""
    values[..., values.shape[-1] - rows.shape[1] :][here] += rows
