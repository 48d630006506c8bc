"""`Padded` and `Sparse` as citizens: facts, arithmetic, moving, trees of tensors, short reprs."""

import copy

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.testing import assert_close
from torch.utils._pytree import tree_flatten, tree_map, tree_unflatten

import bellnet as bn
from bellnet import EquivariantLinear, InvariantNet, InvariantPool, Padded, Sparse
from bellnet.errors import ShapeError, SizesError, SupportError, TensorError


def _padded(channels=2):
    return Padded(torch.randn(3, 4, 4, channels), torch.tensor([4, 2, 3]))


def _sparse(channels=2):
    index = torch.tensor([[0, 0, 1], [0, 1, 2], [1, 0, 0]])
    return Sparse(index, torch.randn(3, channels), sizes=torch.tensor([3, 4]))


both = pytest.mark.parametrize("make", [_padded, _sparse], ids=["padded", "sparse"])


@both
def test_the_facts_of_the_values_are_told(make):
    x = make()
    assert (x.device, x.dtype, x.channels) == (torch.device("cpu"), torch.float32, 2)


def test_a_padded_has_the_shape_of_its_values():
    assert _padded().shape == (3, 4, 4, 2)


@both
def test_arithmetic_is_that_of_the_values(make):
    x, y, c = make(), make(), torch.tensor([2.0, -1.0])
    a, b = x.values.clone(), y.values.clone()
    for came, wanted in [
        (x + y, a + b), (x - y, a - b), (x * y, a * b), (x + 1, a + 1), (1 - x, 1 - a), (2 * x, 2 * a), (x / 2, a / 2),
        (-x, -a), (x * c, a * c), (x + c, a + c), (x / c, a / c),
    ]:  # fmt: skip
        assert type(came) is type(x)
        assert_close(came.values, wanted)


@both
@torch.no_grad()
def test_a_layer_gives_after_arithmetic_what_it_gives_for_those_values(make):
    x, layer = make(), EquivariantLinear("n n -> n n", 2, 2)
    for function in (lambda z: z * 2, lambda z: z + z, lambda z: z + 1, lambda z: z / 0, lambda z: z * torch.inf):
        clean = layer(x)
        came, wanted = function(clean), copy.deepcopy(clean).with_values(function(clean.values.clone()))
        if isinstance(came, Padded):
            wanted = Padded(wanted.values, clean.sizes)
        assert_close(layer(came).values, layer(wanted).values, equal_nan=True)


def test_what_belongs_to_other_nodes_is_refused():
    with pytest.raises(SizesError, match=r"Padded \+ Padded: their graphs differ in size"):
        _padded() + Padded(torch.randn(3, 4, 4, 2), torch.tensor([4, 2, 2]))
    with pytest.raises(ShapeError, match=r"Padded \* Padded: their values have shapes"):
        _padded() * Padded(torch.randn(3, 5, 5, 2), torch.tensor([4, 2, 3]))
    with pytest.raises(ShapeError, match=r"Padded - Padded: they have 2 and 3 channels"):
        _padded() - _padded(3)
    with pytest.raises(SupportError, match=r"Sparse \+ Sparse: their stored entries differ"):
        _sparse() + _sparse().with_diagonal()
    with pytest.raises(TensorError, match=r"Padded \+ Sparse: both must be of one kind"):
        _padded() + _sparse()
    with pytest.raises(ShapeError, match=r"one for each of the 2 channels; its shape is \(3,\)"):
        _padded() + torch.ones(3)
    with pytest.raises(TypeError):
        _padded() + "one"


@both
def test_values_are_moved_and_converted_as_those_of_a_tensor(make):
    x = make()
    for moved in (x.to(torch.float64), x.to("cpu", torch.float64), x.to(dtype=torch.float64, non_blocking=True),
                  x.to(torch.zeros(1, dtype=torch.float64))):  # fmt: skip
        assert moved.dtype == torch.float64
        assert_close(moved.values, x.values.double())
    there = x.to("meta")
    assert there.device.type == "meta"
    assert there.values.shape == x.values.shape
    with pytest.raises(TensorError, match=r"expected a device, a dtype or a tensor, not builtins.list"):
        x.to([1])


