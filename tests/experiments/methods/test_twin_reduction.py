"""Structurally equivalent nodes, and the network of Table 3 on graphs with one node for each class of them."""

from itertools import combinations

import pytest
import torch

from bellnet import Sparse
from bellnet.data import Graph
from experiments import graph_data
from experiments.graph_data import load_graphs
from experiments.methods import ign
from experiments.methods.ign import encode, encoding_of, ign_net
from experiments.methods.twin_reduction import ReducedBatch, ReducedGraph, equivalent_nodes
from experiments.run import run_cells
from tests.experiments.graphs import OPTIONS, tiny, write_set


def graph_of(has_edge, labels=None, *, directed=False):
    """The graph of a matrix of zeros and ones."""
    return Graph(len(has_edge), has_edge.nonzero().T, node_labels=labels, directed=directed)


def blown_up(kinds, n, *, seed, labelled=False, loops=False):
    """A random graph of n nodes in which each is one of some kinds, in any order; kinds may be cliques or not."""
    draw = torch.Generator().manual_seed(seed)
    small = torch.rand(kinds, kinds, generator=draw) < 0.4
    small = small | small.T
    owner = torch.randint(kinds, (n,), generator=draw)
    has_edge = small[owner[:, None], owner]
    own = torch.randint(2, (kinds,), generator=draw, dtype=torch.bool)[owner] if loops else torch.zeros(n, dtype=bool)
    has_edge.diagonal().copy_(own)
    return graph_of(has_edge, torch.randint(3, (kinds,), generator=draw)[owner] if labelled else None)


def exchanged(graph, one, other):
    """The graph with the numbers of two nodes exchanged."""
    number = torch.arange(graph.n)
    number[one], number[other] = other, one
    labels = None if graph.node_labels is None else graph.node_labels[number]
    return Graph(graph.n, number[graph.edge_index], node_labels=labels, directed=graph.directed)


def test_equivalent_nodes_of_a_star_and_of_a_clique():
    star = Graph(4, [[0, 0, 0, 1, 2, 3], [1, 2, 3, 0, 0, 0]])
    assert equivalent_nodes(star) == [[0], [1, 2, 3]]
    assert equivalent_nodes(graph_of(~torch.eye(4, dtype=bool))) == [[0, 1, 2, 3]]
    marked = Graph(4, star.edge_index, node_labels=[5, 5, 7, 5])
    assert equivalent_nodes(marked) == [[0], [1, 3], [2]]
    with_loop = Graph(4, [[0, 0, 0, 1, 2, 3, 3], [1, 2, 3, 0, 0, 0, 3]])
    assert equivalent_nodes(with_loop) == [[0], [1, 2], [3]]


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("seed", range(30))
def test_two_nodes_are_equivalent_exactly_if_exchanging_them_does_not_change_the_graph(seed, directed):
    draw = torch.Generator().manual_seed(seed)
    if directed:
        has_edge = torch.rand(6, 6, generator=draw) < (0.15 if seed % 2 else 0.85)
        graph = graph_of(has_edge, torch.randint(2, (6,), generator=draw), directed=True)
    else:
        graph = blown_up(4, 8, seed=seed, labelled=seed % 2 == 0, loops=seed % 3 == 0)
    kind = {node: number for number, nodes in enumerate(equivalent_nodes(graph)) for node in nodes}
    assert sorted(kind) == list(range(graph.n))
    for one, other in combinations(range(graph.n), 2):
        assert (kind[one] == kind[other]) == (exchanged(graph, one, other) == graph)


def network(in_channels, *, seed=0):
    """A small network in float64 whose biases are not zero."""
    torch.manual_seed(seed)
    net = ign_net(OPTIONS | {"channels": (4, 5, 6)}, in_channels, 3).double()
    with torch.no_grad():
        for block in net.blocks:
            block.layer.bias.normal_()
    return net


