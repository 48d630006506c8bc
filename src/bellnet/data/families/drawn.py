"""Pairs that are drawn at random and that colour refinement of dimension 1 leaves alike, whatever is drawn."""

from collections.abc import Callable

import torch
from torch import Tensor

from bellnet.data.families.pair import Pair
from bellnet.data.graph import Graph, undirected
from bellnet.data.refinement import are_isomorphic
from bellnet.errors import OptionError

Draw = Callable[[torch.Generator], tuple[str, Graph, Graph]]


def regular_pairs(count: int = 50, *, seed: int = 0) -> list[Pair]:
    """Two graphs of 8 to 16 nodes in which every node has three or four neighbours.

    Args:
        count: The number of pairs.
        seed: Where the random numbers come from.
    """

    def draw(generator: torch.Generator) -> tuple[str, Graph, Graph]:
        n, degree = 2 * _between(4, 9, generator), _between(3, 5, generator)
        return f"{n} nodes of degree {degree}", _regular(n, degree, generator), _regular(n, degree, generator)

    return _not_isomorphic("regular_pairs", draw, count, seed)


def cover_pairs(count: int = 50, *, seed: int = 0) -> list[Pair]:
    """Two double covers of one graph, so that nodes have the neighbours that nodes of that graph have.

    Of a connected graph of 5 to 8 nodes with two to four edges more than a tree, every node is taken twice and every
    edge as well, each time at random straight or crosswise. Colours of a cover are those of what it covers.

    Args:
        count: The number of pairs.
        seed: Where the random numbers come from.
    """

    def draw(generator: torch.Generator) -> tuple[str, Graph, Graph]:
        n = _between(5, 9, generator)
        edges = _connected(n, _between(2, 5, generator), generator)
        return f"over {n} nodes", _cover(n, edges, generator), _cover(n, edges, generator)

    return _not_isomorphic("cover_pairs", draw, count, seed)


def _not_isomorphic(name: str, draw: Draw, count: int, seed: int) -> list[Pair]:
    if type(count) is not int or count < 0:
        raise OptionError(f"families.{name}: count must be a whole number from 0 up, not {count!r}.")
    generator = torch.Generator().manual_seed(seed)
    pairs: list[Pair] = []
    while len(pairs) < count:
        kind, first, second = draw(generator)
        if not are_isomorphic(first, second):
            pairs.append(Pair(f"number {len(pairs)}, {kind}", first, second))
    return pairs


def _between(least: int, beyond: int, generator: torch.Generator) -> int:
    return int(torch.randint(least, beyond, (), generator=generator))


def _regular(n: int, degree: int, generator: torch.Generator) -> Graph:
    """Ends of edges are paired at random until no edge is a loop and none occurs twice."""
    ends = torch.arange(n).repeat(degree)
    while True:
        pairs = ends[torch.randperm(n * degree, generator=generator)].reshape(-1, 2).sort(1).values
        if not bool((pairs[:, 0] == pairs[:, 1]).any()) and len(torch.unique(pairs, dim=0)) == len(pairs):
            return undirected(n, pairs)


def _connected(n: int, more: int, generator: torch.Generator) -> Tensor:
    """The edges of a random tree, and some more."""
    tree = torch.tensor([(_between(0, node, generator), node) for node in range(1, n)])
    pairs = torch.combinations(torch.arange(n))
    free = pairs[~(pairs[:, None] == tree).all(-1).any(1)]
    return torch.cat([tree, free[torch.randperm(len(free), generator=generator)[:more]]])


def _cover(n: int, edges: Tensor, generator: torch.Generator) -> Graph:
    crossed = torch.randint(2, (len(edges),), generator=generator) * n
    first = torch.stack([edges[:, 0], edges[:, 1] + crossed], 1)
    second = torch.stack([edges[:, 0] + n, edges[:, 1] + n - crossed], 1)
    return undirected(2 * n, torch.cat([first, second]))
