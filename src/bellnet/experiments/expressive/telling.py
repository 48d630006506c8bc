"""Whether a network tells graphs apart, and whether that is what theory expects."""

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import torch

from bellnet.data import Graph, refinement
from bellnet.errors import EquivarianceError
from bellnet.experiments.expressive.networks import Model
from bellnet.experiments.expressive.whole import prime_for, with_whole_weights

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


def by_theory(group: Group, dimension: int) -> Kinds:
    """Which graphs colour refinement leaves alike."""
    return Kinds.of(refinement.kinds(group.graphs, dimension))


def by_model(model: Model, group: Group, *, seed: int = 0) -> Kinds:
    """Which graphs get the same numbers from all of some networks.

    Every graph is renumbered at random, which must change none of the numbers; else nothing could be said.

    Args:
        model: The kind of network.
        group: The graphs.
        seed: Where weights and renumberings come from.
    """
    prime = prime_for(model.terms(group.n))
    values: list[tuple[float, ...]] = [() for _ in group.graphs]
    for draw in range(DRAWS):
        if len(set(values)) < len(values):
            found = _values(model, group, prime, seed + draw)
            values = [(*before, *now) for before, now in zip(values, found, strict=True)]
    return Kinds.of(values)


def _values(model: Model, group: Group, prime: int, seed: int) -> list[list[float]]:
    """What one network gives each graph."""
    net = with_whole_weights(model.make(prime), prime, seed)
    generator = torch.Generator().manual_seed(seed)
    found = []
    with torch.no_grad():
        for graph in group.graphs:
            value, again = (net(*model.given(one)).remainder(prime) for one in (graph, renumbered(graph, generator)))
            if not torch.equal(value, again):
                raise EquivarianceError(
                    f"{model.name} gives a graph of {group.name} other numbers when it is renumbered, so that nothing can "
                    "be said."
                )
            found.append(value.tolist())
    return found


def renumbered(graph: Graph, generator: torch.Generator) -> Graph:
    """The same graph with its nodes in a random order."""
    return Graph(graph.n, torch.randperm(graph.n, generator=generator)[graph.edge_index], directed=graph.directed)
