"""The graphs of Table 3 with their published splits, and which of them a cell trains on, validates and tests with."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import torch
from torch import Tensor

from bellnet import data
from bellnet.errors import DataError

if TYPE_CHECKING:
    from experiments.graph_cell import GraphCell

Indices = tuple[int, ...]
T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class GraphSet:
    """A data set as it was published.

    Attributes:
        name: Its name.
        graphs: The graphs.
        labels: The class of every graph.
        n_classes: How many classes there are.
        splits: Of every published split the indices of its training and of its test graphs.
    """

    name: str
    graphs: tuple[data.Graph, ...]
    labels: Tensor
    n_classes: int
    splits: tuple[tuple[Indices, Indices], ...]

    @property
    def sizes(self) -> list[int]:
        """The number of nodes of every graph."""
        return [graph.n for graph in self.graphs]


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
        raise DataError(f"{name}: the graphs have no classes.\nTable 3 needs NAME_graph_labels.txt.")
    if found.splits is None:
        raise DataError(
            f"{name}: there are no splits.\nTable 3 is about published splits: put splits/{name}.json beside "
            f"{name}.zip, and name their folder with --data or the environment variable BELLNET_DATA.\n"
            "docs/experiments.md explains where they come from, and the format of such a file."
        )
    splits = tuple((tuple(train.tolist()), tuple(test.tolist())) for train, test in found.splits)
    return GraphSet(name, tuple(found.graphs), found.labels, len(found.classes), splits)


@dataclass(frozen=True)
class Parts:
    """The indices of the graphs for training, for validation (if any) and for testing."""

    train: Indices
    validation: Indices
    test: Indices

    def counts(self) -> dict[str, int]:
        """The number of graphs of each part."""
        return {name: len(indices) for name, indices in vars(self).items()}


def parts_of(cell: "GraphCell", graphs: GraphSet) -> Parts:
    """The split of a cell; with the protocol "nested" some training graphs of every class are the validation set."""
    if cell.split >= len(graphs.splits):
        raise DataError(
            f"{graphs.name}: there is no split {cell.split}.\n"
            f"The published splits are 0 to {len(graphs.splits) - 1}; choose with --split."
        )
    train, test = graphs.splits[cell.split]
    if cell.protocol == "fixed":
        return Parts(train, (), test)
    generator = torch.Generator().manual_seed(cell.seed * 1_000_003 + cell.split)
    shuffled = [train[index] for index in torch.randperm(len(train), generator=generator).tolist()]
    validation: set[int] = set()
    for label in range(graphs.n_classes):
        members = [index for index in shuffled if int(graphs.labels[index]) == label]
        validation.update(members[: round(len(members) / cell.validation_part)])
    if not validation:
        raise DataError(
            f"{graphs.name}: split {cell.split} has {len(train)} training graphs, too few for a validation set of one "
            f"in {cell.validation_part}.\nUse the protocol 'fixed'."
        )
    rest = tuple(index for index in train if index not in validation)
    return Parts(rest, tuple(index for index in train if index in validation), test)


def shuffled_batches(indices: Sequence[int], size: int, generator: torch.Generator | None) -> list[list[int]]:
    """All indices, shuffled if there is a generator, in batches of nearly equal size."""
    order = torch.tensor(indices, dtype=torch.long)
    if generator is not None:
        order = order[torch.randperm(len(order), generator=generator)]
    return [batch.tolist() for batch in order.tensor_split(-(-len(order) // size))] if len(order) else []


def equal_size_batches(
    sizes: Sequence[int], indices: Sequence[int], size: int, generator: torch.Generator | None = None
) -> list[list[int]]:
    """All indices, shuffled if there is a generator, in batches of graphs with equally many nodes."""
    by_size: dict[int, list[int]] = {}
    for index in _shuffled(indices, generator):
        by_size.setdefault(sizes[index], []).append(index)
    batches = [some[start : start + size] for some in by_size.values() for start in range(0, len(some), size)]
    return _shuffled(batches, generator)


def _shuffled(items: Sequence[T], generator: torch.Generator | None) -> list[T]:
    if generator is None:
        return list(items)
    return [items[index] for index in torch.randperm(len(items), generator=generator).tolist()]