def batches_of(graphs):
    """The same graphs as a tensor over all nodes and reduced, in float64."""
    encoded = list(encoding_of(graphs).encode(graphs, layout="sparse").unpack())
    kinds = [ReducedGraph.of(one, equivalent_nodes(graph)) for one, graph in zip(encoded, graphs, strict=True)]
    return Sparse.pack(encoded).to_dense().double(), ReducedBatch.of(
        [ReducedGraph(*(part.double() for part in some)) for some in kinds]
    )


@pytest.mark.parametrize("block", [1, 7, 1024])
@pytest.mark.parametrize(
    ("n", "labelled", "loops"), [(9, False, False), (9, True, True), (2, False, False), (1, True, False)]
)
def test_outputs_and_gradients_are_those_of_the_whole_graphs(n, labelled, loops, block, monkeypatch):
    monkeypatch.setattr("experiments.methods.twin_reduction.BLOCK", block)
    graphs = [blown_up(1 + seed % 5, n, seed=seed, labelled=labelled, loops=loops) for seed in range(5)]
    dense, reduced = batches_of(graphs)
    assert n < 9 or (len(set(reduced.n_classes)) > 1 and max(reduced.n_classes) < n)
    net = network(dense.shape[-1])
    factors = torch.randn(5, 3, dtype=torch.float64)
    expected, found = net(dense), net(reduced)
    torch.testing.assert_close(found, expected)
    weights = list(net.parameters())
    wanted, got = (torch.autograd.grad((logits * factors).sum(), weights) for logits in (expected, found))
    torch.testing.assert_close(got, wanted)


def test_a_graph_without_equivalent_nodes_is_its_own_reduction():
    path = Graph(4, [[0, 1, 1, 2, 2, 3], [1, 0, 2, 1, 3, 2]])
    dense, reduced = batches_of([path])
    assert torch.equal(reduced.pairs, dense)
    assert torch.equal(reduced.nodes, dense.diagonal(dim1=1, dim2=2).transpose(1, 2))
    assert torch.equal(reduced.counts, torch.ones(1, 4, dtype=torch.float64))


@pytest.fixture
def no_cache():
    yield
    graph_data._load.cache_clear()


def test_graphs_are_reduced_where_that_saves_enough(tmp_path, monkeypatch, no_cache):
    folder = write_set(tmp_path)
    assert encode(load_graphs("MUTAG", folder)).reduced is None
    found = load_graphs("MUTAG", folder).graphs
    saved = sum(graph.n**2 - len(equivalent_nodes(graph)) ** 2 for graph in found) / len(found)
    share = 1 - saved / (sum(graph.n**2 for graph in found) / len(found))
    assert 0 < share < 1
    limits = ((0.99, 1.01, True), (1.01, 1.01, False), (0.99, 0.99, False))
    for min_saved, max_left, is_reduced in limits:
        monkeypatch.setattr(ign, "MIN_PAIRS_SAVED", saved * min_saved)
        monkeypatch.setattr(ign, "MAX_SHARE_LEFT", share * max_left)
        graph_data._load.cache_clear()
        graphs = encode(load_graphs("MUTAG", folder))
        assert (graphs.reduced is not None) == is_reduced
        assert isinstance(graphs.batch([0, 3], "dense"), ReducedBatch) == is_reduced
        assert isinstance(graphs.batch([0, 3], "sparse"), Sparse)


def test_a_cell_trains_the_same_network_on_reduced_graphs(tmp_path, monkeypatch, no_cache):
    folder = write_set(tmp_path / "data")
    cell = tiny(data=folder, channels=(4, 5, 6))
    found = []
    monkeypatch.setattr(ign, "MAX_SHARE_LEFT", 1)
    for min_saved in (0, 1000):
        monkeypatch.setattr(ign, "MIN_PAIRS_SAVED", min_saved)
        graph_data._load.cache_clear()
        (record,) = run_cells([cell], tmp_path / str(min_saved), show=False)
        found.append(torch.tensor([record["curves"][name] for name in ("loss", "test_loss")]))
    assert found[0].shape == (2, cell.epochs)
    torch.testing.assert_close(*found)
    assert not torch.equal(*found)  # one is not the other, run twice
