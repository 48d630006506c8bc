"""The graphs of a cell: a data set, encoded once, its splits, and batches of graphs of equal size.

Channel 0 is the normalised adjacency. There is a channel for every node label: one on the diagonal where a node has it,
plus, as the paper's authors have it, the normalised adjacency once more.
"""

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import torch
from torch import Tensor

from bellnet import Sparse, data
from bellnet.errors import DataError
from experiments.graph_net import Kinds, KindsBatch, kinds_of

if TYPE_CHECKING:
    from experiments.graph_cells import GraphCell
    from experiments.method_cells import MethodCell

Places = tuple[int, ...]
T = TypeVar("T")
WORTH = 2000
"""How many pairs of nodes of a graph twins must save, on the average, to be taken together. It has its price."""
MOST_LEFT = 0.5
"""The most that may be left of all pairs then: kernels take less time for each."""


@dataclass(frozen=True, eq=False)
class EncodedSet:
    """A data set as a network sees it.

    Attributes:
        name: How it is called.
        graphs: The graphs, each by itself, with edges and diagonal listed.
        sizes: The number of nodes of every graph.
        labels: The class of every graph.
        n_classes: How many classes there are.
        splits: Of every published split the places of its training and of its test graphs.
        kinds: The graphs with twins together, if that saves much.
    """

    name: str
    graphs: tuple[Sparse, ...]
    sizes: tuple[int, ...]
    labels: Tensor
    n_classes: int
    splits: tuple[tuple[Places, Places], ...]
    kinds: tuple[Kinds, ...] | None = None

    @property
    def n_channels(self) -> int:
        """The channels of every graph."""
        return self.graphs[0].values.shape[1]

    def batch(self, places: Sequence[int], layout: str) -> tuple[Tensor | Sparse | KindsBatch, Tensor]:
        """Graphs of equal size together, and their classes."""
        labels = self.labels[torch.tensor(places)]
        if layout == "dense" and self.kinds is not None:
            return KindsBatch.of(self.sizes[places[0]], [self.kinds[place] for place in places]), labels
        packed = Sparse.pack(self.graphs[place] for place in places)
        return packed.to_dense() if layout == "dense" else packed, labels


def encoding_of(graphs: Iterable[data.Graph]) -> data.Encoding:
    """The authors' channels, with every node label of these graphs."""
    return data.Encoding.fit(
        graphs, adjacency="normalized", edge_features=False, node_features=False, adjacency_in_labels=True
    )


def load_set(
    name: str, folder: Path | None, *, max_unpacked: float | None = None, max_ratio: float | None = None
) -> EncodedSet:
    """A data set, loaded and encoded."""
    return _encoded(load_graphs(name, folder, max_unpacked=max_unpacked, max_ratio=max_ratio))


@lru_cache(maxsize=1)
def _encoded(found: "GraphSet") -> EncodedSet:
    """The last data set is cached, since many cells share it."""
    encoded = tuple(encoding_of(found.graphs).encode(found.graphs, layout="sparse").unpack())
    return EncodedSet(
        name=found.name,
        graphs=encoded,
        sizes=tuple(graph.n for graph in found.graphs),
        labels=found.labels,
        n_classes=found.n_classes,
        splits=found.splits,
        kinds=_kinds(found.graphs, encoded),
    )


def _kinds(graphs: Sequence[data.Graph], encoded: Sequence[Sparse]) -> tuple[Kinds, ...] | None:
    """The graphs with twins together, or None if that saves too little."""
    pairs = sum(graph.n**2 for graph in graphs)
    if pairs <= WORTH * len(graphs):
        return None
    kinds = [kinds_of(graph) for graph in graphs]
    left = sum(len(some) ** 2 for some in kinds)
    if pairs - left <= WORTH * len(graphs) or left > MOST_LEFT * pairs:
        return None
    return tuple(map(Kinds.of, encoded, kinds))


