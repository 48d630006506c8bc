"""`Loader`: each graph once, little padding, and an order that depends on seed and epoch alone."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import bellnet as bn
from bellnet.data import Encoding, Graph, Loader, at_edges, generated, in_order, undirected
from bellnet.tensors.padded import is_zero_padded


def ring(n):
    return undirected(n, [(node, (node + 1) % n) for node in range(n)] if n > 2 else [])


def sized(*sizes):
    return [ring(n) for n in sizes]


def order(loader):
    return [indices.tolist() for _, _, indices in loader]


LOADERS = st.fixed_dictionaries(
    {
        "batch_size": st.integers(1, 7),
        "layout": st.sampled_from(["padded", "sparse"]),
        "shuffle": st.booleans(),
        "seed": st.integers(0, 5),
        "max_padding": st.sampled_from([0.0, 0.35, 1.0]),
        "max_entries": st.none() | st.integers(1, 100),
        "cache_bytes": st.sampled_from([0, 2**30]),
    }
)
SIZES = st.lists(st.integers(0, 9), min_size=1, max_size=20)


@given(SIZES, LOADERS, st.integers(0, 3))
def test_each_epoch_has_each_graph_once(sizes, options, epoch):
    loader = Loader(sized(*sizes), torch.arange(len(sizes)), **options)
    loader.set_epoch(epoch)
    n_batches = len(loader)
    seen = []
    for batch, labels, indices in loader:
        assert torch.equal(labels, indices)
        assert batch.sizes.tolist() == [sizes[index] for index in indices.tolist()]
        assert 1 <= len(indices) <= options["batch_size"]
        seen.append(indices)
    assert len(seen) == n_batches
    assert sorted(torch.cat(seen).tolist()) == list(range(len(sizes)))


@given(SIZES, LOADERS)
def test_batches_are_within_max_padding_and_max_entries(sizes, options):
    loader = Loader(sized(*sizes), **options)
    for batch, _, indices in loader:
        area, padded = sum(sizes[index] ** 2 for index in indices.tolist()), batch.values[..., 0].numel()
        if options["layout"] == "sparse":
            area = sum(ring(sizes[index]).n_edges + sizes[index] for index in indices.tolist())
            assert padded == area
        assert len(indices) == 1 or 1 - area / max(padded, 1) <= options["max_padding"] or padded == 0
        assert options["max_entries"] is None or len(indices) == 1 or padded <= options["max_entries"]


@given(SIZES, LOADERS)
def test_padding_fraction_is_that_of_the_batches(sizes, options):
    loader = Loader(sized(*sizes), **options)
    found = loader.padding_fraction()
    padded = sum(batch.values[..., 0].numel() for batch, _, _ in loader)
    if options["layout"] == "sparse":
        assert found == 0
    else:
        assert found == pytest.approx(1 - sum(n * n for n in sizes) / padded if padded else 0.0)


@given(SIZES, LOADERS)
def test_cached_batches_equal_encoded_ones(sizes, options):
    cached = Loader(sized(*sizes), **{**options, "cache_bytes": 2**30})
    encoded = Loader(sized(*sizes), **{**options, "cache_bytes": 0})
    for epoch in (0, 0, 1):
        cached.set_epoch(epoch)
        encoded.set_epoch(epoch)
        for (one, _, indices), (other, _, others) in zip(cached, encoded, strict=True):
            assert torch.equal(indices, others)
            if options["layout"] == "sparse":
                assert torch.equal(one.index, other.index)
            else:
                assert is_zero_padded(one, ("n", "n"))
            assert torch.equal(one.values, other.values)


def test_the_order_depends_on_seed_and_epoch_alone():
    graphs, labels = generated.leaf_pairs(60)
    first = Loader(graphs, labels, batch_size=8, seed=3)
    epochs = [order(first) for _ in range(3)]
    torch.manual_seed(99)
    other = Loader(graphs, batch_size=8, seed=3, cache_bytes=0)
    other.set_epoch(1)
    torch.rand(5)
    assert order(other) == epochs[1]
    assert order(other) == epochs[2]
    assert len({str(epoch) for epoch in epochs}) == 3
    assert order(Loader(graphs, batch_size=8, seed=4)) != epochs[0]


def test_length_and_padding_fraction_do_not_change_the_order():
    loader = Loader(sized(*range(3, 30)), batch_size=4)
    expected = order(Loader(sized(*range(3, 30)), batch_size=4))
    assert len(loader) == len(expected)
    assert loader.padding_fraction() > 0
    assert order(loader) == expected


def test_graphs_of_one_size_are_shuffled_as_by_a_plain_shuffle():
    loader = Loader(sized(*[5] * 12), batch_size=3)
    together = torch.zeros(12, 12)
    first = torch.zeros(12)
    for _ in range(400):
        batches = order(loader)
        first[batches[0]] += 1
        for batch in batches:
            together[[[index] for index in batch], batch] += 1
    pairs = together[~torch.eye(12, dtype=torch.bool)] / 400
    assert pairs.min() > 0.09  # of 11 others 2 are in the same batch: 0.18
    assert pairs.max() < 0.28
    assert first.min() / 400 > 0.15  # a quarter of the graphs is in the first batch
    assert first.max() / 400 < 0.35


def test_graphs_of_similar_size_share_batches_in_random_order():
    sizes = list(range(40, 60))
    loader = Loader(sized(*sizes), batch_size=5)
    met = {(a, b) for _ in range(60) for batch in order(loader) for a in batch for b in batch}
    assert all((index, index + 1) in met for index in range(19))  # whatever the borders are
    firsts = {min(order(loader)[0]) // 5 for _ in range(60)}
    assert len(firsts) == 4


def test_the_short_batch_is_not_always_that_of_the_largest_graphs():
    loader = Loader(sized(*range(40, 61)), batch_size=5, max_padding=1)
    short = {min(next(batch for batch in order(loader) if len(batch) == 1)) for _ in range(40)}
    assert len(short) > 3


def test_batches_without_shuffling_are_sorted_by_size_in_each_epoch():
    loader = Loader(sized(9, 3, 5, 4, 8), batch_size=2, shuffle=False, max_padding=1)
    assert order(loader) == order(loader) == [[1, 3], [2, 4], [0]]


def test_sorting_by_size_reduces_padding():
    graphs, _ = generated.leaf_pairs(200, nodes=(6, 60))
    loader = Loader(graphs, batch_size=10)
    as_they_come = 1 - sum(g.n**2 for g in graphs) / sum(
        10 * max(g.n for g in graphs[start : start + 10]) ** 2 for start in range(0, 200, 10)
    )
    assert as_they_come > 0.5
    assert loader.padding_fraction() < 0.15


def test_labels_may_be_numbers_or_anything():
    graphs = sized(3, 4, 5)
    tensors = [torch.zeros(graph.n) for graph in graphs]
    for _, labels, indices in Loader(graphs, tensors, batch_size=2, max_padding=1):
        assert [len(label) for label in labels] == [graphs[index].n for index in indices.tolist()]
    for given_labels in ([0.5, 1.5, 2.5], torch.tensor([0.5, 1.5, 2.5]).numpy()):
        for _, labels, indices in Loader(graphs, given_labels, batch_size=2, max_padding=1):
            assert labels.tolist() == [index + 0.5 for index in indices.tolist()]
    assert all(labels is None for _, labels, _ in Loader(graphs, batch_size=2))


def test_a_given_encoding_is_not_fitted_again():
    labelled = Graph(2, [[], []], node_labels=[1, 2])
    encoding = Encoding.fit([labelled], adjacency="both")
    (batch, _, _) = next(iter(Loader([labelled], batch_size=1, encoding=encoding, dtype=torch.float64)))
    assert batch.values.shape == (1, 2, 2, 4)
    assert batch.values.dtype == torch.float64


def test_predictions_do_not_depend_on_the_batches():
    graphs, _ = generated.cycles_and_pairs(40)
    encoding = Encoding.fit(graphs, adjacency="both")
    whole = bn.InvariantNet("n n", [2, 8, 8], 3).double()
    pairs = bn.EquivariantNet("n n -> n n", [2, 8, 4]).double()
    nodes = bn.EquivariantNet("n n -> n", [2, 8, 4]).double()
    everything = encoding.encode(graphs, dtype=torch.float64)
    padded = [whole(everything), nodes(everything).unpack("n"), at_edges(pairs(everything), graphs)]
    loader = Loader(graphs, batch_size=7, encoding=encoding, dtype=torch.float64)
    found = [(batch, indices) for batch, _, indices in loader]
    bucketed = [
        in_order((whole(batch), indices) for batch, indices in found),
        in_order((nodes(batch).unpack("n"), indices) for batch, indices in found),
        in_order((at_edges(pairs(batch), [graphs[i] for i in indices.tolist()]), indices) for batch, indices in found),
    ]
    for index, graph in enumerate(graphs):
        alone = encoding.encode([graph], dtype=torch.float64)
        single = [whole(alone)[0], nodes(alone).unpack("n")[0], at_edges(pairs(alone), [graph])[0]]
        for one, many, buckets in zip(single, padded, bucketed, strict=True):
            torch.testing.assert_close(many[index], one)
            torch.testing.assert_close(buckets[index], one)
