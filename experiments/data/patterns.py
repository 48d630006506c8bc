"""How often small patterns occur in graphs, exactly: what networks are asked to count.

An occurrence is a set of edges of the graph that is a copy of the pattern, whether or not there are more edges between
its nodes. Maps of the pattern's nodes to nodes of the graph that keep edges are easy to count, by a chain of matrix
products; those that send no two nodes to one are an alternating sum of such numbers over the partitions of the
pattern's nodes, with the Moebius function of the lattice as signs.
"""

from collections import Counter
from collections.abc import Mapping
from functools import cache
from itertools import permutations
from math import factorial, prod
from types import MappingProxyType

import torch
from torch import Tensor

from bellnet.errors import OptionError

Edges = tuple[tuple[int, int], ...]


def _cycle(length: int) -> Edges:
    return tuple((node, (node + 1) % length) for node in range(length))


PATTERNS: Mapping[str, Edges] = MappingProxyType(
    {
        "3-cycle": _cycle(3),
        "4-cycle": _cycle(4),
        "5-cycle": _cycle(5),
        "6-cycle": _cycle(6),
        "tailed triangle": (*_cycle(3), (2, 3)),
        "chordal cycle": (*_cycle(4), (0, 2)),
    }
)
"""The patterns that papers on counting use, each by its edges."""


def count_pattern(adjacency: Tensor, pattern: str) -> Tensor:
    """For every node, in how many occurrences of the pattern it takes part.

    Summed over the nodes and divided by the number of nodes of the pattern this is how often it occurs in the graph.

    Returns:
        Whole numbers as float64, (..., n).

    >>> square_with_a_chord = torch.tensor([[0, 1, 1, 1], [1, 0, 1, 0], [1, 1, 0, 1], [1, 0, 1, 0]])
    >>> count_pattern(square_with_a_chord, "3-cycle").tolist()
    [2.0, 1.0, 2.0, 1.0]
    """
    if pattern not in PATTERNS:
        raise OptionError(f"count_pattern: pattern must be one of {', '.join(PATTERNS)}; it is {pattern!r}.")
    _check_adjacency(adjacency)
    values = adjacency.to(torch.float64)
    found = values.new_zeros(adjacency.shape[:-1])
    for edges, weight in _rooted_terms(PATTERNS[pattern]).items():
        found += weight * _n_maps(values, edges)
    return (found / _n_symmetries(PATTERNS[pattern])).round()


def _check_adjacency(adjacency: Tensor) -> None:
    if adjacency.ndim < 2 or adjacency.shape[-1] != adjacency.shape[-2]:
        raise OptionError(
            f"count_pattern: adjacency must be square, (..., n, n); it has shape {tuple(adjacency.shape)}."
        )
    is_plain = bool(((adjacency == 0) | (adjacency == 1)).all()) and torch.equal(adjacency, adjacency.mT)
    if not is_plain or bool(adjacency.diagonal(dim1=-2, dim2=-1).any()):
        raise OptionError(
            "count_pattern: adjacency must be of an undirected graph without loops: zeros and ones, symmetric, with a "
            "zero diagonal. Take `a + a.mT != 0` without its diagonal."
        )


@cache
def _rooted_terms(pattern: Edges) -> dict[Edges, int]:
    """The patterns whose maps are counted, with their factors; node 0 is the one whose image is asked for."""
    n_nodes = 1 + max(max(edge) for edge in pattern)
    factors: dict[Edges, int] = {}
    for partition in _partitions(n_nodes):
        merged = {(partition[a], partition[b]) for a, b in pattern}
        if any(a == b for a, b in merged):  # no node of a graph is its own neighbour
            continue
        sign = prod((-1) ** (size - 1) * factorial(size - 1) for size in Counter(partition).values())
        for role in range(n_nodes):
            edges = _first_numbering(merged, partition[role])
            factors[edges] = factors.get(edges, 0) + sign
    return factors


def _partitions(n_nodes: int) -> list[tuple[int, ...]]:
    """All set partitions, as restricted growth strings."""
    found: list[tuple[int, ...]] = [()]
    for _ in range(n_nodes):
        found = [(*start, block) for start in found for block in range(max(start, default=-1) + 2)]
    return found


def _first_numbering(edges: set[tuple[int, int]], root: int) -> Edges:
    """One pattern for all that differ in the numbering of their nodes only; the root becomes node 0."""
    others = sorted({node for edge in edges for node in edge} - {root})
    numberings = ({root: 0} | dict(zip(order, range(1, 1 + len(order)), strict=True)) for order in permutations(others))
    return min(tuple(sorted({(min(to[a], to[b]), max(to[a], to[b])) for a, b in edges})) for to in numberings)


def _n_maps(values: Tensor, edges: Edges) -> Tensor:
    """The number of maps of a connected pattern that keep its edges and send node 0 to each node, (..., n).

    One node of the pattern after the other is summed out, the one with the fewest neighbours first: in the patterns
    that occur here no more than three are ever looked at together.
    """
    factors: list[tuple[Tensor, tuple[int, ...]]] = [(values, edge) for edge in edges]
    left = {node for edge in edges for node in edge} - {0}
    while left:
        around = {node: {other for _, slots in factors if node in slots for other in slots} for node in left}
        node = min(left, key=lambda node: (len(around[node]), node))
        kept = tuple(sorted(around[node] - {node}))
        joined = [factor for factor in factors if node in factor[1]]
        operands = [operand for tensor, slots in joined for operand in (tensor, [..., *slots])]
        factors = [factor for factor in factors if node not in factor[1]]
        factors.append((torch.einsum(*operands, [..., *kept]), kept))
        left.remove(node)
    return torch.stack([tensor for tensor, _ in factors]).prod(0)


@cache
def _n_symmetries(pattern: Edges) -> int:
    kept = {frozenset(edge) for edge in pattern}
    nodes = range(1 + max(max(edge) for edge in pattern))
    return sum({frozenset((to[a], to[b])) for a, b in pattern} == kept for to in permutations(nodes))
