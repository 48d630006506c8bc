"""Pairs of graphs that are hard to distinguish, made without any download; `refinement` says how hard.

- Strongly regular graphs: nodes have equally many neighbours, adjacent ones equally many in common, and others too.
  2-FWL leaves two of them with the same parameters alike, and so do networks of order 3.
- Random regular graphs and random double covers, which 1-WL leaves alike whatever is drawn.
- Graphs of Cai, Fürer and Immerman (1992): every node of a base graph becomes a cloud, with a node for each even set of
  its edges. Where nodes of the base are linked, those nodes of their clouds are that agree about the edge: both
  sets have it or neither. In the twisted graph they must disagree about one edge. The two are not isomorphic if the
  base is connected, and k-FWL distinguishes them if and only if the base has a tree-width of at most k.
"""

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations

import torch
from torch import Tensor

from bellnet.data import Graph, as_graph, to_networkx, undirected
from bellnet.errors import OptionError

Draw = Callable[[torch.Generator], tuple[str, Graph, Graph]]
Edges = list[tuple[int, int]]

STRONGLY_REGULAR: dict[tuple[int, int, int, int], tuple[str, ...]] = {
    (16, 6, 2, 2): (
        "O~`HW}GPHDaNaGPCcPWaN",
        "OlfJHsHBGK_\\oHWKeBK_\\",
    ),
    (25, 12, 5, 6): (
        "XKD^x[wkvlIaSN}GDd`qnrDZHJYVKKTdUTdAX[q^CJfSNds`Ql]",
        "Xwcbqi|LcWyJ`QIanlIktOwtH\\lf}U\\WroFozs`?}MBrEReHLRZ",
        "X~~BHk^b|KIXIZcNhb{iWQhe`RYhBxSp}KiWodRJIDLeTG^ETK^",
        "X~~EHk^J|GhTgrTJbJ{iPWfChe[dEyWb}KkSSpMJIEJeFHVacg~",
        "XKDX]Mr|DS~ujq@{MTEGvcuWsbqSJsPYlhx@MCrnAK]jhDluWkk",
        "Xwcbqi|LcWce`QIbwYqks~U@H\\lfvE\\XboFWSZTw}NRREucZwt@",
        "Xz`G`yiVkuHbcfOhY_X|`ybS`vDH\\mrrJfQKMP~BnYCP{[F@q^w",
        "XKD^x[wkvlIaSN}GP``qnZLZHJqVKKTdUTdApSr^CJfSNdsHYk]",
        "XKE_Mk~Qw[Te}GiFMd`{SYyrMUTeIrcbmQz`objnIu`JJeRvQZO",
        "XzM\\AfCbpTRnG~cp?kY`]xClNgeTagOrvhLlTuFRrdEFo^oliWU",
        "X~aKeEbQrQGmTQridNPpWjuCelbHmotfdY\\SLcjkzL`axrg~DHP",
        "XTMEvjadhXmNHYaizhIktwotH\\nX@B[WtOfqR{`_}MBfARu`DRz",
        "XQIPgrp]e?rjqQXaxqttsBw}d|JyeIFpX[lW{xw@UYBqxQXzGGz",
        "X~aKeEbLGlFQIirlIrYMYjphXKgukbIdsd{[Q[xkzoMLDyh~Ack",
        "X`oG]nfcrxlOWmsHJ`YiywTicbRuKltyAYRejFFGKnyVgDxLxYK",
    ),
}
"""All strongly regular graphs with these parameters, as graph6. Those of 16 nodes are the rook's graph on a board of
4 x 4 and Shrikhande's graph; those of 25 nodes were found by Paulus (1973)."""


@dataclass(frozen=True)
class Pair:
    """Two graphs that are not isomorphic, and the name of the pair."""

    name: str
    first: Graph
    second: Graph


def strongly_regular(n: int, degree: int, common: int, other: int) -> list[Graph]:
    """All strongly regular graphs with these parameters, none of them twice."""
    parameters = (n, degree, common, other)
    if parameters not in STRONGLY_REGULAR:
        raise OptionError(
            f"strongly_regular: the parameters must be {' or '.join(map(str, STRONGLY_REGULAR))}, not {parameters}.\n"
            "Graphs with others can be read from files of graph6."
        )
    from networkx import from_graph6_bytes

    return [as_graph(from_graph6_bytes(text.encode())) for text in STRONGLY_REGULAR[parameters]]


def regular_pairs(count: int = 50, *, seed: int = 0) -> list[Pair]:
    """Two graphs of 8 to 16 nodes in which every node has three or four neighbours."""

    def draw(generator: torch.Generator) -> tuple[str, Graph, Graph]:
        n, degree = 2 * _between(4, 9, generator), _between(3, 5, generator)
        return f"{n} nodes of degree {degree}", _regular(n, degree, generator), _regular(n, degree, generator)

    return _not_isomorphic("regular_pairs", draw, count, seed)


def cover_pairs(count: int = 50, *, seed: int = 0) -> list[Pair]:
    """Two double covers of one graph, so that nodes have the neighbours that nodes of that graph have.

    Of a connected graph of 5 to 8 nodes with two to four edges more than a tree, every node is taken twice and every
    edge as well, each time at random straight or crosswise. Colours of a cover are those of what it covers.
    """

    def draw(generator: torch.Generator) -> tuple[str, Graph, Graph]:
        n = _between(5, 9, generator)
        edges = _connected(n, _between(2, 5, generator), generator)
        return f"over {n} nodes", _cover(n, edges, generator), _cover(n, edges, generator)

    return _not_isomorphic("cover_pairs", draw, count, seed)


def _not_isomorphic(name: str, draw: Draw, count: int, seed: int) -> list[Pair]:
    if type(count) is not int or count < 0:
        raise OptionError(f"families.{name}: count must be an integer from 0 up, not {count!r}.")
    from networkx import is_isomorphic

    generator = torch.Generator().manual_seed(seed)
    pairs: list[Pair] = []
    while len(pairs) < count:
        kind, first, second = draw(generator)
        if not is_isomorphic(to_networkx(first), to_networkx(second)):
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
