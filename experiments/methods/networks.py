"""Message passing networks on PyTorch Geometric, and PPGN: one training loop for all."""

import time
import warnings
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, one_hot

from bellnet import PPGN, Padded
from experiments.cell import Record
from experiments.graph_data import GraphSet
from experiments.methods.base import Method, Options, Task
from experiments.methods.kernels import labels_of

ASKED_AT_ONCE = 100


@dataclass(frozen=True, eq=False)
class Together:
    """Graphs side by side, as PyTorch Geometric's layers take them: nodes, edges, the graph of each node, classes."""

    x: Tensor
    edge_index: Tensor
    batch: Tensor
    y: Tensor

    @property
    def num_graphs(self) -> int:
        """How many there are."""
        return len(self.y)

    @cached_property
    def heard(self) -> Tensor:
        """In row i a one for every edge to node i, in the column where it begins.

        By such a matrix PyTorch Geometric's layers multiply where they add up neighbours, without a message an edge.
        """
        n, ones = len(self.x), self.x.new_ones(self.edge_index.shape[1])
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta state")
            return torch.sparse_coo_tensor(self.edge_index.flip(0), ones, (n, n), check_invariants=True).to_sparse_csr()


@dataclass(frozen=True, eq=False)
class Examples:
    """A data set as networks see it: a channel for every label of nodes."""

    x: tuple[Tensor, ...]
    edges: tuple[Tensor, ...]
    y: Tensor

    def together(self, places: Sequence[int]) -> Together:
        """Some graphs, in this order."""
        sizes = torch.tensor([len(self.x[place]) for place in places])
        firsts = (sizes.cumsum(0) - sizes).tolist()
        return Together(
            torch.cat([self.x[place] for place in places]),
            torch.cat([self.edges[place] + first for place, first in zip(places, firsts, strict=True)], dim=1),
            torch.repeat_interleave(sizes),
            self.y[list(places)],
        )

    def dealt(self, places: Sequence[int], batch: int, order: torch.Generator) -> Iterator[Together]:
        """All of them in a new order, in batches of nearly equal size: a graph alone could not be normalised."""
        shuffled = torch.tensor(places)[torch.randperm(len(places), generator=order)]
        for part in shuffled.tensor_split(-(-len(places) // batch)):
            yield self.together(part.tolist())

    def in_turn(self, places: Sequence[int]) -> list[Together]:
        """All of them as they come."""
        starts = range(0, len(places), ASKED_AT_ONCE)
        return [self.together(places[start : start + ASKED_AT_ONCE]) for start in starts]


@lru_cache(maxsize=1)
def examples_of(graphs: GraphSet) -> Examples:
    """The examples of a data set; the last ones are kept, since all splits share them."""
    labels = torch.cat(labels_of(graphs.graphs))
    kinds: Tensor = labels.unique()  # type: ignore[no-untyped-call]
    channels = one_hot(torch.searchsorted(kinds, labels), len(kinds)).float()
    sizes = [graph.n for graph in graphs.graphs]
    return Examples(torch.split(channels, sizes), tuple(graph.edge_index for graph in graphs.graphs), graphs.labels)


class Network(Method):
    """A network that is trained by Adam on the cross-entropy.

    The epoch counts that classifies most of the graphs kept aside; of several, that of the least loss on them.
    """

    packages: tuple[str, ...] = ("torch_geometric",)
    epochs_option = "epochs"
    rate_option = "rate"

    @abstractmethod
    def make(self, task: Task, channels: int, options: Options) -> nn.Module:
        """The network, from graphs that are `Together` to a row of numbers for each."""

    def loss(self, net: nn.Module, batch: Together) -> Tensor:
        """The mean loss of a batch."""
        return cross_entropy(net(batch), batch.y)

    def run(self, task: Task, options: Options, record: Record) -> dict[str, Any]:
        """Train; after every epoch measure what is kept aside, and the test graphs, which have no say in anything."""
        began = time.process_time()
        examples = examples_of(task.graphs)
        validating, testing = (examples.in_turn(places) for places in (task.parts.validation, task.parts.test))
        best: dict[str, Any] = {}
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(task.seed)
            net = self.make(task, examples.x[0].shape[1], options)
            optimizer = torch.optim.Adam(net.parameters(), lr=options["rate"], weight_decay=options["weight_decay"])
            for epoch in range(options["epochs"]):
                start = time.process_time()
                for group in optimizer.param_groups:
                    group["lr"] = options["rate"] * 0.5 ** (epoch // options["halve_every"])
                order = torch.Generator().manual_seed(task.seed * 1_000_003 + epoch)
                loss = self._learn(net, optimizer, examples.dealt(task.parts.train, options["batch"], order))
                validation, validation_loss = _measure(net, validating)
                test, _ = _measure(net, testing)
                found = {
                    "epoch": epoch,
                    "loss": loss,
                    "validation": validation,
                    "validation_loss": validation_loss,
                    "test": test,
                    "seconds": round(time.process_time() - start, 3),
                }
                record(found)
                if not best or (validation, -validation_loss) > (best["validation"], -best["validation_loss"]):
                    best = found
        return {
            "accuracy": best["test"],
            "validation": best["validation"],
            "best_epoch": best["epoch"],
            "parameters": sum(weight.numel() for weight in net.parameters()),
            "seconds": round(time.process_time() - began, 3),
        }

    def _learn(self, net: nn.Module, optimizer: torch.optim.Optimizer, batches: Iterable[Together]) -> float:
        """One epoch; its mean loss."""
        net.train()
        total, count = 0.0, 0
        for batch in batches:
            optimizer.zero_grad(set_to_none=True)
            loss = self.loss(net, batch)
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            total, count = total + float(loss.detach()) * len(batch.y), count + len(batch.y)
        return total / count


@torch.no_grad()
def _measure(net: nn.Module, batches: Sequence[Together]) -> tuple[float, float]:
    """Accuracy and mean loss."""
    net.eval()
    hits, total, count = 0, 0.0, 0
    for batch in batches:
        said = net(batch)
        hits += int((said.argmax(1) == batch.y).sum())
        total += float(cross_entropy(said, batch.y, reduction="sum"))
        count += len(batch.y)
    return hits / count, total / count


class Isomorphism(Network):
    """The graph isomorphism network (Xu et al., 2019), set up as by its authors and by Errica et al., 2020."""

    title = "GIN"

    def usual(self) -> dict[str, Any]:
        """Five layers of 64."""
        training = {"epochs": 150, "rate": 0.01, "halve_every": 50, "batch": 64, "weight_decay": 0.0}
        return {**training, "layers": 5, "width": 64, "dropout": 0.5}

    def make(self, task: Task, channels: int, options: Options) -> nn.Module:
        """The network."""
        return _Isomorphism(channels, task.graphs.n_classes, options)


class _Isomorphism(nn.Module):
    def __init__(self, channels: int, classes: int, options: Options) -> None:
        from torch_geometric.nn import GINConv

        super().__init__()
        width = options["width"]
        self.layers = nn.ModuleList()
        for before in [channels] + [width] * (options["layers"] - 1):
            inner = nn.Sequential(nn.Linear(before, width), nn.BatchNorm1d(width), nn.ReLU(), nn.Linear(width, width))
            self.layers.append(GINConv(inner, train_eps=True))
        self.norms = nn.ModuleList(nn.BatchNorm1d(width) for _ in self.layers)
        self.drop = nn.Dropout(options["dropout"])
        self.head = nn.Linear(channels + width * options["layers"], classes)

    def forward(self, batch: Together) -> Tensor:
        from torch_geometric.nn import global_add_pool

        x = batch.x
        pooled = [global_add_pool(x, batch.batch, batch.num_graphs)]
        for layer, norm in zip(self.layers, self.norms, strict=True):
            x = torch.relu(norm(layer(x, batch.heard)))
            pooled.append(global_add_pool(x, batch.batch, batch.num_graphs))
        said: Tensor = self.head(self.drop(torch.cat(pooled, dim=1)))
        return said


FEWEST = 10
"""Nodes that are kept at least: with fewer there is nothing left for the second convolution along the line."""


class SortPooling(Network):
    """The deep graph convolutional network (Zhang et al., 2018): nodes, sorted by their last channel, form a line.

    With the layers of its authors; so many nodes are kept that most training graphs have more.
    """

    title = "DGCNN"

    def usual(self) -> dict[str, Any]:
        """Convolutions of 32, 32, 32 and 1 channels; 60 percent of the graphs have more nodes than are kept."""
        training = {"epochs": 100, "rate": 0.001, "halve_every": 100, "batch": 50, "weight_decay": 0.0}
        return {**training, "widths": [32, 32, 32, 1], "larger": 0.6, "dropout": 0.5}

    def make(self, task: Task, channels: int, options: Options) -> nn.Module:
        """The network."""
        sizes = sorted((task.graphs.graphs[place].n for place in task.parts.train), reverse=True)
        kept = max(FEWEST, sizes[min(int(options["larger"] * len(sizes)), len(sizes) - 1)])
        return _SortPooling(channels, task.graphs.n_classes, kept, options)


class _SortPooling(nn.Module):
    def __init__(self, channels: int, classes: int, kept: int, options: Options) -> None:
        from torch_geometric.nn import SimpleConv, SortAggregation

        super().__init__()
        widths = list(options["widths"])
        self.layers = nn.ModuleList(
            nn.Linear(before, after, bias=False) for before, after in zip([channels, *widths[:-1]], widths, strict=True)
        )
        self.mean = SimpleConv(aggr="mean", combine_root="self_loop")
        self.sort = SortAggregation(kept)
        total = sum(widths)
        self.line = nn.Sequential(
            nn.Conv1d(1, 16, total, total), nn.ReLU(), nn.MaxPool1d(2, 2), nn.Conv1d(16, 32, 5), nn.ReLU(), nn.Flatten()
        )
        self.head = nn.Sequential(
            nn.Linear(32 * (kept // 2 - 4), 128), nn.ReLU(), nn.Dropout(options["dropout"]), nn.Linear(128, classes)
        )

    def forward(self, batch: Together) -> Tensor:
        x, found = batch.x, []
        for layer in self.layers:
            x = torch.tanh(self.mean(layer(x), batch.edge_index))
            found.append(x)
        pooled = self.sort(torch.cat(found, dim=1), batch.batch, dim_size=batch.num_graphs)
        said: Tensor = self.head(self.line(pooled.unsqueeze(1)))
        return said


class DifferentiablePooling(Network):
    """Differentiable pooling (Ying et al., 2018): a network deals the nodes to clusters, another one looks at these.

    Pooled once, on dense matrices; its two penalties, of links and of entropy, are added to the loss.
    """

    title = "DiffPool"

    def usual(self) -> dict[str, Any]:
        """Three layers of 64 before and after; a cluster for ten nodes of the largest graph."""
        training = {"epochs": 60, "rate": 0.001, "halve_every": 60, "batch": 20, "weight_decay": 0.0}
        return {**training, "width": 64, "part": 0.1}

    def make(self, task: Task, channels: int, options: Options) -> nn.Module:
        """The network."""
        largest = max(task.graphs.graphs[place].n for place in task.parts.train)
        clusters = max(2, int(options["part"] * largest))
        return _DiffPool(channels, task.graphs.n_classes, clusters, options["width"])

    def loss(self, net: nn.Module, batch: Together) -> Tensor:
        """With the penalties."""
        assert isinstance(net, _DiffPool)
        said, penalty = net.with_penalty(batch)
        return cross_entropy(said, batch.y) + penalty


class _DiffPool(nn.Module):
    def __init__(self, channels: int, classes: int, clusters: int, width: int) -> None:
        super().__init__()
        self.embed = _Layers(channels, width, width)
        self.deal = _Layers(channels, width, clusters)
        self.after = _Layers(3 * width, width, width)
        self.head = nn.Sequential(nn.Linear(6 * width, 50), nn.ReLU(), nn.Linear(50, classes))
        self.dealt = nn.Linear(2 * width + clusters, clusters)

    def forward(self, batch: Together) -> Tensor:
        return self.with_penalty(batch)[0]

    def with_penalty(self, batch: Together) -> tuple[Tensor, Tensor]:
        from torch_geometric.nn import dense_diff_pool
        from torch_geometric.utils import to_dense_adj, to_dense_batch

        x, mask = to_dense_batch(batch.x, batch.batch, batch_size=batch.num_graphs)
        adjacency = to_dense_adj(
            batch.edge_index, batch.batch, batch_size=batch.num_graphs, max_num_nodes=mask.shape[1]
        )
        adjacency = adjacency.to(x)
        embedded = self.embed(x, adjacency, mask)
        shares = self.dealt(self.deal(x, adjacency, mask))
        pooled, links, of_links, of_entropy = dense_diff_pool(embedded, adjacency, shares, mask)
        before = embedded.masked_fill(~mask[..., None], -torch.inf).amax(1)
        after = self.after(pooled, links).amax(1)
        said: Tensor = self.head(torch.cat([before, after], dim=1))
        return said, of_links + of_entropy


class _Layers(nn.Module):
    """Three dense GraphSAGE layers, each normalised over nodes that are there; their outputs side by side."""

    def __init__(self, channels: int, width: int, last: int) -> None:
        from torch_geometric.nn import DenseSAGEConv

        super().__init__()
        widths = [channels, width, width, last]
        self.layers = nn.ModuleList(DenseSAGEConv(a, b) for a, b in pairwise(widths))
        self.norms = nn.ModuleList(nn.BatchNorm1d(width) for width in widths[1:])

    def forward(self, x: Tensor, adjacency: Tensor, mask: Tensor | None = None) -> Tensor:
        there = x.new_ones(x.shape[:2], dtype=torch.bool) if mask is None else mask
        found = []
        for layer, norm in zip(self.layers, self.norms, strict=True):
            said = torch.relu(layer(x, adjacency, mask))
            x = torch.zeros_like(said).masked_scatter(there[..., None], norm(said[there]))
            found.append(x)
        return torch.cat(found, dim=-1)


class EdgeConditioned(Network):
    """Edge-conditioned convolution (Simonovsky and Komodakis, 2017), without the coarser graphs that its authors add.

    The published graphs have no labels on their edges: every edge has the same, and a layer is a mean over neighbours.
    """

    title = "ECC"

    def usual(self) -> dict[str, Any]:
        """Three layers of 32."""
        training = {"epochs": 60, "rate": 0.005, "halve_every": 20, "batch": 50, "weight_decay": 0.0}
        return {**training, "layers": 3, "width": 32, "edge_width": 16, "hidden": 64, "dropout": 0.2}

    def make(self, task: Task, channels: int, options: Options) -> nn.Module:
        """The network."""
        return _EdgeConditioned(channels, task.graphs.n_classes, options)


class _EdgeConditioned(nn.Module):
    def __init__(self, channels: int, classes: int, options: Options) -> None:
        from torch_geometric.nn import NNConv

        super().__init__()
        width, edge_width = options["width"], options["edge_width"]
        self.first = nn.Linear(channels, width)
        self.layers = nn.ModuleList()
        for _ in range(options["layers"]):
            matrices = nn.Sequential(nn.Linear(1, edge_width), nn.ReLU(), nn.Linear(edge_width, width * width))
            self.layers.append(NNConv(width, width, matrices, aggr="mean"))
        self.norms = nn.ModuleList(nn.BatchNorm1d(width) for _ in self.layers)
        self.head = nn.Sequential(
            nn.Linear(width, options["hidden"]),
            nn.ReLU(),
            nn.Dropout(options["dropout"]),
            nn.Linear(options["hidden"], classes),
        )

    def forward(self, batch: Together) -> Tensor:
        from torch_geometric.nn import global_mean_pool

        x, edges = self.first(batch.x), batch.x.new_ones(batch.edge_index.shape[1], 1)
        for layer, norm in zip(self.layers, self.norms, strict=True):
            x = torch.relu(norm(layer(x, batch.edge_index, edges)))
        said: Tensor = self.head(global_mean_pool(x, batch.batch, batch.num_graphs))
        return said


class ProvablyPowerful(Network):
    """Provably powerful graph networks (Maron et al., 2019): the library's `PPGN`, one recipe for all data sets."""

    title = "PPGN"
    packages = ()

    def usual(self) -> dict[str, Any]:
        """Three blocks of 32, pooled by maximum and mean."""
        training = {"epochs": 100, "rate": 0.002, "halve_every": 40, "batch": 20, "weight_decay": 0.0}
        return {**training, "blocks": 3, "width": 32, "hidden": 64, "dropout": 0.2}

    def make(self, task: Task, channels: int, options: Options) -> nn.Module:
        """The network."""
        return _ProvablyPowerful(channels, task.graphs.n_classes, options)


class _ProvablyPowerful(nn.Module):
    def __init__(self, channels: int, classes: int, options: Options) -> None:
        super().__init__()
        widths = [1 + channels] + [options["width"]] * options["blocks"]
        self.net = PPGN(
            "n n", widths, classes, hidden=[options["hidden"]], reduce=("max", "mean"), dropout=options["dropout"]
        )

    def forward(self, batch: Together) -> Tensor:
        said: Tensor = self.net(_pairs(batch))
        return said


def _pairs(batch: Together) -> Padded:
    """Edges in the first channel, labels of nodes on the diagonal in the others."""
    sizes = torch.bincount(batch.batch, minlength=batch.num_graphs)
    within = torch.arange(len(batch.batch)) - (sizes.cumsum(0) - sizes)[batch.batch]
    longest = int(sizes.max())
    values = batch.x.new_zeros(batch.num_graphs, longest, longest, 1 + batch.x.shape[1])
    start, end = batch.edge_index
    values[batch.batch[start], within[start], within[end], 0] = 1
    values[batch.batch, within, within, 1:] = batch.x
    return Padded(values, sizes)
