"""Graphs as message passing networks see them, and some of them side by side."""

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from experiments.graph_data import GraphSet
from experiments.methods.node_labels import labels_of

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
