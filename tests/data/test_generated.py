"""Generated graphs are distinguished by degrees, by 1-WL or by networks of order 3, as documented."""

from collections import Counter
from itertools import combinations

import networkx as nx
import pytest
import torch
from sklearn.linear_model import LogisticRegression

import bellnet as bn
from bellnet.data import generated, to_networkx, to_padded
from bellnet.errors import OptionError

SETS = {
    "leaf_pairs": generated.leaf_pairs,
    "cycles_and_pairs": generated.cycles_and_pairs,
    "skip_links": generated.skip_links,
}


def degrees(graph):
    return tuple(sorted(dict(to_networkx(graph).degree).values()))


def colours(graph):
    """What colour refinement sees at the end: how often each colour occurs, colours named by how they came about."""
    network = to_networkx(graph)
    colour = dict.fromkeys(network, "")
    for _ in range(graph.n):
        colour = {
            node: str(hash((colour[node], tuple(sorted(colour[near] for near in network[node]))))) for node in network
        }
    return tuple(sorted(Counter(colour.values()).items()))


def told_apart(graphs, labels, view):
    """The pairs of classes of which no two graphs look alike."""
    seen = {}
    for graph, label in zip(graphs, labels.tolist(), strict=True):
        seen.setdefault(label, set()).add(view(graph))
    return {pair for pair in combinations(sorted(seen), 2) if not seen[pair[0]] & seen[pair[1]]}


@pytest.mark.parametrize("name", SETS)
def test_generated_graphs_depend_on_the_seed_alone(name):
    graphs, labels = SETS[name](30, seed=5)
    again, labels_again = SETS[name](30, seed=5)
    other, _ = SETS[name](30, seed=6)
    assert graphs == again
    assert torch.equal(labels, labels_again)
    assert graphs != other
    assert SETS[name](10, seed=5)[0] == graphs[:10]


def test_leaf_pairs_are_distinguished_by_1_wl_but_not_by_degrees():
    graphs, labels = generated.leaf_pairs(120, nodes=(8, 10))
    assert told_apart(graphs, labels, degrees) == set()
    assert told_apart(graphs, labels, colours) == {(0, 1)}


def test_cycles_and_pairs_are_distinguished_in_part_by_degrees_and_1_wl():
    graphs, labels = generated.cycles_and_pairs(120, nodes=(8, 10))
    assert told_apart(graphs, labels, degrees) == {(0, 2), (0, 3), (1, 2), (1, 3)}
    assert told_apart(graphs, labels, colours) == {(0, 2), (0, 3), (1, 2), (1, 3), (2, 3)}
    pieces = [nx.number_connected_components(to_networkx(graph)) for graph in graphs]
    assert pieces == [2 if label == 1 else 1 for label in labels.tolist()]
    assert all(graph.n_edges == 2 * graph.n for graph in graphs)


def test_skip_links_are_not_isomorphic_but_equal_for_1_wl():
    graphs, labels = generated.skip_links(20)
    assert told_apart(graphs, labels, colours) == set()
    spectra = torch.linalg.eigvalsh(to_padded(graphs, dtype=torch.float64).values.squeeze(-1))
    for a, b in combinations(range(20), 2):
        is_same = bool((spectra[a] - spectra[b]).abs().max() < 1e-9)
        assert is_same == (a % 10 == b % 10)
        assert graphs[a] != graphs[b]  # also within a class: the nodes have other numbers


def test_sizes_do_not_depend_on_the_class():
    graphs, labels = generated.cycles_and_pairs(800, nodes=(8, 12))
    sizes = torch.tensor([graph.n for graph in graphs])
    for label in range(4):
        assert set(sizes[labels == label].tolist()) == {8, 9, 10, 11, 12}
        assert abs(sizes[labels == label].double().mean() - 10) < 0.4


def test_nodes_are_permuted_at_random():
    graphs, _ = generated.skip_links(200, n=11, skips=(2,))
    links = torch.stack([to_padded([graph]).values[0, :, :, 0] for graph in graphs]).mean(0)
    off = links[~torch.eye(11, dtype=torch.bool)]
    assert (off - 0.4).abs().max() < 0.15  # four of ten others are neighbours, whatever the number


