"""Padded: graphs of different sizes in one tensor."""

import numpy
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from bellnet import EquivariantLinear, Padded


@st.composite
def _graphs(draw, axes):
    """Tensors over these node sets, with sizes from 0 up."""
    names = sorted(set(axes))
    sizes = draw(st.lists(st.fixed_dictionaries({name: st.integers(0, 4) for name in names}), min_size=1, max_size=4))
    torch.manual_seed(draw(st.integers(0, 9)))
    return [torch.randn(*(size[name] for name in axes), 2) for size in sizes]


@pytest.mark.parametrize("shape", ["n", "n n", "n n n", "u i", "u i u", ""])
@given(data=st.data())
def test_packed_graphs_are_unpacked_as_they_were(shape, data):
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


def test_packing_and_unpacking_keep_the_dtype():
    graphs = [torch.ones(1, 1, 1, dtype=torch.float64), torch.ones(2, 2, 1, dtype=torch.float64)]
    assert {graph.dtype for graph in Padded.pack(graphs).unpack()} == {torch.float64}


def test_packing_tensors_of_several_dtypes_takes_the_widest():
    graphs = [torch.zeros(1, 1, 1), torch.full((1, 1, 1), 1e-60, dtype=torch.float64)]
    assert Padded.pack(graphs).values[1].item() == 1e-60


def test_several_batch_axes_are_unpacked_in_order():
    values = torch.arange(2 * 3 * 2 * 1).reshape(2, 3, 2, 1)
    graphs = Padded(values, torch.tensor([[0, 1, 2], [2, 1, 0]])).unpack("n")
    assert [graph.flatten().tolist() for graph in graphs] == [[], [2], [4, 5], [6, 7], [8], []]


def test_a_single_graph_needs_no_batch_axis():
    (graph,) = Padded(torch.arange(3.0).unsqueeze(-1), torch.tensor(2)).unpack("n")
    assert graph.flatten().tolist() == [0, 1]


@pytest.mark.parametrize("batch", [(2, 2), (2, 3)])
def test_sizes_of_the_first_batch_axis_hold_for_all_graphs_behind_it(batch):
    """A layer takes such sizes, and then unpacking must mean the same by them."""
    padded = Padded(torch.ones(*batch, 3, 1), torch.tensor([1, 3]))
    in_layer = EquivariantLinear("n ->", 1, 1, normalize="sum")
    with torch.no_grad():
        in_layer.weight.fill_(1)
    counted = in_layer(padded).flatten().tolist()
    assert counted == [1] * batch[1] + [3] * batch[1]
    assert [graph.shape[0] for graph in padded.unpack("n")] == counted


def test_a_function_of_every_position_is_mapped_over_the_values():
    padded = Padded(torch.tensor([[[-1.0], [2.0]]]), torch.tensor([2]))
    mapped = padded.map(torch.relu)
    assert mapped.values.flatten().tolist() == [0, 2]
    assert mapped.sizes is padded.sizes or torch.equal(mapped.sizes, padded.sizes)


def test_sizes_may_be_given_as_lists_and_become_tensors():
    assert Padded(torch.zeros(2, 3, 3, 1), [3, 1]).sizes.tolist() == [3, 1]
    sizes = Padded(torch.zeros(2, 3, 4, 1), {"u": [3, 1], "i": (4, 4)}).sizes
    assert {name: tensor.tolist() for name, tensor in sizes.items()} == {"u": [3, 1], "i": [4, 4]}


def test_sizes_may_be_given_as_arrays_and_become_tensors():
    assert Padded(torch.zeros(2, 3, 3, 1), numpy.array([3, 1])).sizes.tolist() == [3, 1]


def test_an_empty_list_of_sizes_fits_an_empty_batch():
    assert Padded(torch.zeros(0, 3, 3, 1), []).sizes.shape == (0,)


def test_sizes_are_kept_where_the_values_are():
    assert Padded(torch.zeros(2, 3, 1, device="meta"), torch.tensor([1, 2])).sizes.is_meta


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
