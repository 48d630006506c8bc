"""A graph as the state of the network: adjacency and edge features on pairs of nodes, node features on the diagonal."""

from collections.abc import Sequence
from typing import Protocol

import torch
from torch import Tensor

from bellnet.errors import DataError
from bellnet.nn.message_passing.adjacency import Adjacency
from bellnet.nn.message_passing.channels import Channels
from bellnet.tensors import Padded


class Graphs(Protocol):
    """One graph or several, as PyTorch Geometric's `Data` and `Batch` hold them.

    Edges go from `edge_index[0]` to `edge_index[1]`. Optional are `edge_attr` (edges, channels), `edge_weight`
    (edges), and `batch` and `num_graphs`, which say which node belongs to which graph.
    """

    x: Tensor | None
    edge_index: Tensor | None


def prepare(graphs: Graphs, adjacencies: Sequence[Adjacency], channels: Channels, like: Tensor) -> Padded:
    """The state (batch, n, n, channels): its adjacency matrices, its edge features, node features on the diagonal.

    Args:
        graphs: The graphs.
        adjacencies: One for each adjacency channel.
        channels: What the state has to hold.
        like: A tensor with the dtype and the device that the network has.
    """
    x, edge_index = graphs.x, graphs.edge_index
    edge_attr, edge_weight = (getattr(graphs, name, None) for name in ("edge_attr", "edge_weight"))
    if x is None or edge_index is None:
        raise DataError(f"prepare(graphs): {_missing(x)} is missing, and the network reads it.")
    x = x.to(like)
    graph = _graph_of_nodes(graphs, x)
    n_graphs = int(getattr(graphs, "num_graphs", None) or 1)
    sizes = torch.bincount(graph, minlength=n_graphs)
    node = _number_in_graph(graph, sizes)
    source, target = edge_index.to(like.device)
    if problem := _mistake(x, source, target, graph, edge_attr, channels):
        raise DataError(f"prepare(graphs): {problem}")
    longest = int(sizes.max())
    # Row u, column v: what the target u of an edge hears of its source v.
    place = graph[target], node[target], node[source]
    empty = x.new_zeros(len(sizes), longest, longest)
    counts = empty.index_put(place, x.new_ones(()), accumulate=True)
    weights = None
    if edge_weight is not None:
        weights = empty.index_put(place, edge_weight.to(like).flatten(), accumulate=True)
    _refuse_parallel(counts, weights, adjacencies, channels)
    is_node = torch.arange(longest, device=like.device) < sizes.unsqueeze(-1)
    parts = [adjacency.matrix(counts, weights, is_node).unsqueeze(-1) for adjacency in adjacencies]
    if channels.edge:
        assert edge_attr is not None
        parts.append(x.new_zeros(*empty.shape, channels.edge).index_put(place, edge_attr.to(like)))
    parts.append(x.new_zeros(*empty.shape, channels.node).index_put((graph, node, node), x))
    return Padded.clean(torch.cat(parts, -1), sizes, ("n", "n"))


def _missing(x: Tensor | None) -> str:
    return "x, the features of the nodes," if x is None else "edge_index, the edges,"


def _graph_of_nodes(graphs: Graphs, x: Tensor) -> Tensor:
    batch = getattr(graphs, "batch", None)
    return torch.zeros(len(x), dtype=torch.int64, device=x.device) if batch is None else batch.to(x.device)


def _number_in_graph(graph: Tensor, sizes: Tensor) -> Tensor:
    """The place of every node among the nodes of its graph."""
    order = graph.argsort(stable=True)
    first = sizes.cumsum(0) - sizes
    places = torch.arange(len(graph), device=graph.device) - first[graph[order]]
    return torch.empty_like(places).index_put((order,), places)


def _mistake(
    x: Tensor, source: Tensor, target: Tensor, graph: Tensor, edge_attr: Tensor | None, channels: Channels
) -> str | None:
    """What is wrong with the graphs, if anything."""
    if x.shape[1:] != (channels.node,):
        return f"x must have shape (nodes, {channels.node}), but has {tuple(x.shape)}."
    if not torch.equal(graph[source], graph[target]):
        return "an edge joins nodes of two graphs.\nbatch must give both ends of every edge the same graph."
    if channels.edge and (edge_attr is None or edge_attr.shape[1:] != (channels.edge,)):
        came = "there is none" if edge_attr is None else f"has {tuple(edge_attr.shape)}"
        return f"edge_attr must have shape (edges, {channels.edge}), but {came}."
    return None


def _refuse_parallel(
    counts: Tensor, weights: Tensor | None, adjacencies: Sequence[Adjacency], channels: Channels
) -> None:
    """Parallel edges add up, but a pair of nodes has room for the features of one edge only."""
    loops = counts.diagonal(0, -2, -1)
    takes_one_loop = weights is not None and any(known.self_loops and known.weighted for known in adjacencies)
    if (channels.edge and bool((counts > 1).any())) or (takes_one_loop and bool((loops > 1).any())):
        what = "edge features" if channels.edge else "weighted self-loops of which a convolution keeps one"
        raise DataError(
            f"prepare(graphs): there are parallel edges, and {what}.\n"
            "A pair of nodes has room for one edge: merge them, for instance with torch_geometric.utils.coalesce."
        )
