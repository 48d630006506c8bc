"""Graphs of Cai, Fürer and Immerman (1992): for every dimension of colour refinement, two that it leaves alike.

Every node of a base graph becomes a cloud, with a node for each even set of its edges. Where nodes of the base are
linked, those nodes of their clouds are that agree about the edge: both sets have it or neither. In the twisted graph
they must disagree about one edge. The two are not isomorphic if the base is connected, and dimension k tells them apart
if and only if the base has a tree-width of at most k.
"""

from collections import defaultdict
from collections.abc import Sequence
from itertools import combinations

from bellnet.data.families.pair import Pair
from bellnet.data.graph import Graph, undirected

Edges = list[tuple[int, int]]


def cycle(n: int) -> Edges:
    """The edges of a cycle, whose tree-width is 2."""
    return [(node, (node + 1) % n) for node in range(n)]


def ladder(rungs: int) -> Edges:
    """The edges of two paths side by side, linked by rungs; the tree-width is 2."""
    sides = [(side + step, side + step + 2) for step in range(0, 2 * rungs - 2, 2) for side in (0, 1)]
    return sides + [(step, step + 1) for step in range(0, 2 * rungs, 2)]


def complete(n: int) -> Edges:
    """The edges between any two of n nodes, whose tree-width is n - 1."""
    return list(combinations(range(n), 2))


def prism(sides: int) -> Edges:
    """The edges of a ladder whose ends are linked; the tree-width is 3, and 4 for more than four sides."""
    return [*ladder(sides), (0, 2 * sides - 2), (1, 2 * sides - 1)]


BASES: dict[str, Edges] = {
    **{f"cycle of {n}": cycle(n) for n in (4, 8, 16)},
    **{f"ladder of {rungs}": ladder(rungs) for rungs in (2, 3, 7)},
    "complete graph of 4": complete(4),
    "prism of 3": prism(3),
    "complete graph of 5": complete(5),
}
"""Bases of tree-width 2, then 3, then 4."""


def cfi(base: Sequence[tuple[int, int]], *, twisted: bool = False) -> Graph:
    """The graph over a base, or its twisted form.

    Args:
        base: The edges of the base, each once.
        twisted: Whether clouds must disagree about the first edge.

    >>> cfi(complete(4)), cfi(complete(4), twisted=True)
    (Graph(n=16, edges=96), Graph(n=16, edges=96))
    """
    at: dict[int, list[int]] = defaultdict(list)
    for number, ends in enumerate(base):
        for end in ends:
            at[end].append(number)
    clouds = {
        node: [frozenset(some) for size in range(0, len(edges) + 1, 2) for some in combinations(edges, size)]
        for node, edges in at.items()
    }
    places = {key: place for place, key in enumerate((node, some) for node in clouds for some in clouds[node])}
    linked = [
        (places[one, first], places[other, second])
        for number, (one, other) in enumerate(base)
        for first in clouds[one]
        for second in clouds[other]
        if ((number in first) == (number in second)) != (twisted and number == 0)
    ]
    return undirected(len(places), linked)


def cfi_pairs() -> list[Pair]:
    """The graph over each of `BASES`, beside its twisted form."""
    return [Pair(f"over a {name}", cfi(base), cfi(base, twisted=True)) for name, base in BASES.items()]
