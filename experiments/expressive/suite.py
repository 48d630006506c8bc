"""Pairs of graphs that networks distinguish, compared with theory."""

import os
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import groupby
from pathlib import Path

import torch
from torch import nn

from bellnet import data
from bellnet.data import Graph
from bellnet.errors import EquivarianceError
from experiments.data import families
from experiments.data.families import Group
from experiments.data.refinement import refine
from experiments.expressive.networks import Model, matrices, with_integers

DRAWS = 3
"""The number of networks with random weights that must not distinguish two graphs."""

Kinds = tuple[int, ...]
"""For each of several graphs the index of the first from which it is not distinguished."""
Family = tuple[str, Sequence[Group]]


def kinds_of(values: Sequence[Hashable]) -> Kinds:
    """The kinds of graphs that are distinguished if their values differ."""
    return tuple(map(values.index, values))


def n_distinguished(kinds: Kinds) -> int:
    """The number of pairs that are distinguished."""
    return sum(a != b for i, a in enumerate(kinds) for b in kinds[:i])


@lru_cache(maxsize=16)
def network(model: Model, prime: int, layers: int, seed: int) -> nn.Module:
    """A network of integers; those of groups with the same number of nodes are the same."""
    return with_integers(model.make(model, prime, layers), prime, seed)


def distinguish(model: Model, group: Group, *, rounds: int = 0, seed: int = 0) -> Kinds:
    """The kinds of graphs with the same outputs of all of `DRAWS` networks.

    A layer does what a round of WL does, so there are two more layers than rounds, or those of the model if more. Every
    graph is also permuted at random, which must not change its outputs.
    """
    layers = max(model.layers, rounds + 2)
    prime = model.prime(group.graphs[0].n, layers)
    values: list[tuple[float, ...]] = [() for _ in group.graphs]
    for draw in range(seed, seed + DRAWS):
        if len(set(values)) == len(values):
            break
        net, generator = network(model, prime, layers, draw), torch.Generator().manual_seed(draw)
        for index, graph in enumerate(group.graphs):
            with torch.no_grad():
                both = [net(matrices(one)).remainder(prime) for one in (graph, permuted(graph, generator))]
            if not torch.equal(*both):
                raise EquivarianceError(f"{model.name} is not invariant to permutations of a graph of {group.name}.")
            values[index] += tuple(both[0].tolist())
    return kinds_of(values)


def permuted(graph: Graph, generator: torch.Generator) -> Graph:
    """The same graph with its nodes in a random order."""
    return Graph(graph.n, torch.randperm(graph.n, generator=generator)[graph.edge_index], directed=graph.directed)


@dataclass
class Score:
    """The number of pairs, of those distinguished and expected, and the groups in which these are not the same."""

    pairs: int = 0
    distinguished: int = 0
    expected: int = 0
    wrong: list[str] = field(default_factory=list)

    def add(self, group: Group, kinds: Kinds, expected: Kinds) -> None:
        """Add the pairs of a group."""
        self.pairs += group.n_pairs
        self.distinguished += n_distinguished(kinds)
        self.expected += n_distinguished(expected)
        self.wrong += [group.name] * (kinds != expected)


@dataclass(frozen=True)
class Row:
    """A family, the score of theory in each dimension, and the score of each model."""

    family: str
    pairs: int
    theory: Mapping[int, Score]
    scores: Mapping[str, Score]

    @property
    def agrees(self) -> bool:
        """Whether all models distinguish what theory expects."""
        return not any(score.wrong for score in self.scores.values())


def generated(*, quick: bool = False, seed: int = 0) -> Iterator[Family]:
    """The families that need no files."""
    count = 5 if quick else 50
    yield "circular skip links", [Group("skip links", tuple(data.generated.skip_links(10, seed=seed)[0]))]
    for parameters in families.STRONGLY_REGULAR:
        name = f"strongly regular {parameters}"
        yield name, [Group(name, tuple(families.strongly_regular(*parameters)))]
    yield "regular graphs", families.regular_pairs(count, seed=seed)
    yield "double covers", families.cover_pairs(count, seed=seed)
    yield "Cai, Fürer, Immerman", families.cfi_pairs()


def from_graph6(path: str | os.PathLike[str]) -> Family:
    """The graphs of a file, those of one number of nodes in one group."""
    name, graphs = Path(path).name, sorted(families.read_graph6(path), key=lambda graph: graph.n)
    return name, [Group(f"{n} nodes of {name}", tuple(some)) for n, some in groupby(graphs, key=lambda graph: graph.n)]


def from_brec(folder: str | os.PathLike[str]) -> list[Family]:
    """The categories of BREC of which the folder has files."""
    return [(f"BREC, {category}", pairs) for category, pairs in families.load_brec(folder).items()]


def compare(
    family: Family, models: Sequence[Model], *, seed: int = 0, progress: Callable[[str], None] = lambda text: None
) -> Row:
    """Compare the pairs of a family that networks distinguish with those that theory expects."""
    name, groups = family
    theory = {model.dimension: Score() for model in models}
    scores = {model.name: Score() for model in models}
    for number, group in enumerate(groups, 1):
        used = [model for model in models if group.graphs[0].n <= model.largest]
        refined = {dimension: refine(group.graphs, dimension) for dimension in {model.dimension for model in used}}
        for dimension, (kinds, _) in refined.items():
            theory[dimension].add(group, kinds_of(kinds), kinds_of(kinds))
        for model in used:
            kinds, rounds = refined[model.dimension]
            scores[model.name].add(group, distinguish(model, group, rounds=rounds, seed=seed), kinds_of(kinds))
        if number % 10 == 0:
            progress(f"  {number} of {len(groups)}")
    return Row(name, sum(group.n_pairs for group in groups), theory, scores)
