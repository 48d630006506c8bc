"""Message passing networks on PyTorch Geometric, and PPGN."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, one_hot

from bellnet import PPGN, Padded
from experiments.graph_data import GraphSet, shuffled_batches
from experiments.methods.base import NetworkMethod, Options, Task
from experiments.methods.kernels import labels_of

EVALUATION_BATCH = 100


@dataclass(frozen=True, eq=False)
class GraphBatch:
    """Graphs as PyTorch Geometric's layers take them: node features, edges, the graph of each node."""

    x: Tensor
    edge_index: Tensor
    batch: Tensor
    num_graphs: int

    @cached_property
    def incoming(self) -> Tensor:
        """In row i a one for every edge to node i, in the column of its source.

        PyTorch Geometric's layers multiply by such a matrix instead of forming a message for each edge.
        """
        n, ones = len(self.x), self.x.new_ones(self.edge_index.shape[1])
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta state")
            return torch.sparse_coo_tensor(self.edge_index.flip(0), ones, (n, n), check_invariants=True).to_sparse_csr()

    def to(self, device: torch.device) -> "GraphBatch":
        """The same on a device."""
        return GraphBatch(self.x.to(device), self.edge_index.to(device), self.batch.to(device), self.num_graphs)


@lru_cache(maxsize=1)
def node_features(graphs: GraphSet) -> tuple[Tensor, ...]:
    """A channel for every label of nodes; the last result is cached, since all splits share it."""
    labels = torch.cat(labels_of(graphs.graphs))
    known: Tensor = labels.unique()  # type: ignore[no-untyped-call]
    return torch.split(one_hot(torch.searchsorted(known, labels), len(known)).float(), graphs.sizes)


def graph_batch(graphs: GraphSet, indices: list[int]) -> GraphBatch:
    """Some graphs, in this order."""
    features = node_features(graphs)
    sizes = torch.tensor([graphs.graphs[index].n for index in indices])
    offsets = (sizes.cumsum(0) - sizes).tolist()
    edges = [graphs.graphs[index].edge_index + offset for index, offset in zip(indices, offsets, strict=True)]
    x = torch.cat([features[index] for index in indices])
    return GraphBatch(x, torch.cat(edges, 1), torch.repeat_interleave(sizes), len(indices))


