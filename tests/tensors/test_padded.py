"""Padded: graphs of different sizes in one tensor."""

import numpy
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from bellnet import EquivariantLinear, InvariantPool, Padded
from bellnet.testing import strategies


@st.composite
def _graphs(draw, axes):
    """Tensors over these node sets, with sizes from 0 up."""
    names = sorted(set(axes))
    sizes = draw(st.lists(st.fixed_dictionaries({name: st.integers(0, 4) for name in names}), min_size=1, max_size=4))
    torch.manual_seed(draw(st.integers(0, 9)))
    return [torch.randn(*(size[name] for name in axes), 2) for size in sizes]


@pytest.mark.parametrize("shape", ["n", "n n", "n n n", "u i", "u i u", ""])
@given(data=st.data())
def test_unpack_returns_the_packed_graphs(shape, data):
    graphs = data.draw(_graphs(shape.split()))
    again = Padded.pack(graphs, shape).unpack(shape)
    assert len(again) == len(graphs)
    assert all(torch.equal(one, other) for one, other in zip(again, graphs, strict=True))


def test_packing_pads_with_zeros_to_the_largest_graph():
    packed = Padded.pack([torch.ones(1, 1, 2), torch.ones(3, 3, 2)])
    assert packed.values.shape == (2, 3, 3, 2)
    assert packed.sizes.tolist() == [1, 3]
    assert packed.values[0].sum() == 2
    assert packed.values[1].sum() == 18


def test_several_node_sets_are_packed_with_sizes_for_each():
    packed = Padded.pack([torch.ones(1, 4, 1), torch.ones(3, 2, 1)], "u i")
    assert packed.values.shape == (2, 3, 4, 1)
    assert {name: sizes.tolist() for name, sizes in packed.sizes.items()} == {"u": [1, 3], "i": [4, 2]}


def test_gradients_flow_through_packing():
    graphs = [torch.randn(2, 2, 1, requires_grad=True), torch.randn(3, 3, 1, requires_grad=True)]
    (Padded.pack(graphs).values ** 2).sum().backward()
    for graph in graphs:
        torch.testing.assert_close(graph.grad, 2 * graph.detach())


def test_packed_tensors_have_the_widest_of_their_dtypes():
    narrow, wide = torch.zeros(1, 1, 1), torch.full((2, 2, 1), 1e-60, dtype=torch.float64)
    assert Padded.pack([narrow, wide]).values[1, 0, 0].item() == 1e-60
    assert {graph.dtype for graph in Padded.pack([narrow, narrow]).unpack()} == {torch.float32}


def test_several_batch_axes_are_unpacked_in_order():
    values = torch.arange(2 * 3 * 2 * 1).reshape(2, 3, 2, 1)
    graphs = Padded(values, torch.tensor([[0, 1, 2], [2, 1, 0]])).unpack("n")
    assert [graph.flatten().tolist() for graph in graphs] == [[], [2], [4, 5], [6, 7], [8], []]


def test_a_single_graph_has_no_batch_axis():
    (graph,) = Padded(torch.arange(3.0).unsqueeze(-1), torch.tensor(2)).unpack("n")
    assert graph.flatten().tolist() == [0, 1]


@pytest.mark.parametrize("batch", [(2, 2), (2, 3)])
def test_sizes_of_the_first_batch_axis_hold_along_the_others(batch):
    padded = Padded(torch.ones(*batch, 3, 1), torch.tensor([1, 3]))
    in_layer = EquivariantLinear("n ->", 1, 1, normalize="sum")
    with torch.no_grad():
        in_layer.weight.fill_(1)
    counted = in_layer(padded).flatten().tolist()
    assert counted == [1] * batch[1] + [3] * batch[1]
    assert [graph.shape[0] for graph in padded.unpack("n")] == counted


