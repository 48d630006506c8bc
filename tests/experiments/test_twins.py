"""Twins of graphs, and the network of Table 3 where they are taken together."""

from itertools import combinations

import pytest
import torch

from bellnet import Sparse
from bellnet.data import Graph
from experiments import graph_data
from experiments.graph_data import encoding_of, load_set
from experiments.graph_net import Kinds, KindsBatch, graph_net, kinds_of, said_of
from experiments.records import Records
from experiments.run import run_cells
from tests.experiments.graphs import tiny, write_set


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


def test_kinds_of_a_star_and_of_a_clique_are_those_one_sees():
    star = Graph(4, [[0, 0, 0, 1, 2, 3], [1, 2, 3, 0, 0, 0]])
    assert kinds_of(star) == [[0], [1, 2, 3]]
    assert kinds_of(graph_of(~torch.eye(4, dtype=bool))) == [[0, 1, 2, 3]]
    marked = Graph(4, star.edge_index, node_labels=[5, 5, 7, 5])
    assert kinds_of(marked) == [[0], [1, 3], [2]]
    with_loop = Graph(4, [[0, 0, 0, 1, 2, 3, 3], [1, 2, 3, 0, 0, 0, 3]])
    assert kinds_of(with_loop) == [[0], [1, 2], [3]]


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("seed", range(30))
def test_two_nodes_are_of_a_kind_exactly_if_exchanging_them_changes_nothing(seed, directed):
    draw = torch.Generator().manual_seed(seed)
    if directed:
        has_edge = torch.rand(6, 6, generator=draw) < (0.15 if seed % 2 else 0.85)
        graph = graph_of(has_edge, torch.randint(2, (6,), generator=draw), directed=True)
    else:
        graph = blown_up(4, 8, seed=seed, labelled=seed % 2 == 0, loops=seed % 3 == 0)
    kind = {node: number for number, nodes in enumerate(kinds_of(graph)) for node in nodes}
    assert sorted(kind) == list(range(graph.n))
    for one, other in combinations(range(graph.n), 2):
        assert (kind[one] == kind[other]) == (exchanged(graph, one, other) == graph)


def network(in_channels, *, seed=0):
    """A small network in double precision whose biases are no zeros."""
    torch.manual_seed(seed)
    net = graph_net(tiny(channels=(4, 5, 6)), in_channels, 3).double()
    with torch.no_grad():
        for block in net.blocks:
            block.layer.bias.normal_()
    return net


def batches_of(graphs):
    """The same graphs as a tensor over all nodes and with twins together, in double precision."""
    encoded = list(encoding_of(graphs).encode(graphs, layout="sparse").unpack())
    kinds = [Kinds.of(one, kinds_of(graph)) for one, graph in zip(encoded, graphs, strict=True)]
    return Sparse.pack(encoded).to_dense().double(), KindsBatch.of(
        graphs[0].n, [Kinds(*(part.double() for part in some)) for some in kinds]
    )


@pytest.mark.parametrize("piece", [1, 7, 1024])
@pytest.mark.parametrize(
    ("n", "labelled", "loops"), [(9, False, False), (9, True, True), (2, False, False), (1, True, False)]
)
def test_with_twins_together_a_network_says_and_learns_the_same(n, labelled, loops, piece, monkeypatch):
    monkeypatch.setattr("experiments.graph_net.PIECE", piece)
    graphs = [blown_up(1 + seed % 5, n, seed=seed, labelled=labelled, loops=loops) for seed in range(5)]
    dense, kinds = batches_of(graphs)
    assert n < 9 or (len(set(kinds.n_kinds)) > 1 and max(kinds.n_kinds) < n)
    net = network(dense.shape[-1])
    factors = torch.randn(5, 3, dtype=torch.float64)
    expected, found = said_of(net, dense), said_of(net, kinds)
    torch.testing.assert_close(found, expected)
    weights = list(net.parameters())
    wanted, got = (torch.autograd.grad((said * factors).sum(), weights) for said in (expected, found))
    torch.testing.assert_close(got, wanted)


def test_graphs_without_twins_are_themselves():
    path = Graph(4, [[0, 1, 1, 2, 2, 3], [1, 0, 2, 1, 3, 2]])
    dense, kinds = batches_of([path])
    assert torch.equal(kinds.pairs, dense)
    assert torch.equal(kinds.nodes, dense.diagonal(dim1=1, dim2=2).transpose(1, 2))
    assert torch.equal(kinds.counts, torch.ones(1, 4, dtype=torch.float64))


def test_twins_are_taken_together_where_they_save_enough(tmp_path, monkeypatch):
    folder = write_set(tmp_path)
    assert load_set("MUTAG", folder).kinds is None
    found = graph_data.load_graphs("MUTAG", folder).graphs
    saved = sum(graph.n**2 - len(kinds_of(graph)) ** 2 for graph in found) / len(found)
    share = 1 - saved / (sum(graph.n**2 for graph in found) / len(found))
    assert 0 < share < 1
    limits = ((0.99, 1.01, True), (1.01, 1.01, False), (0.99, 0.99, False))
    for worth, most_left, together in limits:
        monkeypatch.setattr(graph_data, "WORTH", saved * worth)
        monkeypatch.setattr(graph_data, "MOST_LEFT", share * most_left)
        graph_data._load.cache_clear()
        graphs = load_set("MUTAG", folder)
        assert (graphs.kinds is not None) == together
        assert isinstance(graphs.batch([0, 3], "dense")[0], KindsBatch) == together
        assert isinstance(graphs.batch([0, 3], "sparse")[0], Sparse)


def test_a_cell_learns_the_same_with_twins_together(tmp_path, monkeypatch):
    folder = write_set(tmp_path / "data")
    cell = tiny(data=folder, channels=(4, 5, 6))
    found = []
    monkeypatch.setattr(graph_data, "MOST_LEFT", 1)
    for worth in (0, 1000):
        monkeypatch.setattr(graph_data, "WORTH", worth)
        graph_data._load.cache_clear()
        run_cells([cell], tmp_path / str(worth), show=False)
        epochs = [record for record in Records(tmp_path / str(worth)).read() if record["kind"] == "epoch"]
        found.append(torch.tensor([[epoch["loss"], epoch["test_loss"]] for epoch in epochs]))
    graph_data._load.cache_clear()
    assert len(found[0]) == cell.epochs
    torch.testing.assert_close(*found)
    assert not torch.equal(*found)  # one is not the other, run twice
