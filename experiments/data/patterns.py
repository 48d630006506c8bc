"""Exact numbers of occurrences of small patterns in graphs, the targets of `experiments.counting`.

An occurrence is a set of edges of the graph that is a copy of the pattern, whether or not its nodes have more edges.
Homomorphisms (maps of the pattern's nodes that keep edges) are counted by sums of products of matrices; injective ones
are an alternating sum of such counts over the partitions of the pattern's nodes, with the Moebius function as signs.
"""

from collections import Counter
from collections.abc import Sequence
from functools import cache
from itertools import permutations, product
from math import factorial, prod

import torch
from torch import Tensor

from bellnet.errors import OptionError

Edges = tuple[tuple[int, int], ...]


def _cycle(length: int) -> Edges:
    return tuple((node, (node + 1) % length) for node in range(length))


PATTERNS: dict[str, Edges] = {
    **{f"{length}-cycle": _cycle(length) for length in (3, 4, 5, 6)},
    "tailed triangle": (*_cycle(3), (2, 3)),
    "chordal cycle": (*_cycle(4), (0, 2)),
}
"""The patterns that papers on counting use, as edges."""


def count_pattern(adjacency: Tensor, pattern: str) -> Tensor:
    """The number of occurrences of the pattern that contain each node.

    The sum over the nodes divided by the number of nodes of the pattern is the number of occurrences in the graph.

    Returns:
        Integers as float64, (..., n).

    >>> square_with_a_chord = torch.tensor([[0, 1, 1, 1], [1, 0, 1, 0], [1, 1, 0, 1], [1, 0, 1, 0]])
    >>> count_pattern(square_with_a_chord, "3-cycle").tolist()
    [2.0, 1.0, 2.0, 1.0]
    """
    if pattern not in PATTERNS:
        raise OptionError(f"count_pattern: pattern must be one of {', '.join(PATTERNS)}; it is {pattern!r}.")
    if adjacency.ndim < 2 or adjacency.shape[-1] != adjacency.shape[-2]:
        shape = tuple(adjacency.shape)
        raise OptionError(f"count_pattern: adjacency must be square, (..., n, n); it has shape {shape}.")
    is_plain = bool(((adjacency == 0) | (adjacency == 1)).all()) and torch.equal(adjacency, adjacency.mT)
    if not is_plain or bool(adjacency.diagonal(dim1=-2, dim2=-1).any()):
        raise OptionError(
            "count_pattern: adjacency must be of an undirected graph without loops: zeros and ones, symmetric, with a "
            "zero diagonal. Take `a + a.mT != 0` without its diagonal."
        )
    values, (terms, n_automorphisms) = adjacency.double(), _terms(PATTERNS[pattern])
    total = sum((sign * _homomorphisms(values, edges) for edges, sign in terms.items()), values.new_zeros(()))
    return (total / n_automorphisms).round()


@cache
def _terms(pattern: Edges) -> tuple[dict[Edges, int], int]:
    """The quotients of the pattern with node 0 as root and their signs; the number of automorphisms."""
    nodes = range(1 + max(map(max, pattern)))
    terms: dict[Edges, int] = {}
    for partition in {tuple(map(labels.index, labels)) for labels in product(nodes, repeat=len(nodes))}:
        sign = prod((-1) ** (size - 1) * factorial(size - 1) for size in Counter(partition).values())
        quotient = [(partition[a], partition[b]) for a, b in pattern]
        if all(a != b for a, b in quotient):  # graphs have no self-loops
            for root in partition:
                edges = _canonical(quotient, root)
                terms[edges] = terms.get(edges, 0) + sign
    edges_of_pattern = _permuted(pattern, nodes)
    return terms, sum(_permuted(pattern, order) == edges_of_pattern for order in permutations(nodes))


def _canonical(edges: list[tuple[int, int]], root: int) -> Edges:
    """The least of all permutations of the nodes that make the root node 0."""
    orders = permutations(range(1 + max(map(max, edges))))
    return min(_permuted(edges, order) for order in orders if order[root] == 0)


def _permuted(edges: Edges | list[tuple[int, int]], order: Sequence[int]) -> Edges:
    return tuple(sorted({(min(order[a], order[b]), max(order[a], order[b])) for a, b in edges}))


def _homomorphisms(values: Tensor, edges: Edges) -> Tensor:
    """The number of homomorphisms of a connected pattern that map node 0 to each node, (..., n).

    Sums over one node of the pattern after the other, the one with the fewest neighbours first.
    """
    factors: list[tuple[Tensor, tuple[int, ...]]] = [(values, edge) for edge in edges]
    left = {node for edge in edges for node in edge} - {0}
    while left:
        around = {node: {other for _, slots in factors if node in slots for other in slots} for node in left}
        node = min(left, key=lambda node: (len(around[node]), node))
        kept = tuple(sorted(around[node] - {node}))
        operands = [operand for tensor, slots in factors if node in slots for operand in (tensor, [..., *slots])]
        factors = [factor for factor in factors if node not in factor[1]]
        factors.append((torch.einsum(*operands, [..., *kept]), kept))
        left.remove(node)
    return torch.stack([tensor for tensor, _ in factors]).prod(0)