@dataclass(frozen=True, eq=False)
class GraphSet:
    """A data set as it was published: its graphs, and for the rest what an `EncodedSet` has."""

    name: str
    graphs: tuple[data.Graph, ...]
    labels: Tensor
    n_classes: int
    splits: tuple[tuple[Places, Places], ...]


def load_graphs(
    name: str, folder: Path | None, *, max_unpacked: float | None = None, max_ratio: float | None = None
) -> GraphSet:
    """A data set, loaded as by `bellnet.data.tu.load`; an error if there are no classes or no splits."""
    return _load(name, folder, os.environ.get("BELLNET_DATA"), max_unpacked, max_ratio)


@lru_cache(maxsize=1)
def _load(
    name: str, folder: Path | None, default: str | None, max_unpacked: float | None, max_ratio: float | None
) -> GraphSet:
    """The last data set is cached, since many cells share it; `default` is where `tu.load` looks without a folder."""
    found = data.tu.load(name, folder, max_unpacked=max_unpacked, max_ratio=max_ratio)
    if found.labels is None:
        raise DataError(f"{name}: the graphs have no classes to learn.\nTable 3 needs NAME_graph_labels.txt.")
    if found.splits is None:
        raise DataError(
            f"{name}: there are no splits.\nTable 3 is about published splits: put splits/{name}.json beside "
            f"{name}.zip, and name their folder with --data or the environment variable BELLNET_DATA.\n"
            "docs/experiments.md says where they come from, and what such a file holds."
        )
    return GraphSet(
        name=name,
        graphs=tuple(found.graphs),
        labels=found.labels,
        n_classes=len(found.classes),
        splits=tuple((tuple(train.tolist()), tuple(test.tolist())) for train, test in found.splits),
    )


@dataclass(frozen=True)
class Parts:
    """The places of the graphs that are learned from, that choose the epoch (if any), and that are tested."""

    train: Places
    validation: Places
    test: Places


def parts_of(cell: "GraphCell | MethodCell", graphs: EncodedSet | GraphSet) -> Parts:
    """The split of a cell; with "nested", one of `held_out` training graphs of every class is kept aside."""
    if cell.split >= len(graphs.splits):
        raise DataError(
            f"{graphs.name}: there is no split {cell.split}.\n"
            f"The published splits are 0 to {len(graphs.splits) - 1}; choose with --split."
        )
    train, test = graphs.splits[cell.split]
    if cell.protocol == "fixed":
        return Parts(train, (), test)
    generator = torch.Generator().manual_seed(cell.seed * 1_000_003 + cell.split)
    shuffled = [train[place] for place in torch.randperm(len(train), generator=generator).tolist()]
    aside: set[int] = set()
    for label in range(graphs.n_classes):
        members = [place for place in shuffled if int(graphs.labels[place]) == label]
        aside.update(members[: round(len(members) / cell.held_out)])
    if not aside:
        raise DataError(
            f"{graphs.name}: split {cell.split} has {len(train)} training graphs, too few to keep one of "
            f"{cell.held_out} aside.\nUse the protocol 'fixed'."
        )
    kept = tuple(place for place in train if place not in aside)
    return Parts(kept, tuple(place for place in train if place in aside), test)


def equal_batches(
    sizes: Sequence[int], places: Sequence[int], batch: int, generator: torch.Generator | None = None
) -> list[list[int]]:
    """Every place once, in batches of at most so many graphs of equal size."""
    by_size: dict[int, list[int]] = {}
    for place in _shuffled(places, generator):
        by_size.setdefault(sizes[place], []).append(place)
    batches = [some[start : start + batch] for some in by_size.values() for start in range(0, len(some), batch)]
    return _shuffled(batches, generator)


def _shuffled(items: Sequence[T], generator: torch.Generator | None) -> list[T]:
    if generator is None:
        return list(items)
    return [items[place] for place in torch.randperm(len(items), generator=generator).tolist()]
