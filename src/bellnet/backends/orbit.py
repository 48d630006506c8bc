"""An orbit of a tensor over nodes: the entries with exactly the same equalities between their indices."""

from collections.abc import Iterator
from itertools import combinations
from math import perm
from typing import NamedTuple

from torch import Tensor

from bellnet.backends.nodes import Nodes


class Orbit(NamedTuple):
    """The axes to merge, pair after pair, until one is left for each block; and the node sets of those."""

    merges: tuple[tuple[int, int], ...]
    sets: tuple[int, ...]

    @property
    def n_axes(self) -> int:
        """How many there are before merging."""
        return len(self.sets) + len(self.merges)

    @property
    def blocks(self) -> list[list[int]]:
        """The axes of equal indices, block by block."""
        blocks = [[axis] for axis in range(self.n_axes)]
        for first, second in self.merges:
            merged = [*blocks[first], *blocks[second]]
            blocks = [block for place, block in enumerate(blocks) if place not in (first, second)]
            blocks.insert(first, merged)
        return blocks

    def entries(self, tensor: Tensor) -> Tensor:
        """Where at least these indices are equal, as a view of a (batch, *axes, channels) tensor."""
        for first, second in self.merges:
            tensor = tensor.diagonal(0, first + 1, second + 1).movedim(-1, first + 1)
        return tensor

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """The axes that have one node set, two by two: their indices must differ."""
        return [pair for pair in combinations(range(len(self.sets)), 2) if self.sets[pair[0]] == self.sets[pair[1]]]

    def coincidences(self, entries: Tensor) -> Iterator[Tensor]:
        """Where more indices are equal, as views."""
        for first, second in self.pairs:
            yield entries.diagonal(0, first + 1, second + 1)

    def n_entries(self, nodes: Nodes) -> Tensor | int:
        """How many entries there are: a number, or (batch, 1) of them."""
        number: Tensor | int = 1
        for node_set in set(self.sets):
            several = self.sets.count(node_set)
            if nodes.counts is None:
                number = number * perm(nodes.lengths[node_set], several)
            else:
                for less in range(several):
                    number = number * (nodes.counts[node_set].unsqueeze(-1) - less).clamp(min=0)
        return number