class Network(NetworkMethod):
    """A network on graph batches, with a learning rate that is halved every so many epochs.

    Args:
        title: The title of its row.
        module: Makes the network for a task, the number of channels of nodes, and options.
        packages: The packages it needs.
        defaults: The usual options.
    """

    def __init__(
        self,
        title: str,
        module: Callable[[Task, int, Options], nn.Module],
        packages: tuple[str, ...] = ("torch_geometric",),
        **defaults: Any,
    ) -> None:
        self.title, self.module, self.packages, self.defaults = title, module, packages, defaults

    def usual(self, name: str, options: Options | None = None) -> dict[str, Any]:
        return {"weight_decay": 0.0, **self.defaults}

    def make(self, task: Task, options: Options) -> nn.Module:
        return self.module(task, node_features(task.graphs)[0].shape[1], options)

    def batches(
        self, task: Task, part: str, options: Options, generator: torch.Generator | None = None
    ) -> list[list[int]]:
        # Batches of training graphs are of nearly equal size: a single graph could not be normalised.
        size = EVALUATION_BATCH if generator is None else options["batch_size"]
        return shuffled_batches(getattr(task.parts, part), size, generator)

    def inputs(self, task: Task, indices: list[int], options: Options) -> GraphBatch:
        return graph_batch(task.graphs, indices)

    def loss(self, net: nn.Module, inputs: GraphBatch, labels: Tensor) -> tuple[Tensor, Tensor]:
        """The mean cross-entropy, with the penalties of differentiable pooling."""
        if not isinstance(net, DiffPool):
            return super().loss(net, inputs, labels)
        logits, penalty = net.with_penalty(inputs)
        return cross_entropy(logits, labels) + penalty, logits

    def learning_rate(self, options: Options, epoch: int) -> float:
        return float(options["learning_rate"] * 0.5 ** (epoch // options["halve_every"]))


class GIN(nn.Module):
    """The graph isomorphism network (Xu et al., 2019), set up as by its authors and by Errica et al., 2020."""

    def __init__(self, task: Task, channels: int, options: Options) -> None:
        from torch_geometric.nn import GINConv

        super().__init__()
        width = options["width"]
        self.layers = nn.ModuleList()
        for before in [channels] + [width] * (options["layers"] - 1):
            inner = nn.Sequential(nn.Linear(before, width), nn.BatchNorm1d(width), nn.ReLU(), nn.Linear(width, width))
            self.layers.append(GINConv(inner, train_eps=True))
        self.norms = nn.ModuleList(nn.BatchNorm1d(width) for _ in self.layers)
        self.drop = nn.Dropout(options["dropout"])
        self.head = nn.Linear(channels + width * options["layers"], task.graphs.n_classes)

    def forward(self, batch: GraphBatch) -> Tensor:
        from torch_geometric.nn import global_add_pool

        x = batch.x
        pooled = [global_add_pool(x, batch.batch, batch.num_graphs)]
        for layer, norm in zip(self.layers, self.norms, strict=True):
            x = torch.relu(norm(layer(x, batch.incoming)))
            pooled.append(global_add_pool(x, batch.batch, batch.num_graphs))
        logits: Tensor = self.head(self.drop(torch.cat(pooled, dim=1)))
        return logits


class DGCNN(nn.Module):
    """The deep graph convolutional network (Zhang et al., 2018): nodes, sorted by their last channel, form a sequence.

    The layers are those of its authors; the length of the sequence is such that most training graphs have more nodes.
    """

    MIN_LENGTH = 10  # with fewer nodes there is nothing left for the second convolution

    def __init__(self, task: Task, channels: int, options: Options) -> None:
        from torch_geometric.nn import SimpleConv, SortAggregation

        super().__init__()
        sizes = sorted((task.graphs.sizes[index] for index in task.parts.train), reverse=True)
        length = max(self.MIN_LENGTH, sizes[min(int(options["larger"] * len(sizes)), len(sizes) - 1)])
        widths = [channels, *options["widths"]]
        self.layers = nn.ModuleList(nn.Linear(before, after, bias=False) for before, after in pairwise(widths))
        self.mean = SimpleConv(aggr="mean", combine_root="self_loop")
        self.sort = SortAggregation(length)
        total = sum(options["widths"])
        self.convolutions = nn.Sequential(
            nn.Conv1d(1, 16, total, total), nn.ReLU(), nn.MaxPool1d(2, 2), nn.Conv1d(16, 32, 5), nn.ReLU(), nn.Flatten()
        )
        self.head = nn.Sequential(
            nn.Linear(32 * (length // 2 - 4), 128),
            nn.ReLU(),
            nn.Dropout(options["dropout"]),
            nn.Linear(128, task.graphs.n_classes),
        )

    def forward(self, batch: GraphBatch) -> Tensor:
        x, outputs = batch.x, []
        for layer in self.layers:
            x = torch.tanh(self.mean(layer(x), batch.edge_index))
            outputs.append(x)
        pooled = self.sort(torch.cat(outputs, dim=1), batch.batch, dim_size=batch.num_graphs)
        logits: Tensor = self.head(self.convolutions(pooled.unsqueeze(1)))
        return logits


class DiffPool(nn.Module):
    """Differentiable pooling (Ying et al., 2018): one network assigns the nodes to clusters, another one embeds these.

    Pooled once, on dense matrices; two penalties, of links and of entropy, are added to the loss.
    """

    def __init__(self, task: Task, channels: int, options: Options) -> None:
        super().__init__()
        width = options["width"]
        largest = max(task.graphs.sizes[index] for index in task.parts.train)
        clusters = max(2, int(options["cluster_ratio"] * largest))
        self.embed = _DenseLayers(channels, width, width)
        self.assign = _DenseLayers(channels, width, clusters)
        self.after = _DenseLayers(3 * width, width, width)
        self.head = nn.Sequential(nn.Linear(6 * width, 50), nn.ReLU(), nn.Linear(50, task.graphs.n_classes))
        self.assigned = nn.Linear(2 * width + clusters, clusters)

    def forward(self, batch: GraphBatch) -> Tensor:
        return self.with_penalty(batch)[0]

    def with_penalty(self, batch: GraphBatch) -> tuple[Tensor, Tensor]:
        """The logits and the sum of the penalties."""
        from torch_geometric.nn import dense_diff_pool
        from torch_geometric.utils import to_dense_adj, to_dense_batch

        x, mask = to_dense_batch(batch.x, batch.batch, batch_size=batch.num_graphs)
        adjacency = to_dense_adj(
            batch.edge_index, batch.batch, batch_size=batch.num_graphs, max_num_nodes=mask.shape[1]
        )
        adjacency = adjacency.to(x)
        embedded = self.embed(x, adjacency, mask)
        shares = self.assigned(self.assign(x, adjacency, mask))
        pooled, links, of_links, of_entropy = dense_diff_pool(embedded, adjacency, shares, mask)
        before = embedded.masked_fill(~mask[..., None], -torch.inf).amax(1)
        after = self.after(pooled, links).amax(1)
        logits: Tensor = self.head(torch.cat([before, after], dim=1))
        return logits, of_links + of_entropy


class _DenseLayers(nn.Module):
    """Three dense GraphSAGE layers, each normalised over the nodes of the mask; their outputs are concatenated."""

    def __init__(self, channels: int, width: int, last: int) -> None:
        from torch_geometric.nn import DenseSAGEConv

        super().__init__()
        widths = [channels, width, width, last]
        self.layers = nn.ModuleList(DenseSAGEConv(a, b) for a, b in pairwise(widths))
        self.norms = nn.ModuleList(nn.BatchNorm1d(width) for width in widths[1:])

    def forward(self, x: Tensor, adjacency: Tensor, mask: Tensor | None = None) -> Tensor:
        there = x.new_ones(x.shape[:2], dtype=torch.bool) if mask is None else mask
        outputs = []
        for layer, norm in zip(self.layers, self.norms, strict=True):
            found = torch.relu(layer(x, adjacency, mask))
            x = torch.zeros_like(found).masked_scatter(there[..., None], norm(found[there]))
            outputs.append(x)
        return torch.cat(outputs, dim=-1)


class ECC(nn.Module):
    """Edge-conditioned convolution (Simonovsky and Komodakis, 2017), without the coarser graphs that its authors add.

    The published graphs have no labels on their edges: every edge has the same, and a layer is a mean over neighbours.
    """

    def __init__(self, task: Task, channels: int, options: Options) -> None:
        from torch_geometric.nn import NNConv

        super().__init__()
        width, edge_width, hidden = options["width"], options["edge_width"], options["hidden"]
        self.first = nn.Linear(channels, width)
        self.layers = nn.ModuleList()
        for _ in range(options["layers"]):
            matrices = nn.Sequential(nn.Linear(1, edge_width), nn.ReLU(), nn.Linear(edge_width, width * width))
            self.layers.append(NNConv(width, width, matrices, aggr="mean"))
        self.norms = nn.ModuleList(nn.BatchNorm1d(width) for _ in self.layers)
        self.head = nn.Sequential(
            nn.Linear(width, hidden),
            nn.ReLU(),
            nn.Dropout(options["dropout"]),
            nn.Linear(hidden, task.graphs.n_classes),
        )

    def forward(self, batch: GraphBatch) -> Tensor:
        from torch_geometric.nn import global_mean_pool

        x, edges = self.first(batch.x), batch.x.new_ones(batch.edge_index.shape[1], 1)
        for layer, norm in zip(self.layers, self.norms, strict=True):
            x = torch.relu(norm(layer(x, batch.edge_index, edges)))
        logits: Tensor = self.head(global_mean_pool(x, batch.batch, batch.num_graphs))
        return logits


class ProductNet(nn.Module):
    """Provably powerful graph networks (Maron et al., 2019): the library's `PPGN`, pooled by maximum and mean."""

    def __init__(self, task: Task, channels: int, options: Options) -> None:
        super().__init__()
        widths = [1 + channels] + [options["width"]] * options["blocks"]
        options = {"hidden": [options["hidden"]], "dropout": options["dropout"]}
        self.net = PPGN("n n", widths, task.graphs.n_classes, reduce=("max", "mean"), **options)

    def forward(self, batch: GraphBatch) -> Tensor:
        logits: Tensor = self.net(pair_channels(batch))
        return logits


def pair_channels(batch: GraphBatch) -> Padded:
    """Edges in the first channel, labels of nodes on the diagonal of the others."""
    sizes = torch.bincount(batch.batch, minlength=batch.num_graphs)
    within = torch.arange(len(batch.batch)) - (sizes.cumsum(0) - sizes)[batch.batch]
    longest = int(sizes.max())
    values = batch.x.new_zeros(batch.num_graphs, longest, longest, 1 + batch.x.shape[1])
    start, end = batch.edge_index
    values[batch.batch[start], within[start], within[end], 0] = 1
    values[batch.batch, within, within, 1:] = batch.x
    return Padded(values, sizes)


gin = Network(
    "GIN", GIN, epochs=150, learning_rate=0.01, halve_every=50, batch_size=64, layers=5, width=64, dropout=0.5
)
dgcnn = Network(
    "DGCNN",
    DGCNN,
    epochs=100,
    learning_rate=0.001,
    halve_every=100,
    batch_size=50,
    widths=(32, 32, 32, 1),
    larger=0.6,  # this share of the training graphs has more nodes than the sequence
    dropout=0.5,
)
diffpool = Network(
    "DiffPool",
    DiffPool,
    epochs=60,
    learning_rate=0.001,
    halve_every=60,
    batch_size=20,
    width=64,
    cluster_ratio=0.1,  # clusters for each node of the largest graph
)
ecc = Network(
    "ECC",
    ECC,
    epochs=60,
    learning_rate=0.005,
    halve_every=20,
    batch_size=50,
    layers=3,
    width=32,
    edge_width=16,
    hidden=64,
    dropout=0.2,
)
ppgn = Network(
    "PPGN",
    ProductNet,
    (),
    epochs=100,
    learning_rate=0.002,
    halve_every=40,
    batch_size=20,
    blocks=3,
    width=32,
    hidden=64,
    dropout=0.2,
)
