"""Which graphs are to be told apart, by which networks, and what came of it."""

import os
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from itertools import groupby
from pathlib import Path

import torch
from torch import nn

from bellnet import data
from bellnet.data import Graph
from bellnet.errors import EquivarianceError
from experiments.data import families, graph6, refinement
from experiments.expressive.networks import Model, message_passing, of_order, prime_for, whole, with_products

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


class RandomNetworks:
    """Some networks of one kind with different random weights, made when they are first needed.

    Args:
        model: The kind.
        largest: The number of nodes of the largest graph to come.
        rounds: That colour refinement needs for these graphs. A layer does what a round does, so there are as many
            and two more, but no fewer than the model has by itself.
        seed: Where weights and renumberings come from.
    """

    def __init__(self, model: Model, largest: int, *, rounds: int = 0, seed: int = 0) -> None:
        self.model, self.largest = model, largest
        self.layers = max(model.layers, rounds + 2)
        self.prime = prime_for(model.terms(largest, self.layers))
        self._seed = seed
        self._nets: list[nn.Module] = []

    def serve(self, n: int, rounds: int) -> bool:
        """Whether new networks for so many nodes and rounds would be the same, or smaller than these."""
        return n <= self.largest and self.layers == max(self.model.layers, rounds + 2)

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


@dataclass(frozen=True)
class Family:
    """Groups of graphs under one name."""

    name: str
    groups: tuple[Group, ...]

    @property
    def n_pairs(self) -> int:
        """How many pairs there are to tell apart."""
        return sum(group.n_pairs for group in self.groups)


@dataclass
class Score:
    """Of so many pairs, how many were told apart, how many by theory, and the groups in which that is not the same."""

    pairs: int = 0
    told: int = 0
    expected: int = 0
    wrong: list[str] = field(default_factory=list)

    def add(self, group: Group, told: Kinds, expected: Kinds) -> None:
        """Add the pairs of a group, as a network and theory tell them apart."""
        self.pairs += group.n_pairs
        self.told += told.n_pairs_apart
        self.expected += expected.n_pairs_apart
        self.wrong += [] if told == expected else [group.name]


@dataclass(frozen=True)
class Row:
    """A family, what theory says of its pairs in each dimension, and the score of each model that was asked."""

    family: str
    pairs: int
    theory: Mapping[int, Score]
    scores: Mapping[str, Score]

    @property
    def agrees(self) -> bool:
        """Whether all models do what theory says."""
        return not any(score.wrong for score in self.scores.values())


def models(*, quick: bool = False) -> list[Model]:
    """The networks, in the order of what they can tell apart; GIN is left out without PyTorch Geometric."""
    asked = [
        of_order(2, layers=8, channels=4, largest=1000),
        with_products(layers=6, channels=4, largest=1000),
        of_order(3, layers=6, channels=4, largest=70),
        of_order(4, layers=3, channels=2, largest=16 if quick else 25),
    ]
    if find_spec("torch_geometric") is None:
        return asked
    return [message_passing(layers=8, channels=8, largest=1000), *asked]


def made_here(*, quick: bool = False, seed: int = 0) -> Iterator[Family]:
    """The families that need no files."""
    count = 5 if quick else 50
    yield Family("circular skip links", (Group("skip links", tuple(data.generated.skip_links(10, seed=seed)[0])),))
    for parameters in ((16, 6, 2, 2), (25, 12, 5, 6)):
        name = f"strongly regular {parameters}"
        yield Family(name, (Group(name, tuple(families.strongly_regular(*parameters))),))
    yield from_pairs("regular graphs", families.regular_pairs(count, seed=seed))
    yield from_pairs("double covers", families.cover_pairs(count, seed=seed))
    yield from_pairs("Cai, Fürer, Immerman", families.cfi_pairs())


def from_graph6(path: str | os.PathLike[str]) -> Family:
    """The graphs of a file, those of one number of nodes in one group."""
    by_size = groupby(sorted(graph6.load(path), key=lambda graph: graph.n), key=lambda graph: graph.n)
    groups = (Group(f"{n} nodes of {Path(path).name}", tuple(graphs)) for n, graphs in by_size)
    return Family(Path(path).name, tuple(groups))


def from_brec(folder: str | os.PathLike[str]) -> list[Family]:
    """The categories of BREC of which the folder has files."""
    return [from_pairs(f"BREC, {category}", pairs) for category, pairs in graph6.load_brec(folder).items()]


def from_pairs(name: str, pairs: Sequence[families.Pair]) -> Family:
    """A family of pairs, each a group of its own."""
    return Family(name, tuple(Group(pair.name, (pair.first, pair.second)) for pair in pairs))


def compare(
    family: Family, asked: Sequence[Model], *, seed: int = 0, progress: Callable[[str], None] | None = None
) -> Row:
    """Have networks tell the graphs of a family apart, and compare with theory."""
    theory = {model.dimension: Score() for model in asked}
    scores = {model.name: Score() for model in asked}
    networks: dict[str, RandomNetworks] = {}
    for number, group in enumerate(family.groups, 1):
        able = [model for model in asked if group.n <= model.largest]
        refined = {
            dimension: refinement.refine(group.graphs, dimension) for dimension in {model.dimension for model in able}
        }
        expected = {dimension: Kinds.of(found.kinds) for dimension, found in refined.items()}
        for dimension, kinds in expected.items():
            theory[dimension].add(group, kinds, kinds)
        for model in able:
            rounds, known = refined[model.dimension].rounds, networks.get(model.name)
            if known is None or not known.serve(group.n, rounds):
                networks[model.name] = RandomNetworks(model, group.n, rounds=rounds, seed=seed)
            scores[model.name].add(group, networks[model.name].kinds(group), expected[model.dimension])
        if progress is not None and number % 10 == 0:
            progress(f"  {number} of {len(family.groups)}")
    return Row(family.name, family.n_pairs, theory, scores)
