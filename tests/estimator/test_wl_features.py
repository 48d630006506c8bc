"""1-WL features beside networkx's hashes, a brute force, and what 1-WL cannot distinguish."""

from collections import Counter
from itertools import pairwise

import networkx as nx
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from bellnet.data import Graph
from bellnet.estimator.wl_features import ABSENT, MAX_VALUES, Alphabet, Colours, fit_wl, unit_rows

DEPTH = 3


def graph_of(n, edges, *, labels=None, kinds=None, directed=False, features=None):
    """A graph with an edge, or both directions of it, for each pair."""
    both = list(edges) if directed else [*edges, *((v, u) for u, v in edges if u != v)]
    twice = None if kinds is None else [*kinds, *(kind for kind, (u, v) in zip(kinds, edges, strict=True) if u != v)]
    index = torch.tensor(both, dtype=torch.int64).reshape(-1, 2).T
    return Graph(
        n,
        index,
        node_labels=None if labels is None else torch.tensor(labels),
        edge_labels=None if kinds is None else torch.tensor(kinds if directed else twice),
        node_features=None if features is None else torch.tensor(features),
        directed=directed,
    )


@st.composite
def labelled_graphs(draw, *, directed=False, loops=True):
    """A graph of up to seven nodes with labels on its nodes and edges; only undirected ones have self-loops."""
    n = draw(st.integers(1, 7))
    pairs = [(u, v) for u in range(n) for v in range(n) if (u != v if directed else u < v + loops)]
    edges = draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else []
    labels = draw(st.lists(st.integers(-1, 1), min_size=n, max_size=n))
    kinds = draw(st.lists(st.integers(0, 1), min_size=len(edges), max_size=len(edges)))
    return graph_of(n, edges, labels=labels, kinds=kinds, directed=directed)


def permuted(graph, order):
    """The same graph with node i called order[i], and its edges in another order."""
    back = torch.argsort(order)
    shuffled = torch.randperm(graph.n_edges, generator=torch.Generator().manual_seed(0))
    return Graph(
        graph.n,
        order[graph.edge_index][:, shuffled],
        node_labels=None if graph.node_labels is None else graph.node_labels[back],
        edge_labels=None if graph.edge_labels is None else graph.edge_labels[shuffled],
        directed=graph.directed,
    )


def brute_force(graph, depth):
    """The colours at every depth as nested tuples."""
    labels = graph.node_labels.reshape(graph.n, -1).tolist()
    edges = [(*ends, kind) for ends, kind in zip(graph.edge_index.T.tolist(), graph.edge_labels.tolist(), strict=True)]
    rounds = [[tuple(row) for row in labels]]
    for _ in range(depth):
        last = rounds[-1]
        around = [sorted(("out", kind, last[v]) for u, v, kind in edges if u == node) for node in range(graph.n)]
        into = [
            sorted(("in", kind, last[u]) for u, v, kind in edges if v == node) if graph.directed else []
            for node in range(graph.n)
        ]
        rounds.append([(last[node], tuple(around[node]), tuple(into[node])) for node in range(graph.n)])
    return rounds


def assert_same_partition(ours, theirs):
    """Two lists of names name the same things alike."""
    pairs = set(zip(ours, theirs, strict=True))
    assert len(pairs) == len(set(ours)) == len(set(theirs))


def features(graphs, depth=DEPTH):
    colours = Colours.of(graphs, depth, Alphabet.fit(graphs, continuous=True))
    return colours.counts(colours.vocabulary()).toarray()


@pytest.mark.parametrize("directed", [False, True])
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_colours_are_those_of_a_brute_force(directed, data):
    graphs = data.draw(st.lists(labelled_graphs(directed=directed), min_size=1, max_size=4))
    colours = Colours.of(graphs, DEPTH, Alphabet.fit(graphs, continuous=False))
    expected = [brute_force(graph, DEPTH) for graph in graphs]
    for depth in range(DEPTH + 1):
        assert_same_partition(colours.hashes[depth].tolist(), [name for each in expected for name in each[depth]])


