"""Generated graphs for classification, without a download.

`citations` is one graph with node labels, `random_graphs` have no labels. The others are sets of graphs with a label
each: classes alternate, all classes have the same distribution of sizes, and nodes are permuted at random, so only the
structure distinguishes the classes. The classes that are distinguished:

| set | classes | by degrees | by 1-WL (colour refinement), and networks of order 2 | by order 3 |
|---|---|---|---|---|
| `leaf_pairs` | 2 | none | all | all |
| `cycles_and_pairs` | 4 | cycles from pairs | all but the two kinds of cycles | all |
| `skip_links` | up to 10 | none | none | all |
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from bellnet.data.graph import Graph, undirected
from bellnet.errors import OptionError

Edges = list[tuple[int, int]]

WITHIN, ACROSS = 5, 1
"""The mean number of links of a paper of `citations` to papers of its own subject, and of others."""
OFTEN, SELDOM = 0.2, 0.08
"""The probability of a word in a paper of its subject, and in any other paper."""


def leaf_pairs(count: int = 200, *, nodes: tuple[int, int] = (8, 16), seed: int = 0) -> tuple[list[Graph], Tensor]:
    """A cycle with two leaves: side by side (label 0) or apart (label 1); all graphs of one size have the same degrees.

    Args:
        count: The number of graphs.
        nodes: The least and the largest number of nodes, at least 6.
        seed: The seed of the random numbers.

    >>> graphs, labels = leaf_pairs(4)
    >>> labels.tolist(), [graph.n_edges == 2 * graph.n for graph in graphs]
    ([0, 1, 0, 1], [True, True, True, True])
    """
    return _make("leaf_pairs", [_leaves_side_by_side, _leaves_apart], count, nodes, seed)


def cycles_and_pairs(
    count: int = 400, *, nodes: tuple[int, int] = (8, 16), seed: int = 0
) -> tuple[list[Graph], Tensor]:
    """Four classes with as many edges as nodes: one cycle, two cycles, leaves side by side, leaves apart.

    Degrees distinguish cycles (labels 0 and 1) from cycles with leaves (2 and 3), 1-WL also 2 from 3, and only order 3
    distinguishes one cycle from two.

    The arguments are those of `leaf_pairs`.
    """
    kinds = [lambda n, generator: _cycle(range(n)), _two_cycles, _leaves_side_by_side, _leaves_apart]
    return _make("cycles_and_pairs", kinds, count, nodes, seed)


def skip_links(
    count: int = 150, *, n: int = 41, skips: Sequence[int] = (2, 3, 4, 5, 6, 9, 11, 12, 13, 16), seed: int = 0
) -> tuple[list[Graph], Tensor]:
    """Circular skip link graphs: a cycle of n nodes with links between nodes at distance `skip`.

    The label is the index of the skip in `skips`. All nodes have degree 4, so 1-WL distinguishes no classes; the
    default classes of 41 nodes are pairwise not isomorphic.

    Args:
        count: The number of graphs.
        n: The number of nodes.
        skips: The skip of each class, from 2 up and less than n / 2.
        seed: The seed of the random numbers.
    """
    for skip in skips:
        if type(skip) is not int or not 2 <= skip < n / 2:
            raise OptionError(
                f"generated.skip_links: every skip must be an integer from 2 up and less than n / 2 = {n / 2:g}, "
                f"but one is {skip!r}."
            )

    def kind(skip: int) -> Callable[[int, torch.Generator], Edges]:
        return lambda n, generator: _cycle(range(n)) + [(node, (node + skip) % n) for node in range(n)]

    return _make("skip_links", [kind(skip) for skip in skips], count, (n, n), seed, least=5)


def citations(n: int = 400, *, classes: int = 4, words: int = 60, seed: int = 0) -> tuple[Graph, Tensor]:
    """One graph of papers that cite each other, with words as features and subjects as labels of its nodes.

    A stochastic block model with noisy features: a paper is linked with five others of its subject and with one of
    another, on average, and the words of its subject are slightly more frequent in it. Subjects have equally many
    papers.

    Args:
        n: The number of papers, at least as many as subjects.
        classes: The number of subjects, at least 2.
        words: The number of words; feature k is 1 in papers with word k, which belongs to subject k modulo `classes`.
        seed: The seed of the random numbers.

    >>> graph, labels = citations(100)
    >>> graph.node_features.shape, labels.bincount().tolist()
    (torch.Size([100, 60]), [25, 25, 25, 25])
    """
    for name, value, least in (("classes", classes, 2), ("n", n, classes), ("words", words, 0)):
        if type(value) is not int or value < least:
            raise OptionError(f"generated.citations: {name} must be an integer from {least} up, not {value!r}.")
    generator = torch.Generator().manual_seed(seed)
    labels = (torch.arange(n) % classes)[torch.randperm(n, generator=generator)]
    # Pairs are uniform; all pairs of one subject are kept, and the fraction of the others that gives the mean number.
    pairs = torch.randint(n, (n * WITHIN * classes // 2, 2), generator=generator).sort(1).values
    is_within = labels[pairs[:, 0]] == labels[pairs[:, 1]]
    is_kept = is_within | (torch.rand(len(pairs), generator=generator) < ACROSS / (WITHIN * (classes - 1)))
    linked = torch.unique(pairs[is_kept & (pairs[:, 0] != pairs[:, 1])], dim=0)
    chance = torch.where(labels[:, None] == torch.arange(words) % classes, OFTEN, SELDOM)
    return replace(undirected(n, linked), node_features=chance.bernoulli(generator=generator)), labels


def random_graphs(
    count: int = 100, *, nodes: tuple[int, int] = (12, 20), degree: float = 4, seed: int = 0
) -> list[Graph]:
    """Graphs of different sizes in which each pair of nodes is linked with the same probability.

    Args:
        count: The number of graphs.
        nodes: The least and the largest number of nodes, at least 2.
        degree: The mean number of neighbours of a node.
        seed: The seed of the random numbers.

    >>> random_graphs(2, nodes=(12, 12))
    [Graph(n=12, edges=58), Graph(n=12, edges=46)]
    """
    if not 0 <= degree < nodes[0]:
        raise OptionError(
            f"generated.random_graphs: degree must be from 0 up and less than the least number of nodes, {nodes[0]}; "
            f"it is {degree!r}."
        )

    def pairs(n: int, generator: torch.Generator) -> Tensor:
        return (torch.rand(n, n, generator=generator) < degree / (n - 1)).triu(1).nonzero()

    return _make("random_graphs", [pairs], count, nodes, seed, least=2)[0]


def _make(
    name: str,
    kinds: Sequence[Callable[[int, torch.Generator], Edges | Tensor]],
    count: int,
    nodes: tuple[int, int],
    seed: int,
    *,
    least: int = 6,
) -> tuple[list[Graph], Tensor]:
    if type(count) is not int or count < 0:
        raise OptionError(f"generated.{name}: count must be an integer from 0 up, not {count!r}.")
    if not least <= nodes[0] <= nodes[1]:
        raise OptionError(
            f"generated.{name}: nodes must be the least and the largest number of nodes, from {least} up, "
            f"not {nodes!r}."
        )
    generator = torch.Generator().manual_seed(seed)
    labels = torch.arange(count) % max(len(kinds), 1)
    graphs = []
    for label in labels.tolist():
        n = int(torch.randint(nodes[0], nodes[1] + 1, (), generator=generator))
        order = torch.randperm(n, generator=generator)
        graphs.append(undirected(n, order[torch.as_tensor(kinds[label](n, generator))]))
    return graphs, labels


def _cycle(nodes: Sequence[int]) -> Edges:
    return [(node, nodes[(index + 1) % len(nodes)]) for index, node in enumerate(nodes)]


def _two_cycles(n: int, generator: torch.Generator) -> Edges:
    first = int(torch.randint(3, n - 2, (), generator=generator))
    return _cycle(range(first)) + _cycle(range(first, n))


def _leaves_side_by_side(n: int, generator: torch.Generator) -> Edges:
    return [*_cycle(range(n - 2)), (0, n - 2), (1, n - 1)]


def _leaves_apart(n: int, generator: torch.Generator) -> Edges:
    other = int(torch.randint(2, n - 3, (), generator=generator))
    return [*_cycle(range(n - 2)), (0, n - 2), (other, n - 1)]