def test_map_applies_a_function_to_the_values():
    x = Padded(torch.tensor([[[-1.0], [2.0]]]), torch.tensor([2]))
    assert x.map(torch.relu).values.flatten().tolist() == [0, 2]
    assert torch.equal(x.map(torch.relu).sizes, x.sizes)
    assert x.map(lambda values: values.sum(1)).shape == (1, 1)  # without the axis of the nodes


@pytest.mark.parametrize("sizes", [[3, 1], (3, 1), numpy.array([3, 1]), torch.tensor([3, 1])], ids=type)
def test_sizes_may_be_lists_and_arrays(sizes):
    assert Padded(torch.zeros(2, 3, 3, 1), sizes).sizes.tolist() == [3, 1]
    by_set = Padded(torch.zeros(2, 3, 4, 1), {"u": sizes, "i": [4, 4]}).sizes
    assert {name: one.tolist() for name, one in by_set.items()} == {"u": [3, 1], "i": [4, 4]}


def test_sizes_of_an_empty_batch_may_be_an_empty_list():
    assert Padded(torch.zeros(0, 3, 3, 1), []).sizes.shape == (0,)


def test_sizes_are_on_the_device_of_the_values():
    assert Padded(torch.zeros(2, 3, 1, device="meta"), torch.tensor([1, 2])).sizes.is_meta


def test_sizes_are_returned_as_copies():
    pool, given = InvariantPool("n", "sum"), torch.tensor([3])
    x = Padded(torch.ones(1, 3, 1), given)
    assert pool(x).item() == 3
    for sizes in (given, x.sizes, x.sizes_of("n")):
        sizes[0] = 1
    assert x.sizes.tolist() == [3]
    assert pool(x).item() == 3


def test_a_node_set_without_an_axis_may_be_larger_than_all_axes():
    x = Padded(torch.randn(2, 3, 7, 1), {"u": torch.tensor([2, 3]), "i": torch.tensor([7, 5])})
    assert x.with_values(x.values.sum(2)).shape == (2, 3, 1)


def test_the_mask_marks_the_entries_of_the_graphs():
    x = Padded(torch.zeros(2, 3, 4, 1), {"u": torch.tensor([3, 1]), "i": torch.tensor([2, 4])})
    mask = x.mask()
    assert torch.equal(mask, x.mask("u i"))
    assert mask[0].nonzero().amax(0).tolist() == [2, 1]
    assert mask.sum((1, 2)).tolist() == [6, 4]
    assert torch.equal(mask, Padded.pack([torch.ones(3, 2, 1), torch.ones(1, 4, 1)], "u i").values[..., 0] > 0)
    assert Padded(torch.zeros(3, 1), torch.tensor(2)).mask().tolist() == [True, True, False]
    per_batch = Padded(torch.zeros(2, 2, 3, 1), torch.tensor([1, 3]))  # sizes of the first of two batch axes
    assert per_batch.mask("n").sum(-1).tolist() == [[1, 1], [3, 3]]


@given(padded=strategies.padded("u i u"))
def test_the_values_in_the_mask_are_those_of_the_graphs(padded):
    inside = padded.values[padded.mask("u i u")].flatten()
    assert torch.equal(inside, torch.cat([graph.flatten() for graph in padded.unpack("u i u")]))


def test_sizes_of_one_node_set_are_found_by_name():
    for_all = Padded(torch.zeros(2, 3, 3, 1), torch.tensor([3, 1]))
    assert torch.equal(for_all.sizes_of("n"), for_all.sizes)
    assert torch.equal(for_all.sizes_of("anything"), for_all.sizes)
    for_each = Padded(torch.zeros(2, 3, 3, 1), {"u": torch.tensor([3, 1])})
    assert for_each.sizes_of("u").tolist() == [3, 1]
    assert for_each.sizes_of("i") is None


def test_a_padded_cannot_be_changed():
    padded = Padded(torch.zeros(1, 2, 1), torch.tensor([1]))
    with pytest.raises(AttributeError):
        padded.values = torch.ones(1, 2, 1)
    assert padded == padded
    assert padded != Padded(torch.zeros(1, 2, 1), torch.tensor([1]))
