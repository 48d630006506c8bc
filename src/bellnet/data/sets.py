"""Graphs with what is to be predicted of each."""

from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor

from bellnet.data.graph import Graph
from bellnet.errors import DataError


@dataclass(frozen=True, eq=False)
class GraphSet:
    """A set of graphs with labels.

    Attributes:
        name: How the set is called.
        graphs: The graphs.
        labels: (graphs,) int64, the class of every graph, numbered from 0; None if there are no classes.
        classes: What every class is called where the set comes from, in the order of the numbers.
        targets: (graphs, targets) floating point, numbers to predict; None if there are none.
    """

    name: str
    graphs: list[Graph]
    labels: Tensor | None
    classes: tuple[int | str, ...] = ()
    targets: Tensor | None = None

    def __post_init__(self) -> None:
        for name in ("labels", "targets"):
            values = getattr(self, name)
            if values is not None and len(values) != len(self.graphs):
                raise DataError(f"{self.name}: there are {len(self.graphs)} graphs, but {len(values)} {name}.")

    def __len__(self) -> int:
        return len(self.graphs)

    def part(self, places: Iterable[int]) -> tuple[list[Graph], Tensor | None]:
        """The graphs at these places and their labels, for instance one side of a split."""
        chosen = [int(place) for place in places]
        graphs = [self.graphs[place] for place in chosen]
        return graphs, None if self.labels is None else self.labels[torch.tensor(chosen, dtype=torch.int64)]

    def __repr__(self) -> str:
        parts = [repr(self.name), f"{len(self.graphs)} graphs"]
        parts += [] if self.labels is None else [f"{len(self.classes)} classes"]
        parts += [] if self.targets is None else [f"{self.targets.shape[1]} targets"]
        return f"{type(self).__name__}({', '.join(parts)})"


def number_classes(values: list[int] | list[str]) -> tuple[Tensor, tuple[int | str, ...]]:
    """Classes numbered from 0 in the order of their values, and these values.

    >>> number_classes([1, -1, 1])
    (tensor([1, 0, 1]), (-1, 1))
    """
    classes: tuple[int | str, ...] = tuple(sorted(set(values)))
    number = {value: place for place, value in enumerate(classes)}
    return torch.tensor([number[value] for value in values], dtype=torch.int64), classes