@both
def test_what_is_converted_gives_what_a_layer_of_that_type_gives(make):
    x, layer = make(), EquivariantLinear("n n -> n n", 2, 2)
    wanted = layer(x).values
    assert_close(layer.double()(x.to(torch.float64)).values, wanted.double(), atol=1e-5, rtol=1e-5)


@both
def test_trees_of_tensors_have_the_tensors_as_leaves(make):
    x, layer = make(), EquivariantLinear("n n -> n n", 2, 2)
    leaves, tree = tree_flatten({"x": [x]})
    assert all(isinstance(leaf, torch.Tensor) for leaf in leaves)
    again = tree_unflatten(leaves, tree)["x"][0]
    assert type(again) is type(x)
    assert_close(layer(again).values, layer(x).values)
    doubled = tree_map(lambda leaf: leaf * 2 if leaf.is_floating_point() else leaf, x)
    assert_close(doubled.values, 2 * x.values)
    if isinstance(x, Sparse):
        assert again.support is x.support  # what layers have found out stays


def test_several_node_sets_go_through_a_tree():
    x = Padded(torch.randn(2, 3, 4, 1), {"u": torch.tensor([3, 1]), "i": torch.tensor([2, 4])})
    again = tree_unflatten(*tree_flatten(x))
    assert_close(again.values, x.values)
    assert again.sizes.keys() == {"u", "i"}


def test_a_network_on_a_padded_can_be_exported():
    net = InvariantNet("n n", [2, 4], 1).eval()
    x = _padded()
    program = torch.export.export(net, (x,))
    assert_close(program.module()(x), net(x))


@both
def test_a_repr_is_one_short_line(make):
    many = torch.arange(1, 101)
    x = make() if make is _padded else Sparse.of_nodes(torch.randn(int(many.sum()), 1), sizes=many)
    if make is _padded:
        x = Padded(torch.zeros(100, 100, 100, 1), many)
    assert repr(x).endswith("sizes=1 to 100)")
    assert "\n" not in repr(x)


def test_sizes_beyond_the_padding_are_refused_when_a_padded_is_made():
    with pytest.raises(
        SizesError, match=r"sizes goes up to 5, but no axis of values, which are \(2, 4, 4, 1\), is longer"
    ):
        Padded(torch.zeros(2, 4, 4, 1), torch.tensor([5, 1]))


def test_a_dense_tensor_that_would_not_fit_is_refused_with_its_bytes():
    x = Sparse(torch.tensor([[0], [1]]), torch.ones(1, 4), sizes=3_000_000)
    with pytest.raises(
        SizesError, match=r"3000000 x 3000000 x 4 numbers would take 144,000,000,000,000 bytes; this machine"
    ):
        x.to_dense()
    small = Sparse(torch.tensor([[0], [0], [1]]), torch.ones(1, 4), sizes=torch.tensor([300]))
    with pytest.raises(SizesError, match=r"Sparse.to_padded\(\): .* max_gigabytes allows 1,000,000"):
        small.to_padded(max_gigabytes=0.001)
    assert small.to_padded(max_gigabytes=0.002).shape == (1, 300, 300, 4)


def test_a_node_set_without_an_axis_may_be_larger_than_all_axes():
    x = Padded(torch.randn(2, 3, 7, 1), {"u": torch.tensor([2, 3]), "i": torch.tensor([7, 5])})
    assert x.with_values(x.values.sum(2)).shape == (2, 3, 1)
    assert Padded(torch.randn(2, 3, 1), torch.tensor([2, 3])).map(lambda values: values.sum(1)).shape == (2, 1)


def test_trees_may_hold_anything_in_the_place_of_tensors():
    for x in (_padded(), _sparse()):
        shapes = tree_map(lambda leaf: str(leaf.shape), x)
        assert tree_flatten(shapes)[0][0] == str(x.values.shape)
    assert repr(tree_map(lambda leaf: 0, _padded())) == "Padded(0, sizes=0)"
    x = Padded(torch.ones(2, 4, 3, 1), torch.tensor([[3, 1, 2, 0]] * 2))
    came = torch.func.vmap(InvariantPool("n", "sum"))(x)
    assert_close(came, InvariantPool("n", "sum")(x))