def test_a_network_of_order_two_distinguishes_leaf_pairs_but_not_one_cycle_from_two():
    net = bn.InvariantNet("n n", [1, 16, 16, 16], 8).double()
    graphs, labels = generated.cycles_and_pairs(40, nodes=(8, 8))
    seen = net(to_padded(graphs, dtype=torch.float64))
    one, two, near, far = (seen[labels == label] for label in range(4))
    torch.testing.assert_close(one, two[:1].expand_as(one))
    assert (near[:1] - far).abs().amax(1).min() > 1e-9


def test_a_network_of_order_three_distinguishes_all_classes():
    relu = bn.Pointwise(torch.nn.ReLU())
    net = torch.nn.Sequential(
        bn.EquivariantLinear("n n -> n n n", 1, 8),
        relu,
        bn.EquivariantLinear("n n n -> n n n", 8, 8),
        relu,
        bn.EquivariantLinear("n n n -> n n n", 8, 8),
        relu,
        bn.EquivariantLinear("n n n ->", 8, 8),
    ).double()
    for graphs, labels in (
        generated.cycles_and_pairs(8, nodes=(8, 8)),
        generated.skip_links(4, n=13, skips=(2, 3)),
    ):
        with torch.no_grad():
            seen = net(to_padded(graphs, dtype=torch.float64))
        for a, b in combinations(range(len(graphs)), 2):
            if labels[a] != labels[b]:
                assert (seen[a] - seen[b]).abs().max() > 1e-9


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("count", [-1, 2.0])
def test_an_invalid_count_raises_an_error(name, count):
    with pytest.raises(OptionError, match=f"generated.{name}: count must be"):
        SETS[name](count)


@pytest.mark.parametrize("nodes", [(5, 8), (9, 8)])
def test_an_invalid_number_of_nodes_raises_an_error(nodes):
    with pytest.raises(OptionError, match="nodes must be the least and the largest"):
        generated.leaf_pairs(nodes=nodes)


@pytest.mark.parametrize("skip", [1, 6, 2.0])
def test_an_invalid_skip_raises_an_error(skip):
    with pytest.raises(OptionError, match="every skip must be"):
        generated.skip_links(n=11, skips=(2, skip))


def test_citations_depend_on_the_seed_alone():
    graph, labels = generated.citations(50, seed=5)
    again, labels_again = generated.citations(50, seed=5)
    other, _ = generated.citations(50, seed=6)
    assert graph == again
    assert torch.equal(labels, labels_again)
    assert graph != other


@pytest.mark.parametrize(("n", "classes"), [(2, 2), (11, 3), (1000, 7)])
def test_subjects_have_equally_many_papers(n, classes):
    graph, labels = generated.citations(n, classes=classes)
    counts = labels.bincount(minlength=classes)
    assert graph.n == len(labels) == n
    assert len(counts) == classes
    assert counts.max() - counts.min() <= 1


def test_papers_cite_five_of_their_subject_and_one_of_another():
    graph, labels = generated.citations(2000, classes=4)
    source, target = graph.edge_index
    is_within = labels[source] == labels[target]
    assert abs(is_within.sum() / graph.n - 5) < 0.3
    assert abs((~is_within).sum() / graph.n - 1) < 0.15
    assert not (source == target).any()


def test_words_are_more_frequent_in_their_subject():
    graph, labels = generated.citations(2000, classes=4, words=10)
    is_own = labels[:, None] == torch.arange(10) % 4
    assert set(graph.node_features.unique().tolist()) == {0, 1}
    assert abs(graph.node_features[is_own].mean() - 0.2) < 0.02
    assert abs(graph.node_features[~is_own].mean() - 0.08) < 0.01


def test_neighbours_predict_the_subject_better_than_words():
    graph, labels = generated.citations()
    own = graph.node_features
    around = own.index_add(0, graph.edge_index[0], own[graph.edge_index[1]])
    is_known = torch.arange(graph.n) < 80
    first, second = (
        LogisticRegression().fit(seen[is_known], labels[is_known]).score(seen[~is_known], labels[~is_known])
        for seen in (own, around)
    )
    assert 0.35 < first < second - 0.1


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"n": 3}, "n must be an integer from 4 up, not 3"),
        ({"n": 40.0}, "n must be an integer from 4 up, not 40.0"),
        ({"classes": 1}, "classes must be an integer from 2 up, not 1"),
        ({"words": -1}, "words must be an integer from 0 up, not -1"),
    ],
)
def test_invalid_numbers_of_papers_subjects_and_words_raise_errors(options, words):
    with pytest.raises(OptionError, match=f"generated.citations: {words}"):
        generated.citations(**options)
