"""Pairs of graphs that are hard to distinguish, generated or read from files of graph6.

- Strongly regular graphs: nodes have the same number of neighbours, adjacent ones the same number in common, and others
  too. 2-FWL does not distinguish two of them with the same parameters, and neither do networks of order 3.
- Random regular graphs and random double covers, which 1-WL never distinguishes.
- Graphs of Cai, Fürer and Immerman (1992): each node of a base graph becomes a node for each even set of its edges.
  Two of them are adjacent if an edge of the base joins their nodes and both sets contain it or both do not; in the
  twisted graph, for one edge, if exactly one contains it. If the base is connected, the two are not isomorphic, and
  k-FWL distinguishes them if and only if the base has a tree-width of at most k.
- BREC (Wang and Zhang, 2023): 400 pairs in six categories, in the files of its authors: `brec_v3.npy`, with 32 permuted
  copies of each pair by turns, then copies for a test of reliability, which are ignored; or the files that it is made
  from, such as `basic.npy`, with every graph once.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations, islice
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from bellnet.data import Graph, as_graph, to_networkx, undirected
from bellnet.errors import DataError, OptionError

WHOLE, COPIES = "brec_v3.npy", 32
BREC: dict[str, tuple[int, tuple[str, ...]]] = {
    "basic": (60, ("basic.npy",)),
    "regular": (100, ("regular.npy", "str.npy")),
    "extension": (100, ("extension.npy",)),
    "CFI": (100, ("cfi.npy",)),
    "4-vertex condition": (20, ("4vtx.npy",)),
    "distance regular": (20, ("dr.npy",)),
}
"""The number of pairs of each category, in the order of `brec_v3.npy`, and the files with one category each."""
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
class Group:
    """Graphs with the same number of nodes, no two of which are isomorphic; any two are a pair to distinguish."""

    name: str
    graphs: tuple[Graph, ...]

    @property
    def n_pairs(self) -> int:
        """The number of pairs."""
        return len(self.graphs) * (len(self.graphs) - 1) // 2


def strongly_regular(n: int, degree: int, common: int, other: int) -> list[Graph]:
    """All strongly regular graphs with these parameters, up to isomorphism."""
    parameters = (n, degree, common, other)
    if parameters not in STRONGLY_REGULAR:
        raise OptionError(
            f"strongly_regular: the parameters must be {' or '.join(map(str, STRONGLY_REGULAR))}, not {parameters}.\n"
            "Graphs with others can be read from files of graph6."
        )
    return [_parse(text, "strongly_regular") for text in STRONGLY_REGULAR[parameters]]


def regular_pairs(count: int = 50, *, seed: int = 0) -> list[Group]:
    """Pairs of graphs of 8 to 16 nodes in which all nodes have three or four neighbours."""

    def draw(generator: torch.Generator) -> tuple[str, Graph, Graph]:
        n, degree = 2 * _integer(4, 9, generator), _integer(3, 5, generator)
        return f"{n} nodes of degree {degree}", _regular(n, degree, generator), _regular(n, degree, generator)

    return _not_isomorphic("regular_pairs", draw, count, seed)


def cover_pairs(count: int = 50, *, seed: int = 0) -> list[Group]:
    """Pairs of double covers of a connected graph of 5 to 8 nodes with two to four edges more than a tree.

    A cover has two copies of each node, and of each edge, at random straight or crosswise. 1-WL assigns its nodes the
    colours of the nodes that they cover.
    """

    def draw(generator: torch.Generator) -> tuple[str, Graph, Graph]:
        n = _integer(5, 9, generator)
        edges = _connected(n, _integer(2, 5, generator), generator)
        return f"over {n} nodes", _cover(n, edges, generator), _cover(n, edges, generator)

    return _not_isomorphic("cover_pairs", draw, count, seed)


def _not_isomorphic(
    name: str, draw: Callable[[torch.Generator], tuple[str, Graph, Graph]], count: int, seed: int
) -> list[Group]:
    if type(count) is not int or count < 0:
        raise OptionError(f"families.{name}: count must be an integer from 0 up, not {count!r}.")
    from networkx import is_isomorphic

    generator = torch.Generator().manual_seed(seed)
    pairs: list[Group] = []
    while len(pairs) < count:
        kind, *graphs = draw(generator)
        if not is_isomorphic(*map(to_networkx, graphs)):
            pairs.append(Group(f"number {len(pairs)}, {kind}", tuple(graphs)))
    return pairs


def _integer(low: int, high: int, generator: torch.Generator) -> int:
    return int(torch.randint(low, high, (), generator=generator))


def _regular(n: int, degree: int, generator: torch.Generator) -> Graph:
    """Pairs the ends of edges at random until there is no self-loop and no edge occurs twice."""
    ends = torch.arange(n).repeat(degree)
    while True:
        pairs = ends[torch.randperm(n * degree, generator=generator)].reshape(-1, 2).sort(1).values
        if not bool((pairs[:, 0] == pairs[:, 1]).any()) and len(torch.unique(pairs, dim=0)) == len(pairs):
            return undirected(n, pairs)


def _connected(n: int, more: int, generator: torch.Generator) -> Tensor:
    """The edges of a random tree, and some more."""
    tree = torch.tensor([(_integer(0, node, generator), node) for node in range(1, n)])
    pairs = torch.combinations(torch.arange(n))
    free = pairs[~(pairs[:, None] == tree).all(-1).any(1)]
    return torch.cat([tree, free[torch.randperm(len(free), generator=generator)[:more]]])


def _cover(n: int, edges: Tensor, generator: torch.Generator) -> Graph:
    crossed = torch.randint(2, (len(edges),), generator=generator) * n
    first = torch.stack([edges[:, 0], edges[:, 1] + crossed], 1)
    second = torch.stack([edges[:, 0] + n, edges[:, 1] + n - crossed], 1)
    return undirected(2 * n, torch.cat([first, second]))


def cfi(base: Any, *, twisted: bool = False) -> Graph:
    """The graph over a base, a graph of networkx, or its twisted form.

    >>> from networkx import complete_graph
    >>> cfi(complete_graph(4)), cfi(complete_graph(4), twisted=True)
    (Graph(n=16, edges=96), Graph(n=16, edges=96))
    """
    number = {edge: number for number, edge in enumerate(base.edges)}
    nodes = [
        (node, {*some})
        for node in base
        for size in range(0, base.degree(node) + 1, 2)
        for some in combinations([number for edge, number in number.items() if node in edge], size)
    ]
    edges = []
    for (i, (node, first)), (j, (other, second)) in combinations(enumerate(nodes), 2):
        edge = number.get((node, other))
        if edge is not None and ((edge in first) == (edge in second)) != (twisted and edge == 0):
            edges.append((i, j))
    return undirected(len(nodes), edges)


def cfi_pairs() -> list[Group]:
    """The graph and the twisted graph over bases of tree-width 2, then 3, then 4."""
    import networkx as nx

    bases = {
        **{f"cycle of {n}": nx.cycle_graph(n) for n in (4, 8, 16)},
        **{f"ladder of {rungs}": nx.ladder_graph(rungs) for rungs in (2, 3, 7)},
        "complete graph of 4": nx.complete_graph(4),
        "prism of 3": nx.circular_ladder_graph(3),
        "complete graph of 5": nx.complete_graph(5),
    }
    return [Group(f"over a {name}", (cfi(base), cfi(base, twisted=True))) for name, base in bases.items()]


def read_graph6(path: str | os.PathLike[str]) -> list[Graph]:
    """The graphs of a file, one on each line."""
    try:
        lines = Path(path).read_bytes().splitlines()
    except OSError as reason:
        raise DataError(f"read_graph6: {os.fspath(path)} cannot be read: {reason.strerror}.") from reason
    return [_parse(line, f"read_graph6: line {i} of {path}") for i, line in enumerate(lines, 1) if line.strip()]


def _parse(text: str | bytes, where: str) -> Graph:
    import networkx

    try:
        return as_graph(networkx.from_graph6_bytes((text.encode() if isinstance(text, str) else text).strip()))
    except (networkx.NetworkXError, ValueError, IndexError) as reason:
        raise DataError(f"{where} is not graph6: {reason}.") from reason


def load_brec(folder: str | os.PathLike[str]) -> dict[str, list[Group]]:
    """The pairs of each category of which there are files in a folder or its subfolders."""
    paths = {path.name: path for path in sorted(Path(folder).rglob("*.npy"), reverse=True)}
    if WHOLE in paths:
        return _load_whole(paths[WHOLE])
    loaded = {
        category: [pair for name in names if name in paths for pair in _load_category(paths[name])]
        for category, (_, names) in BREC.items()
    }
    if not any(loaded.values()):
        names = ", ".join(name for _, names in BREC.values() for name in names)
        raise DataError(f"load_brec: {folder} has none of BREC's files.\nIt must hold {WHOLE}, or some of {names}.")
    return {category: pairs for category, pairs in loaded.items() if pairs}


def _load_whole(path: Path) -> dict[str, list[Group]]:
    records, total = _records(path), sum(count for count, _ in BREC.values())
    if len(records) not in (2 * COPIES * total, 4 * COPIES * total):
        raise DataError(
            f"load_brec: {path} must hold {4 * COPIES * total:,} graphs, or {2 * COPIES * total:,} without the test of "
            f"reliability, but it holds {len(records):,}."
        )
    numbered = enumerate(records.reshape(-1, 2 * COPIES)[:total, :2].tolist())
    return {
        category: [_pair(f"{category} {number}", records, path) for number, records in islice(numbered, count)]
        for category, (count, _) in BREC.items()
    }


def _load_category(path: Path) -> list[Group]:
    records = _records(path)
    if len(records) % 2:
        raise DataError(f"load_brec: {path} must hold pairs of graphs, but it holds {len(records)} graphs.")
    return [_pair(f"{path.stem} {i}", pair, path) for i, pair in enumerate(records.reshape(-1, 2).tolist())]


def _pair(name: str, records: list[str | bytes], path: Path) -> Group:
    return Group(name, tuple(_parse(record, f"load_brec: a graph of {name} in {path}") for record in records))


def _records(path: Path) -> Any:
    import numpy as np

    try:
        array = np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError) as reason:
        raise DataError(f"load_brec: {path} cannot be read as an array of numpy: {reason}.") from reason
    if not isinstance(array, np.ndarray) or array.dtype.kind not in "SU":
        raise DataError(f"load_brec: {path} must be an array of graph6, which are bytes or text.")
    return array.reshape(-1)