def test_sizes_are_returned_as_copies():
    pool, given = InvariantPool("n", "sum"), torch.tensor([3])
    x = Padded(torch.ones(1, 3, 1), given)
    assert pool(x).item() == 3
    for sizes in (given, x.sizes, x.sizes_of("n")):
        sizes[0] = 1
    assert x.sizes.tolist() == [3]
    assert pool(x).item() == 3


@pytest.mark.parametrize("change", [lambda x: x * 1e39, lambda x: x / 1e-46], ids=["times", "by"])
def test_a_number_that_is_infinite_or_zero_in_single_precision_makes_padding_dirty(change):
    x = Padded.pack([torch.ones(2, 1), torch.ones(0, 1)], "n")
    assert_close(EquivariantLinear("n -> n", 1, 1)(change(x)).values[1], torch.zeros(2, 1))


def test_graphs_of_other_sizes_are_refused_though_they_list_the_same_tuples():
    index = torch.tensor([[0, 1], [1, 0]])
    with pytest.raises(SizesError, match=r"Sparse \+ Sparse: their graphs differ in size"):
        Sparse(index, torch.ones(2, 1), 4) + Sparse(index, torch.ones(2, 1), 9)


@pytest.mark.parametrize("module", [EquivariantLinear("n ->", 1, 1), InvariantPool("n")], ids=["layer", "pool"])
def test_many_gradients_at_once_go_through_padding(module):
    values = torch.randn(2, 3, 1, requires_grad=True)
    y = module(Padded(values, torch.tensor([3, 1])))
    many = torch.eye(2).reshape(2, 2, 1)
    came = torch.autograd.grad(y, values, many, is_grads_batched=True, retain_graph=True)[0]
    assert_close(came, torch.stack([torch.autograd.grad(y, values, one, retain_graph=True)[0] for one in many]))


def test_numbers_of_one_byte_are_refused_in_words():
    x = Padded(torch.zeros(1, 2, 2, 1, dtype=torch.float8_e4m3fn), torch.tensor([2]))
    with pytest.raises(TensorError, match=r"parameters of type torch\.float32"):
        EquivariantLinear("n n -> n n", 1, 1)(x)


@pytest.mark.parametrize("reduce", ["sum", "mean"])
def test_what_is_pooled_linearly_may_be_changed_in_place(reduce):
    x = torch.randn(2, 3, 3, 1, requires_grad=True)
    hidden = x * 1
    y = InvariantPool("n n", reduce)(hidden)
    y.mul_(2)
    hidden.relu_()
    y.sum().backward()
    wanted = torch.autograd.grad(2 * InvariantPool("n n", reduce)(x).sum(), x)[0]
    assert_close(x.grad, wanted)


def test_the_gradient_of_a_maximum_that_is_no_number_is_none():
    x = torch.tensor([[[1.0], [torch.nan], [0.0]]], requires_grad=True)
    InvariantPool("n")(x).sum().backward()
    assert x.grad.isnan().all()


def _several(make, channels):
    """Tensors over the same nodes, with these numbers of channels."""
    first = make(channels[0])
    return [first.with_values(torch.randn(*first.values.shape[:-1], width)) for width in channels]


@both
def test_cat_joins_the_channels_of_tensors_over_the_same_nodes(make):
    several = _several(make, [2, 1, 3])
    joined = bn.cat(several)
    assert type(joined) is type(several[0])
    assert_close(joined.values, torch.cat([one.values for one in several], -1))
    assert_close(joined.values, bn.cat([one.values for one in several]))
    equal = copy.deepcopy(several[1])  # the same nodes, in another object
    assert_close(bn.cat((several[0], equal)).values, bn.cat(several[:2]).values)
    if isinstance(joined, Sparse):
        assert joined.support is several[0].support
    else:
        assert torch.equal(joined.sizes, several[0].sizes)


