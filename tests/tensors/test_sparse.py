"""Sparse: its stored entries, their order and their support, and conversions."""

import copy
import pickle

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.testing import assert_close

import bellnet as bn
from bellnet.tensors import support
from bellnet.testing import strategies
from tests.backends.sparse_cases import KINDS, sparse

SHAPES = ["n", "n n", "n n n", "u i", "u u i", "u i u"]


def _random(shape, kind, sizes, seed=0):
    return sparse(kind, tuple(shape.split()), sizes, 2, torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("kind", KINDS)
def test_a_graph_goes_to_a_dense_tensor_and_back(shape, kind):
    x = _random(shape, kind, {"n": 4, "u": 3, "i": 2})
    again = bn.Sparse.from_dense(x.to_dense(), shape)
    assert torch.equal(again.index, x.index)
    assert torch.equal(again.values, x.values)
    assert again.sizes == x.sizes or again.sizes == next(iter(x.sizes.values()))


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("kind", KINDS)
def test_a_batch_goes_to_padded_and_back_and_to_its_graphs_and_back(shape, kind):
    x = _random(shape, kind, {"n": [4, 0, 3], "u": [1, 3, 2], "i": [2, 2, 0]})
    for again in (bn.Sparse.from_dense(x.to_padded(), shape), bn.Sparse.pack(x.unpack())):
        assert torch.equal(again.index, x.index)
        assert torch.equal(again.values, x.values)
    for graph, padded in zip(x.unpack(), x.to_padded().unpack(shape), strict=True):
        assert torch.equal(graph.to_dense(), padded)


@given(padded=strategies.padded("n n", channels=2))
def test_padding_is_not_stored(padded):
    x = bn.Sparse.from_dense(padded, keep_zeros=True)
    assert x.nnz == int((padded.sizes**2).sum())
    assert x.values.isfinite().all()
    wanted = padded.unpack("n n")
    assert all(torch.equal(one.to_dense(), other) for one, other in zip(x.unpack(), wanted, strict=True))


@given(st.permutations(range(6)))
def test_tuples_may_be_given_in_any_order(order):
    index = torch.tensor([[0, 0, 1, 2, 2, 3], [1, 3, 1, 0, 2, 0]])
    values = torch.arange(6.0).unsqueeze(-1)
    x = bn.Sparse(index[:, order], values[list(order)], 4)
    assert torch.equal(x.index, index)
    assert torch.equal(x.values, values)
    assert torch.equal(x.at(index[:, order]), values[list(order)])


def test_values_of_sorted_tuples_are_not_copied():
    values = torch.randn(3, 2)
    x = bn.Sparse(torch.tensor([[0, 0, 2], [0, 1, 1]]), values, 3, is_sorted=True)
    assert x.values is values


def test_at_returns_zero_for_missing_tuples_and_takes_repeated_ones():
    values = torch.tensor([[5.0], [7.0]], requires_grad=True)
    x = bn.Sparse(torch.tensor([[0, 1], [1, 0]]), values, 3)
    found = x.at(torch.tensor([[1, 2, 1], [0, 2, 0]]))
    assert found.squeeze(-1).tolist() == [7, 0, 7]
    found.sum().backward()
    assert values.grad.squeeze(-1).tolist() == [0, 2]


@pytest.mark.parametrize("shape", ["n", "n n", "n n n"])
@pytest.mark.parametrize("kind", KINDS)
def test_with_diagonal_stores_every_node_and_changes_no_value(shape, kind):
    for sizes in ({"n": 3}, {"n": [3, 0, 2]}):
        x = _random(shape, kind, sizes)
        wider = x.with_diagonal()
        assert torch.equal(x._filled(), wider._filled())
        every = x.support.every_node(x.support.counts, "n").index
        diagonal = torch.cat([every[:-1], every[-1:].expand(x.support.order, -1)])
        nodes = bn.tensors.Support(diagonal, x.support.counts, x.support.slots).nodes
        assert (wider.support.positions(nodes) >= 0).all()
        assert x.map(torch.relu).with_diagonal().support is wider.support
        assert wider.with_diagonal().nnz == wider.nnz


def test_a_map_and_other_values_share_the_support():
    x = _random("n n", "some", {"n": 4})
    assert x.map(torch.relu).support is x.support
    assert x.with_values(torch.zeros(x.nnz, 7)).support is x.support


def test_copies_and_pickles_are_equal_and_without_caches():
    x = _random("n n", "some", {"n": [4, 3]})
    layer = bn.EquivariantLinear("n n -> n n", 2, 2, dtype=torch.float64)
    wanted = layer(x).values
    for again in (copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
        assert "_results" not in vars(again.support)
        assert_close(layer(again).values, wanted)


def test_tuples_whose_codes_would_overflow_are_found():
    many = 2**31
    index = torch.tensor([[0, 5, many - 1], [many - 1, 5, 0], [1, 5, many - 1]])
    x = bn.Sparse(index, torch.arange(3.0).unsqueeze(-1), many)
    assert x.at(index.flip(1)).squeeze(-1).tolist() == [2, 1, 0]
    assert x.at(torch.tensor([[0], [many - 1], [2]])).tolist() == [[0]]


@given(st.lists(st.tuples(*[st.integers(0, 3)] * 4), unique=True), st.integers(1, 3))
def test_codes_are_in_the_order_of_the_tuples_with_and_without_overflow(tuples, room):
    nodes = torch.tensor(tuples, dtype=torch.int64).reshape(-1, 4).T
    plain = support.encode([nodes], (4, 4, 4, 4))[0]
    largest, support.LARGEST_CODE = support.LARGEST_CODE, 4**room
    try:
        tight = support.encode([nodes], (4, 4, 4, 4))[0]
    finally:
        support.LARGEST_CODE = largest
    assert torch.equal(plain.argsort(), tight.argsort())
    assert len(tight.unique()) == len(tuples)


def test_a_repr_has_the_shape_the_counts_and_the_sizes():
    x = _random("u i", "full", {"u": 1, "i": 2})
    assert repr(x) == "Sparse(\"u i\", 2 tuples, 2 channels, sizes={'u': 1, 'i': 2})"


NUMBERS = st.lists(st.integers(0, 30), max_size=40)


@pytest.mark.parametrize("many", [0, 10**9], ids=["sorted first", "in their order"])
@given(wanted=NUMBERS, stored=st.sets(st.integers(0, 30)), random=st.randoms(use_true_random=False))
def test_codes_are_found_at_their_positions_or_are_missing(many, wanted, stored, random):
    codes = list(stored)
    random.shuffle(codes)
    order = sorted(range(len(wanted)), key=wanted.__getitem__)
    wrong = random.sample(order, len(order))
    expected = [codes.index(code) if code in stored else -1 for code in wanted]
    numbers = torch.tensor(wanted, dtype=torch.int64), torch.tensor(codes, dtype=torch.int64)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(support, "MANY", many)
        assert support.find(*numbers).tolist() == expected
        for known in (order, wrong):  # an order that is not ascending is not used
            assert support.find(*numbers, lambda: torch.tensor(known, dtype=torch.int64)).tolist() == expected  # noqa: B023
