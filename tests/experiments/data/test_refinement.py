"""1-WL, 2-FWL and 3-FWL agree with a loop over tuples in plain Python."""

from itertools import combinations, product

import networkx as nx
import pytest

from bellnet.data import Graph, as_graph, undirected
from bellnet.errors import DataError, OptionError
from experiments.data import refinement
from experiments.data.families import cfi


def small_graphs(n):
    """All graphs of n nodes, up to isomorphism."""
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


def distinguishes(one, other, dimension):
    """Whether refinement distinguishes two graphs."""
    return len(set(refinement.refine([one, other], dimension).kinds)) == 2


@pytest.mark.parametrize(("dimension", "n"), [(1, 6), (2, 5), (3, 4)])
def test_the_same_graphs_are_distinguished_as_by_the_rule_in_plain_python(dimension, n):
    graphs = small_graphs(n)
    kinds, histories = refinement.refine(graphs, dimension).kinds, [by_hand(graph, dimension) for graph in graphs]
    for one, other in combinations(range(len(graphs)), 2):
        assert (kinds[one] == kinds[other]) == (histories[one] == histories[other])


def test_longer_cycles_take_more_rounds():
    pairs = [(cfi(nx.cycle_graph(n)), cfi(nx.cycle_graph(n), twisted=True)) for n in (4, 8, 16)]
    assert not any(distinguishes(*pair, 1) for pair in pairs)
    assert all(distinguishes(*pair, 2) for pair in pairs)
    rounds = [refinement.refine(pair, 2).rounds for pair in pairs]
    assert rounds == sorted(set(rounds))


def test_directions_and_self_loops_count():
    there, loop = undirected(2, [(0, 1)]), undirected(2, [(0, 0), (0, 1)])
    assert distinguishes(there, loop, 2)
    cycle_of_three, other = ([[0, 1, 2], [1, 2, 0]], [[0, 1, 0], [1, 2, 2]])
    directed = [Graph(3, edges, directed=True) for edges in (cycle_of_three, other)]
    assert distinguishes(*directed, 1)


def test_unknown_dimensions_and_different_sizes_are_refused():
    one, two = undirected(1, []), undirected(2, [])
    with pytest.raises(OptionError, match=r"^refine\(graphs\): dimension must be 1, 2 or 3, not 4\.$"):
        refinement.refine([one, one], 4)
    with pytest.raises(
        DataError, match=r"^refine\(graphs\): the graphs must have equally many nodes, but they have \[1, 2\]\.$"
    ):
        refinement.refine([one, two])
