"""The generated pairs need the dimension of WL that theory says, and are never isomorphic."""

import networkx as nx
import pytest
import torch

from bellnet.data import to_dense, to_networkx
from bellnet.errors import OptionError
from experiments.data import families, refinement
from tests.experiments.data.test_refinement import distinguishes

PARAMETERS = [(16, 6, 2, 2), (25, 12, 5, 6)]


@pytest.fixture(scope="module")
def strongly_regular():
    return {parameters: families.strongly_regular(*parameters) for parameters in PARAMETERS}


@pytest.mark.parametrize("parameters", PARAMETERS)
def test_graphs_are_strongly_regular_with_their_parameters(strongly_regular, parameters):
    n, degree, common, other = parameters
    identity = torch.eye(n)
    for graph in strongly_regular[parameters]:
        links = to_dense(graph)
        assert torch.equal(links @ links, degree * identity + common * links + other * (1 - identity - links))


@pytest.mark.parametrize(("parameters", "count"), [*zip(PARAMETERS, (2, 15), strict=True)])
def test_all_strongly_regular_graphs_are_there_and_none_twice(strongly_regular, parameters, count):
    """Those of (25, 12, 5, 6) were counted by Paulus in 1973."""
    graphs = strongly_regular[parameters]
    assert len(graphs) == count
    assert len(set(refinement.refine(graphs, 2).kinds)) == 1  # 2-FWL distinguishes none
    assert len(set(refinement.refine(graphs, 3).kinds)) == count  # so no two are isomorphic


def test_other_parameters_are_refused_with_a_way_out():
    with pytest.raises(OptionError) as caught:
        families.strongly_regular(10, 3, 0, 1)
    assert str(caught.value) == (
        "strongly_regular: the parameters must be (16, 6, 2, 2) or (25, 12, 5, 6), not (10, 3, 0, 1).\n"
        "Graphs with others can be read from files of graph6."
    )


def test_the_graph_over_four_linked_nodes_is_a_rooks_and_the_twisted_one_shrikhandes(strongly_regular):
    """Or the other way round; both have 16 nodes of degree 6."""
    (rook, shrikhande), base = strongly_regular[PARAMETERS[0]], nx.complete_graph(4)
    pair = families.cfi(base), families.cfi(base, twisted=True)
    matches = [[nx.is_isomorphic(to_networkx(one), to_networkx(other)) for other in (rook, shrikhande)] for one in pair]
    assert sorted(matches) == [[False, True], [True, False]]


def test_a_cycle_becomes_two_cycles_and_twisted_one_of_twice_the_length():
    two, one = families.cfi(nx.cycle_graph(5)), families.cfi(nx.cycle_graph(5), twisted=True)
    assert [len(part) for part in nx.connected_components(to_networkx(two))] == [5, 5]
    assert [len(part) for part in nx.connected_components(to_networkx(one))] == [10]


def test_the_dimension_needed_is_the_tree_width_of_the_base():
    width = {"cycle": 2, "ladder": 2, "complete graph of 4": 3, "prism": 3, "complete graph of 5": 4}
    for pair in families.cfi_pairs():
        needed = next(number for name, number in width.items() if f"a {name}" in pair.name)
        found = [distinguishes(*pair.graphs, dimension) for dimension in (1, 2)]
        assert found == [False, needed <= 2]
        if pair.graphs[0].n <= 24:
            assert distinguishes(*pair.graphs, 3)


@pytest.mark.parametrize("make", [families.regular_pairs, families.cover_pairs])
def test_drawn_pairs_are_a_function_of_their_seed_not_isomorphic_and_not_distinguished_by_1_wl(make):
    pairs = make(12, seed=3)
    assert [pair.graphs for pair in pairs] == [pair.graphs for pair in make(12, seed=3)]
    for pair in pairs:
        assert not nx.is_isomorphic(*map(to_networkx, pair.graphs))
        assert not distinguishes(*pair.graphs, 1)


def test_regular_pairs_are_regular():
    for pair in families.regular_pairs(12):
        for graph in pair.graphs:
            assert len(set(graph.edge_index[0].bincount(minlength=graph.n).tolist())) == 1


def test_a_negative_count_is_refused():
    with pytest.raises(OptionError, match=r"^families.cover_pairs: count must be an integer from 0 up, not -1\.$"):
        families.cover_pairs(-1)