@settings(max_examples=40, deadline=None)
@given(graphs=st.lists(labelled_graphs(loops=False), min_size=1, max_size=4))
def test_colours_are_those_of_networkx(graphs):
    colours = Colours.of(graphs, DEPTH, Alphabet.fit(graphs, continuous=False))
    theirs = []
    for graph in graphs:
        of_networkx = nx.Graph()
        of_networkx.add_nodes_from((node, {"label": str(int(graph.node_labels[node]))}) for node in range(graph.n))
        for (u, v), kind in zip(graph.edge_index.T.tolist(), graph.edge_labels.tolist(), strict=True):
            of_networkx.add_edge(u, v, kind=str(kind))
        found = nx.weisfeiler_lehman_subgraph_hashes(
            of_networkx, edge_attr="kind", node_attr="label", iterations=DEPTH, digest_size=32
        )
        theirs += [found[node] for node in range(graph.n)]
    for depth in range(1, DEPTH + 1):
        assert_same_partition(colours.hashes[depth].tolist(), [hashes[depth - 1] for hashes in theirs])


@settings(max_examples=60, deadline=None)
@given(graph=labelled_graphs(), seed=st.integers(0, 100))
def test_features_are_permutation_invariant(graph, seed):
    order = torch.randperm(graph.n, generator=torch.Generator().manual_seed(seed))
    one, other = features([graph, permuted(graph, order)])
    assert (one == other).all()


def _index(graph):
    """Both directions of the edges of a graph of networkx."""
    edges = list(graph.edges)
    return torch.tensor([*edges, *((v, u) for u, v in edges)]).T


def cycles(*lengths):
    edges, start = [], 0
    for length in lengths:
        edges += [(start + node, start + (node + 1) % length) for node in range(length)]
        start += length
    return graph_of(start, edges)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (cycles(6), cycles(3, 3)),
        (cycles(4, 5), cycles(9)),
        (Graph(10, _index(nx.petersen_graph())), Graph(10, _index(nx.circulant_graph(10, [1, 5])))),
    ],
)
def test_graphs_that_1_wl_cannot_distinguish_have_equal_features(one, other):
    rows = features([one, other])
    assert (rows[0] == rows[1]).all()
    assert rows.any()


def test_depth_counts_the_rounds_after_which_paths_differ():
    """The middle of a path of seven nodes has another colour than that of nine after three rounds, not before."""
    paths = [graph_of(n, list(pairwise(range(n))), labels=[0] * n) for n in (7, 9)]
    colours = Colours.of(paths, 3, Alphabet.fit(paths, continuous=False))
    middles = colours.hashes[:, [3, 7 + 4]]
    assert (middles[:, 0] == middles[:, 1]).tolist() == [True, True, True, True]
    longer = Colours.of(paths, 4, Alphabet.fit(paths, continuous=False)).hashes[4]
    assert longer[3] != longer[7 + 4]


def test_graphs_without_labels_begin_with_their_degrees():
    star = graph_of(4, [(0, 1), (0, 2), (0, 3)])
    colours = Colours.of([star], 0, Alphabet.fit([star], continuous=False))
    assert sorted(Counter(colours.hashes[0].tolist()).values()) == [1, 3]


def test_counts_are_logarithms_and_unseen_colours_have_no_column():
    seen, unseen = graph_of(3, [], labels=[5, 5, 6]), graph_of(3, [], labels=[5, 7, 7])
    alphabet = Alphabet.fit([seen], continuous=False)
    vocabulary = Colours.of([seen], 0, alphabet).vocabulary()
    counts = Colours.of([seen, unseen], 0, alphabet).counts(vocabulary).toarray()
    assert counts.shape == (2, 2)
    assert sorted(counts[0]) == pytest.approx(np.log([2, 3]))
    assert sorted(counts[1]) == pytest.approx([0, np.log(2)])


def test_rows_have_unit_length_and_empty_rows_stay():
    graphs = [graph_of(3, [(0, 1)], labels=[0, 1, 1]), graph_of(2, [(0, 1)], labels=[8, 9])]
    alphabet = Alphabet.fit(graphs, continuous=False)
    vocabulary = Colours.of(graphs[:1], 2, alphabet).vocabulary()
    lengths = np.linalg.norm(unit_rows(Colours.of(graphs, 2, alphabet).counts(vocabulary)).toarray(), axis=1)
    assert lengths.tolist() == pytest.approx([1, 0])


def test_chunks_change_nothing(monkeypatch):
    graphs = [cycles(n) for n in range(3, 12)]
    alphabet = Alphabet.fit(graphs, continuous=False)
    whole = Colours.of(graphs, 3, alphabet).hashes
    monkeypatch.setattr("bellnet.estimator.wl_features.CHUNK", 10)
    assert (Colours.of(graphs, 3, alphabet).hashes == whole).all()