@both
def test_a_layer_on_joined_channels_is_a_sum_of_layers(make):
    x, y = _several(make, [2, 1])
    layer = EquivariantLinear("n n -> n n", 3, 2, bias=False).double()
    parts = [EquivariantLinear("n n -> n n", width, 2, bias=False).double() for width in (2, 1)]
    with torch.no_grad():
        parts[0].weight.copy_(layer.weight[:, :2])
        parts[1].weight.copy_(layer.weight[:, 2:])
    x, y = (one.to(torch.float64) for one in (x, y))
    assert_close(layer(bn.cat([x, y])).values, (parts[0](x) + parts[1](y)).values)


@both
def test_gradients_flow_through_cat_clone_and_an_index(make):
    x, y = _several(make, [2, 1])
    a, b = (one.values.double().requires_grad_() for one in (x, y))
    assert torch.autograd.gradcheck(lambda a, b: bn.cat([x.with_values(a), y.with_values(b)]).values, (a, b))
    assert torch.autograd.gradcheck(lambda a: x.with_values(a).clone()[1:].values, a)
    assert not x.with_values(a).detach().values.requires_grad


KEYS = [0, -1, 2, slice(None), slice(1, None), slice(None, None, 2), slice(2, 2), [2, 0], torch.tensor(1)]
KEYS += [torch.tensor([1, 1, 0]), torch.tensor([True, False, True]), torch.tensor([], dtype=torch.int64)]


@pytest.mark.parametrize("key", KEYS, ids=str)
@pytest.mark.parametrize("shape", ["n", "n n", "u i", "u i u"])
@given(data=st.data())
def test_an_index_selects_graphs_of_a_batch(key, shape, data):
    names = shape.split()
    sizes = [{name: data.draw(st.integers(0, 3)) for name in ("n", "u", "i")} for _ in range(3)]
    graphs = [torch.randn(*(one[name] for name in names), 2) for one in sizes]
    padded = Padded.pack(graphs, shape)
    sparse = Sparse.from_dense(padded, shape)
    assert len(padded) == len(sparse) == 3
    chosen = torch.arange(3)[key]
    wanted = [graphs[number] for number in chosen.reshape(-1).tolist()]
    some, few = padded[key], sparse[key]
    assert some.shape[1 if chosen.ndim else 0 :] == padded.shape[1:]
    for one, other in zip(some.unpack(shape), wanted, strict=True):
        assert torch.equal(one, other)
    for one, other in zip(few.unpack(), wanted, strict=True):
        assert torch.equal(one.to_dense(), other)
    assert few.support.counts.is_batch == (chosen.ndim == 1)
    again = Sparse(few.index, few.values, few.sizes, shape=shape)  # a valid support, in ascending order
    assert torch.equal(again.values, few.values)


def test_a_loop_over_a_batch_yields_its_graphs():
    x, y = _padded(), _sparse()
    assert [one.unpack()[0].shape[0] for one in x] == [4, 2, 3]
    assert [one.nnz for one in y] == [2, 1]


@both
@pytest.mark.parametrize("key", [(0, 1), None, ..., True, "one", 1.0])
def test_an_index_of_another_kind_is_refused(make, key):
    with pytest.raises(TensorError, match="expected an integer, a slice, or a tensor of integers or booleans, got"):
        make()[key]


@both
def test_an_index_beyond_the_batch_is_refused(make):
    with pytest.raises(IndexError):
        make()[3]
    with pytest.raises(IndexError):
        make()[torch.tensor([True])]


def test_the_mask_of_a_padded_marks_the_entries_of_its_graphs():
    x = Padded(torch.zeros(2, 3, 4, 1), {"u": torch.tensor([3, 1]), "i": torch.tensor([2, 4])})
    mask = x.mask()
    assert torch.equal(mask, x.mask("u i"))
    assert mask[0].nonzero().amax(0).tolist() == [2, 1]
    assert mask.sum((1, 2)).tolist() == [6, 4]
    assert torch.equal(mask, Padded.pack([torch.ones(3, 2, 1), torch.ones(1, 4, 1)], "u i").values[..., 0] > 0)
    single = Padded(torch.zeros(3, 1), torch.tensor(2))
    assert single.mask().tolist() == [True, True, False]
    per_batch = Padded(torch.zeros(2, 2, 3, 1), torch.tensor([1, 3]))  # sizes of the first of two batch axes
    assert per_batch.mask("n").sum(-1).tolist() == [[1, 1], [3, 3]]
