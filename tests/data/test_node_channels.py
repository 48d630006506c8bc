"""Channels of nodes have the same values on the diagonal and in a separate tensor."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import bellnet as bn
from bellnet.data import Encoding, Graph, Loader, generated, to_padded, to_sparse
from tests.data.test_encode import alike


def values_of(x):
    """A batch as a tensor with zeros for whatever is not there."""
    return (x if isinstance(x, bn.Padded) else x.to_padded()).values


@given(alike(), st.sampled_from(["padded", "sparse"]))
def test_separate_tensors_have_the_values_of_the_diagonal_and_the_pairs(case, layout):
    several, options = case
    encoding = Encoding.fit(several, **{**options, "adjacency_in_labels": False, "size_feature": True})
    whole = encoding.encode(several, layout=layout)
    pairs, nodes = encoding.encode(several, layout=layout, node_channels="separate")
    of_pairs = encoding.n_pair_channels
    assert type(pairs) is type(nodes) is type(whole)
    assert encoding.channels == of_pairs + encoding.n_node_channels
    assert torch.equal(values_of(pairs), values_of(whole)[..., :of_pairs])
    assert torch.equal(values_of(nodes), values_of(whole)[..., of_pairs:].diagonal(0, 1, 2).movedim(-1, 1))
    if layout == "sparse":
        assert pairs.nnz == sum(graph.n_edges for graph in several)
        assert nodes.nnz == sum(graph.n for graph in several)


@pytest.mark.parametrize("layout", ["padded", "sparse"])
@pytest.mark.parametrize("cache_bytes", [0, 2**30])
def test_batches_of_a_loader_equal_the_encoding_of_their_graphs(layout, cache_bytes):
    several = generated.leaf_pairs(9)[0]
    encoding = Encoding.fit(several, degrees=True, size_feature=True, degree_bins=2)
    for _ in range(2):  # the second time from what was cached
        loader = Loader(
            several, batch_size=4, encoding=encoding, layout=layout, node_channels="separate", cache_bytes=cache_bytes
        )
        for (pairs, nodes), _, indices in loader:
            chosen = [several[index] for index in indices.tolist()]
            expected = encoding.encode(chosen, layout=layout, node_channels="separate")
            for one, other in zip((pairs, nodes), expected, strict=True):
                assert torch.equal(one.values, other.values)
                assert torch.equal(one.sizes, other.sizes)
    layer = bn.EquivariantLinear("n n, n -> n", (encoding.n_pair_channels, encoding.n_node_channels), 3)
    assert layer((pairs, nodes)).values.shape[-1] == 3


def test_to_padded_and_to_sparse_return_two_tensors():
    several = generated.leaf_pairs(4)[0]
    for convert in (to_padded, to_sparse):
        pairs, nodes = convert(several, node_channels="separate", size_feature=True)
        assert (pairs.values.shape[-1], nodes.values.shape[-1]) == (1, 1)
        assert torch.equal(pairs.sizes, nodes.sizes)


def test_self_loops_are_values_of_pairs():
    loop = Graph(2, torch.tensor([[0, 0], [0, 1]]), node_labels=torch.tensor([3, 4]), directed=True)
    pairs, nodes = to_sparse([loop], node_channels="separate")
    assert pairs.index.tolist() == [[0, 0], [0, 0], [0, 1]]
    assert pairs.values.tolist() == [[1], [1]]
    assert nodes.values.tolist() == [[1, 0], [0, 1]]
