"""Colour refinement does what a loop over tuples in plain Python does, and isomorphism is what networkx finds."""

from itertools import combinations, product

import networkx as nx
import pytest
import torch

from bellnet.data import Graph, as_graph, undirected
from bellnet.errors import DataError, OptionError
from experiments.data import refinement
from experiments.data.families import cfi, complete, cycle


def small_graphs(n):
    """All graphs of n nodes, up to renumbering."""
    return [as_graph(graph) for graph in nx.graph_atlas_g() if graph.number_of_nodes() == n]


def by_hand(graph, dimension):
    """How often every colour occurs at the end; a colour is written out as the whole history of a tuple."""
    linked = {*map(tuple, graph.edge_index.T.tolist())}
    nodes = range(graph.n)

    def kind(nodes):
        pairs = list(product(range(len(nodes)), repeat=2))
        return tuple((nodes[a] == nodes[b], (nodes[a], nodes[b]) in linked) for a, b in pairs)

    def seen(colours, nodes, other):
        if dimension == 1:
            return (other, *nodes) in linked, colours[(other,)]
        return tuple(colours[(*nodes[:slot], other, *nodes[slot + 1 :])] for slot in range(dimension))

    colours = {key: hash(kind(key)) for key in product(nodes, repeat=dimension)}
    for _ in range(graph.n**dimension if dimension == 1 else 6):
        colours = {key: hash((colours[key], *sorted(seen(colours, key, other) for other in nodes))) for key in colours}
    return tuple(sorted(colours.values()))


@pytest.mark.parametrize(("dimension", "n"), [(1, 6), (2, 5), (3, 4)])
def test_graphs_are_left_alike_by_the_same_rule_written_out_by_hand(dimension, n):
    graphs = small_graphs(n)
    kinds, histories = refinement.refine(graphs, dimension).kinds, [by_hand(graph, dimension) for graph in graphs]
    for one, other in combinations(range(len(graphs)), 2):
        assert (kinds[one] == kinds[other]) == (histories[one] == histories[other])


def test_rounds_say_what_kinds_say():
    graphs = small_graphs(5)
    kinds = refinement.refine(graphs).kinds
    for one, other in combinations(range(len(graphs)), 2):
        assert (refinement.rounds_apart(graphs[one], graphs[other]) is None) == (kinds[one] == kinds[other])


def test_longer_cycles_take_more_rounds_and_another_number_of_nodes_none():
    pairs = [(cfi(cycle(n)), cfi(cycle(n), twisted=True)) for n in (4, 8, 16)]
    assert [refinement.rounds_apart(*pair) for pair in pairs] == [None, None, None]
    assert [refinement.rounds_apart(*pair, 2) for pair in pairs] == [1, 2, 3]
    assert refinement.rounds_apart(pairs[0][0], pairs[1][0]) == 0


def test_directions_and_self_loops_count():
    there, loop = undirected(2, [(0, 1)]), undirected(2, [(0, 0), (0, 1)])
    assert refinement.rounds_apart(there, loop, 2) == 0
    cycle_of_three, other = ([[0, 1, 2], [1, 2, 0]], [[0, 1, 0], [1, 2, 2]])
    directed = [Graph(3, edges, directed=True) for edges in (cycle_of_three, other)]
    assert refinement.rounds_apart(*directed) == 1


def test_isomorphism_is_what_networkx_finds():
    generator = torch.Generator().manual_seed(0)
    graphs = [graph for graph in small_graphs(6) if graph.n_edges in (12, 14)]
    for one, other in product(range(len(graphs)), repeat=2):
        renumbered = Graph(6, torch.randperm(6, generator=generator)[graphs[other].edge_index])
        assert refinement.are_isomorphic(graphs[one], renumbered) == (one == other)


def test_isomorphism_sees_what_refinement_does_not():
    alike = cfi(complete(4)), cfi(complete(4), twisted=True)
    assert refinement.rounds_apart(*alike, 2) is None
    assert not refinement.are_isomorphic(*alike)
    assert refinement.are_isomorphic(undirected(0, []), undirected(0, []))
    assert not refinement.are_isomorphic(undirected(2, []), undirected(2, [(0, 1)]))


def test_what_cannot_be_refined_is_refused():
    one, two = undirected(1, []), undirected(2, [])
    with pytest.raises(OptionError, match=r"^rounds_apart\(first, second\): dimension must be 1, 2 or 3, not 4\.$"):
        refinement.rounds_apart(one, one, 4)
    with pytest.raises(
        DataError, match=r"^refine\(graphs\): the graphs must have equally many nodes, but they have \[1, 2\]\.$"
    ):
        refinement.refine([one, two])
