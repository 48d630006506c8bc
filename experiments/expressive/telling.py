"""Whether a network tells graphs apart, and whether that is what theory expects."""

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import torch
from torch import nn

from bellnet.data import Graph
from bellnet.errors import EquivarianceError
from experiments.expressive.networks import Model, prime_for, whole

DRAWS = 3
"""So many networks, each with weights of its own, are asked before it is said that none tells two graphs apart."""


@dataclass(frozen=True)
class Group:
    """Graphs of one number of nodes, any two of which are a pair to tell apart."""

    name: str
    graphs: tuple[Graph, ...]

    @property
    def n(self) -> int:
        """The number of nodes."""
        return self.graphs[0].n

    @property
    def n_pairs(self) -> int:
        """How many pairs the graphs make."""
        return len(self.graphs) * (len(self.graphs) - 1) // 2


@dataclass(frozen=True)
class Kinds:
    """Which of several graphs are left alike: for each the place of the first that it is like."""

    first: tuple[int, ...]

    @classmethod
    def of(cls, values: Sequence[Hashable]) -> "Kinds":
        """Those of graphs that are alike if their values are equal."""
        places: dict[Hashable, int] = {}
        return cls(tuple(places.setdefault(value, place) for place, value in enumerate(values)))

    @property
    def n_pairs_apart(self) -> int:
        """How many pairs are told apart."""
        among = (size * (size - 1) // 2 for size in Counter(self.first).values())
        return len(self.first) * (len(self.first) - 1) // 2 - sum(among)


class Asked:
    """Some networks of one kind, each with weights of its own; made when they are first asked.

    Args:
        model: The kind.
        largest: The number of nodes of the largest graph to come.
        rounds: That colour refinement needs for these graphs. A layer does what a round does, so there are as many
            and two more, but no fewer than the model has by itself.
        seed: Where weights and renumberings come from.
    """

    def __init__(self, model: Model, largest: int, *, rounds: int = 0, seed: int = 0) -> None:
        self.model = model
        self.layers = max(model.layers, rounds + 2)
        self.prime = prime_for(model.terms(largest, self.layers))
        self._seed = seed
        self._nets: list[nn.Module] = []

    def kinds(self, group: Group) -> Kinds:
        """Which graphs get the same numbers from all networks.

        Every graph is renumbered at random, which must change none of the numbers; else nothing could be said.
        """
        values: list[tuple[float, ...]] = [() for _ in group.graphs]
        for draw in range(DRAWS):
            if len(set(values)) < len(values):
                found = self._values(group, draw)
                values = [(*before, *now) for before, now in zip(values, found, strict=True)]
        return Kinds.of(values)

    def _values(self, group: Group, draw: int) -> list[list[float]]:
        """What one network gives each graph."""
        if len(self._nets) == draw:
            self._nets.append(whole(self.model.make(self.prime, self.layers), self.prime, self._seed + draw))
        net, generator = self._nets[draw], torch.Generator().manual_seed(self._seed + draw)
        found = []
        with torch.no_grad():
            for graph in group.graphs:
                value, again = (
                    net(*self.model.given(one)).remainder(self.prime) for one in (graph, renumbered(graph, generator))
                )
                if not torch.equal(value, again):
                    raise EquivarianceError(
                        f"{self.model.name} gives a graph of {group.name} other numbers when it is renumbered, so that "
                        "nothing can be said."
                    )
                found.append(value.tolist())
        return found


def renumbered(graph: Graph, generator: torch.Generator) -> Graph:
    """The same graph with its nodes in a random order."""
    return Graph(graph.n, torch.randperm(graph.n, generator=generator)[graph.edge_index], directed=graph.directed)
