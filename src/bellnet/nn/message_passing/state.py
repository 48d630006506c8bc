"""The state of a message passing network: one tensor over pairs of nodes, made from a batch of graphs.

Its channels are adjacency matrices, edge features, and node features on the diagonal. Dividing by a degree is not
linear, so no equivariant linear layer does it. What a graph convolution multiplies its messages by depends on the graph
alone, not on the features. It is therefore computed once, outside of the network, and passed as an adjacency channel;
the authors of the paper pass their network a normalised adjacency in the same way.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import torch
from torch import Tensor

from bellnet.errors import DataError
from bellnet.tensors import Padded
from bellnet.tensors.padded import zero_padded

Scale = Literal["none", "mean", "symmetric"]


@dataclass(frozen=True)
class Adjacency:
    """Which matrix a layer multiplies its messages by; entry (u, v) multiplies the message from v to u.

    Attributes:
        weighted: Whether edges count by their weights, if the graph has weights, or each as one.
        self_loops: The weight of the loop that is added at every node without one; 0 adds none. In a graph without
            weights all loops weigh one, as in PyTorch Geometric.
        scale: "none"; "mean" divides by the number of edges that arrive at u; "symmetric" by the square root of the
            degrees of u and of v, where the degree is the sum of the weights that arrive.
        to_source: Whether messages are passed against the edges, from target to source.
    """

    weighted: bool = False
    self_loops: float = 0.0
    scale: Scale = "none"
    to_source: bool = False

    def matrix(self, counts: Tensor, weights: Tensor | None, is_node: Tensor) -> Tensor:
        """The matrices of a batch of graphs.

        Args:
            counts: (batch, n, n), how many edges go from v to u.
            weights: (batch, n, n), the sums of their weights, or None for a graph without weights.
            is_node: (batch, n), True for nodes and False for padding.

        >>> edge = torch.tensor([[[0.0, 1.0], [0.0, 0.0]]])
        >>> Adjacency(self_loops=1.0, scale="symmetric").matrix(edge, None, torch.ones(1, 2, dtype=torch.bool))
        tensor([[[0.5000, 0.7071],
                 [0.0000, 1.0000]]])
        """
        has_weights = self.weighted and weights is not None
        matrix = weights if self.weighted and weights is not None else counts
        if self.to_source:
            matrix, counts = matrix.mT, counts.mT
        if self.self_loops:
            loop = torch.where(
                counts.diagonal(0, -2, -1) > 0 if has_weights else torch.zeros_like(is_node),
                matrix.diagonal(0, -2, -1),
                self.self_loops if has_weights else 1.0,
            )
            matrix = torch.diagonal_scatter(matrix, loop * is_node, 0, -2, -1)
        if self.scale == "mean":
            matrix = matrix / counts.sum(-1, keepdim=True).clamp(min=1)
        elif self.scale == "symmetric":
            root = matrix.sum(-1).rsqrt()
            root = root.masked_fill(torch.isinf(root), 0)
            matrix = root.unsqueeze(-1) * matrix * root.unsqueeze(-2)
        return matrix.mT if self.to_source else matrix

    def __str__(self) -> str:
        words = ["weights" if self.weighted else "edges"]
        words += ["with self-loops"] if self.self_loops else []
        words += [] if self.scale == "none" else [f"scaled: {self.scale}"]
        words += ["against the edges"] if self.to_source else []
        return ", ".join(words)


@dataclass(frozen=True)
class Channels:
    """The numbers of channels of a state, in this order.

    Attributes:
        adjacency: Adjacency matrices.
        edge: Channels of edge features.
        node: Channels of node features, on the diagonal.
    """

    adjacency: int
    edge: int
    node: int

    @property
    def fixed(self) -> int:
        """The number of channels that message passing does not change: the graph itself."""
        return self.adjacency + self.edge

    @property
    def total(self) -> int:
        """The number of all channels."""
        return self.fixed + self.node

    def __str__(self) -> str:
        return f"{self.adjacency} adjacency, {self.edge} edge, {self.node} node"


class Graphs(Protocol):
    """One graph or several, as PyTorch Geometric's `Data` and `Batch` hold them.

    Edges go from `edge_index[0]` to `edge_index[1]`. Optional are `edge_attr` (edges, channels), `edge_weight`
    (edges), and `batch` and `num_graphs`, which assign nodes to graphs.
    """

    x: Tensor | None
    edge_index: Tensor | None


def prepare(graphs: Graphs, adjacencies: Sequence[Adjacency], channels: Channels, like: Tensor) -> Padded:
    """The state (batch, n, n, channels): adjacency matrices, edge features, and node features on the diagonal.

    There is one adjacency for each of its channels; `like` has the dtype and the device of the network.
    """
    x, edge_index = graphs.x, graphs.edge_index
    edge_attr, edge_weight = (getattr(graphs, name, None) for name in ("edge_attr", "edge_weight"))
    if x is None or edge_index is None:
        missing = "x, the features of the nodes," if x is None else "edge_index, the edges,"
        raise DataError(f"prepare(graphs): {missing} is missing, and the network reads it.")
    x, batch = x.to(like), getattr(graphs, "batch", None)
    graph = torch.zeros(len(x), dtype=torch.int64, device=x.device) if batch is None else batch.to(x.device)
    n_graphs = int(getattr(graphs, "num_graphs", None) or 1)
    sizes = torch.bincount(graph, minlength=n_graphs)
    node = _number_in_graph(graph, sizes)
    source, target = edge_index.to(like.device)
    if problem := _mistake(x, source, target, graph, edge_attr, channels):
        raise DataError(f"prepare(graphs): {problem}")
    longest = int(sizes.max())
    # Row u, column v: from the source v of an edge to its target u.
    entry = graph[target], node[target], node[source]
    empty = x.new_zeros(len(sizes), longest, longest)
    counts = empty.index_put(entry, x.new_ones(()), accumulate=True)
    weights = None
    if edge_weight is not None:
        weights = empty.index_put(entry, edge_weight.to(like).flatten(), accumulate=True)
    _refuse_parallel(counts, weights, adjacencies, channels)
    is_node = torch.arange(longest, device=like.device) < sizes.unsqueeze(-1)
    parts = [adjacency.matrix(counts, weights, is_node).unsqueeze(-1) for adjacency in adjacencies]
    if channels.edge:
        assert edge_attr is not None
        parts.append(x.new_zeros(*empty.shape, channels.edge).index_put(entry, edge_attr.to(like)))
    parts.append(x.new_zeros(*empty.shape, channels.node).index_put((graph, node, node), x))
    return zero_padded(torch.cat(parts, -1), sizes, ("n", "n"))


def _number_in_graph(graph: Tensor, sizes: Tensor) -> Tensor:
    """The number of every node among the nodes of its graph."""
    order = graph.argsort(stable=True)
    first = sizes.cumsum(0) - sizes
    numbers = torch.arange(len(graph), device=graph.device) - first[graph[order]]
    return torch.empty_like(numbers).index_put((order,), numbers)


def _mistake(
    x: Tensor, source: Tensor, target: Tensor, graph: Tensor, edge_attr: Tensor | None, channels: Channels
) -> str | None:
    """What is wrong with the graphs, if anything."""
    if x.shape[1:] != (channels.node,):
        return f"x must have shape (nodes, {channels.node}), but has {tuple(x.shape)}."
    if not torch.equal(graph[source], graph[target]):
        return "an edge joins nodes of two graphs.\nbatch must give both ends of every edge the same graph."
    if channels.edge and (edge_attr is None or edge_attr.shape[1:] != (channels.edge,)):
        got = None if edge_attr is None else tuple(edge_attr.shape)
        return f"edge_attr must have shape (edges, {channels.edge}), got {got}."
    return None


def _refuse_parallel(
    counts: Tensor, weights: Tensor | None, adjacencies: Sequence[Adjacency], channels: Channels
) -> None:
    """Parallel edges add up, but a pair of nodes has the features of one edge only."""
    loops = counts.diagonal(0, -2, -1)
    takes_one_loop = weights is not None and any(known.self_loops and known.weighted for known in adjacencies)
    if (channels.edge and bool((counts > 1).any())) or (takes_one_loop and bool((loops > 1).any())):
        what = "edge features" if channels.edge else "weighted self-loops of which a convolution uses one"
        raise DataError(
            f"prepare(graphs): there are parallel edges, and {what}.\n"
            "A pair of nodes takes one edge: merge them, for instance with torch_geometric.utils.coalesce."
        )