def test_features_with_few_values_are_labels_and_others_are_binned_or_left_out():
    values = torch.linspace(0, 1, 2 * MAX_VALUES).reshape(-1, 1)
    kinds = torch.arange(2 * MAX_VALUES).reshape(-1, 1) % 3
    graph = Graph(2 * MAX_VALUES, torch.empty(2, 0), node_features=torch.cat([values, kinds], 1))
    without, with_all = (Alphabet.fit([graph], continuous=continuous) for continuous in (False, True))
    assert without.node_bins[0] is None
    assert without.node_bins[1].tolist() == [0.5, 1.5]
    assert with_all.node_bins[0].tolist() == pytest.approx([0.25, 0.5, 0.75])
    assert len(set(Colours.of([graph], 0, without).hashes[0])) == 3
    assert len(set(Colours.of([graph], 0, with_all).hashes[0])) == 12


def test_edges_without_features_have_those_of_weight_one():
    plain, weighted = (
        Graph(2, [[0, 1], [1, 0]], edge_features=weights) for weights in (None, torch.tensor([[1.0], [1.0]]))
    )
    other = Graph(2, [[0, 1], [1, 0]], edge_features=torch.tensor([[3.0], [3.0]]))
    alphabet = Alphabet.fit([weighted, other], continuous=False)
    found = Colours.of([plain, weighted, other], 1, alphabet).hashes[1].reshape(3, 2)
    assert (found[0] == found[1]).all()
    assert (found[0] != found[2]).all()


def triangles_and_paths(n, seed=0):
    """Graphs, and whether each has a triangle at its end."""
    random = np.random.default_rng(seed)
    labels = random.integers(2, size=n)
    graphs = []
    for has_triangle in labels:
        length = int(random.integers(5, 10))
        edges = list(pairwise(range(length)))
        graphs.append(graph_of(length, [*edges, (0, 2)] if has_triangle else edges))
    return graphs, labels


def test_logistic_regression_learns_what_1_wl_distinguishes():
    graphs, labels = triangles_and_paths(60)
    fit = fit_wl(graphs[:40], labels[:40], np.ones(40), n_classes=2, seed=0)
    assert (fit.model.predict_logits(graphs[40:]).argmax(1) == labels[40:]).all()
    assert (fit.out_of_sample.argmax(1) == labels[:40]).mean() > 0.9


def test_ridge_regression_predicts_several_numbers():
    graphs, labels = triangles_and_paths(90)
    numbers = np.stack([labels, [graph.n / 5 for graph in graphs]], axis=1)
    fit = fit_wl(graphs[:60], numbers[:60], np.ones(60), n_classes=None, seed=0)
    assert np.abs(fit.model.predict_logits(graphs[60:]) - numbers[60:]).mean() < 0.1


def test_out_of_sample_outputs_do_not_depend_on_the_graph_s_own_label(monkeypatch):
    monkeypatch.setattr("bellnet.estimator.wl_features.DEPTHS", (2,))  # the choice may depend on it
    monkeypatch.setattr("bellnet.estimator.wl_features.PENALTIES", (1.0,))
    graphs, labels = triangles_and_paths(30)
    numbers = labels[:, None].astype(float)
    changed = numbers.copy()
    changed[7] = 5.0
    one, other = (fit_wl(graphs, y, np.ones(30), n_classes=None, seed=3).out_of_sample[7] for y in (numbers, changed))
    assert one == pytest.approx(other)


def test_a_fit_is_deterministic_and_the_seed_determines_the_splits():
    graphs, labels = triangles_and_paths(30)
    one, same, other = (fit_wl(graphs, labels, np.ones(30), n_classes=2, seed=seed) for seed in (1, 1, 2))
    assert (one.out_of_sample == same.out_of_sample).all()
    assert (one.model.coef == same.model.coef).all()
    assert (one.out_of_sample != other.out_of_sample).any()


def test_classes_may_have_few_graphs():
    graphs, labels = triangles_and_paths(12)
    labels[0] = 2
    fit = fit_wl(graphs, labels, np.ones(12), n_classes=3, seed=0)
    assert np.isfinite(fit.out_of_sample).all()
    assert fit.out_of_sample[0, 2] == ABSENT
    one_of_each = fit_wl(graphs[1:3], np.array([0, 1]), np.ones(2), n_classes=2, seed=0)
    assert np.isfinite(one_of_each.model.predict_logits(graphs)).all()


def test_graphs_of_weight_zero_have_no_effect():
    graphs, labels = triangles_and_paths(40)
    wrong, weights = labels.copy(), np.ones(40)
    wrong[:10] = 1 - wrong[:10]
    weights[:10] = 0
    fit = fit_wl(graphs, wrong, weights, n_classes=2, seed=0)
    assert (fit.model.predict_logits(graphs).argmax(1) == labels).all()
