"""Patterns are counted as one counts them by hand: every copy in the graph, found one after the other."""

import networkx as nx
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from networkx.algorithms.isomorphism import GraphMatcher

from bellnet.data import generated, to_dense
from bellnet.errors import OptionError
from experiments.data.patterns import PATTERNS, count_pattern


def copies(graph: nx.Graph, pattern: str) -> set[frozenset]:
    """Every copy of the pattern, as its set of edges."""
    found = set()
    for match in GraphMatcher(graph, nx.Graph(PATTERNS[pattern])).subgraph_monomorphisms_iter():
        node_of = {role: node for node, role in match.items()}
        found.add(frozenset(frozenset((node_of[a], node_of[b])) for a, b in PATTERNS[pattern]))
    return found


@pytest.mark.parametrize("pattern", PATTERNS)
@given(n=st.integers(0, 8), chance=st.sampled_from([0.3, 0.6, 1.0]), seed=st.integers(0, 99))
def test_a_node_is_in_as_many_patterns_as_there_are_copies_with_it(pattern, n, chance, seed):
    n = min(n, 6) if chance == 1 else n
    graph = nx.gnp_random_graph(n, chance, seed=seed)
    by_hand = torch.zeros(n, dtype=torch.float64)
    for copy in copies(graph, pattern):
        by_hand[sorted({node for edge in copy for node in edge})] += 1
    assert torch.equal(count_pattern(torch.tensor(nx.to_numpy_array(graph)).reshape(n, n), pattern), by_hand)


def test_graphs_are_counted_side_by_side_and_padding_changes_nothing():
    graphs = [to_dense(graph) for graph in generated.random_graphs(3, nodes=(5, 9), degree=3)]
    batch = torch.stack([torch.nn.functional.pad(a, (0, 9 - len(a), 0, 9 - len(a))) for a in graphs])
    together = count_pattern(batch, "5-cycle")
    for matrix, counts in zip(graphs, together, strict=True):
        assert torch.equal(counts[: len(matrix)], count_pattern(matrix, "5-cycle"))
        assert not counts[len(matrix) :].any()


def test_random_graphs_have_the_given_degree():
    graphs = generated.random_graphs(400, nodes=(10, 30), degree=6)
    assert {graph.n for graph in graphs} == set(range(10, 31))
    assert sum(graph.n_edges for graph in graphs) / sum(graph.n for graph in graphs) == pytest.approx(6, rel=0.03)


@pytest.mark.parametrize(
    ("adjacency", "pattern", "words"),
    [
        (torch.zeros(3, 3), "7-cycle", "pattern must be one of 3-cycle, .*; it is '7-cycle'"),
        (torch.zeros(3, 2), "3-cycle", r"adjacency must be square, .* it has shape \(3, 2\)"),
        (torch.eye(3), "3-cycle", "without loops"),
        (torch.ones(3, 3).triu(1), "3-cycle", "symmetric"),
        (2 * (torch.ones(3, 3) - torch.eye(3)), "3-cycle", "zeros and ones"),
    ],
)
def test_what_cannot_be_counted_is_refused(adjacency, pattern, words):
    with pytest.raises(OptionError, match=words):
        count_pattern(adjacency, pattern)


def test_a_degree_that_no_graph_has_is_refused():
    with pytest.raises(
        OptionError, match="degree must be from 0 up and less than the least number of nodes, 4; it is 5"
    ):
        generated.random_graphs(nodes=(4, 9), degree=5)
