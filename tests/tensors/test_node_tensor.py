"""The methods that `Padded` and `Sparse` share: arithmetic, moving, pytrees, concatenation, an index of graphs."""

import copy
import pickle

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.testing import assert_close
from torch.utils._pytree import tree_flatten, tree_map, tree_unflatten

import bellnet as bn
from bellnet import EquivariantLinear, InvariantNet, InvariantPool, Padded, Sparse
from bellnet.errors import NotATensorError, TensorError
from bellnet.tensors.node_tensor import CONVERSIONS, REDUCTIONS


def _padded(channels=2):
    return Padded(torch.randn(3, 4, 4, channels), torch.tensor([4, 2, 3]))


def _sparse(channels=2):
    index = torch.tensor([[0, 0, 1], [0, 1, 2], [1, 0, 0]])
    return Sparse(index, torch.randn(3, channels), sizes=torch.tensor([3, 4]))


both = pytest.mark.parametrize("make", [_padded, _sparse], ids=["padded", "sparse"])


@both
def test_device_dtype_and_channels_are_those_of_the_values(make):
    x = make()
    assert (x.device, x.dtype, x.channels) == (torch.device("cpu"), torch.float32, 2)
    assert not isinstance(x, Padded) or x.shape == x.values.shape


@both
def test_arithmetic_is_that_of_the_values(make):
    x, y, c = make(), make(), torch.tensor([2.0, -1.0])
    a, b = x.values.clone(), y.values.clone()
    for found, expected in [
        (x + y, a + b), (x - y, a - b), (x * y, a * b), (x + 1, a + 1), (1 - x, 1 - a), (2 * x, 2 * a), (x / 2, a / 2),
        (-x, -a), (x * c, a * c), (x + c, a + c), (x / c, a / c),
    ]:  # fmt: skip
        assert type(found) is type(x)
        assert_close(found.values, expected)
    with pytest.raises(TypeError):
        x + "one"


FUNCTIONS = [lambda x: x * 2, lambda x: x + x, lambda x: x + 1, lambda x: x / 0, lambda x: x * torch.inf]


@both
@pytest.mark.parametrize("function", FUNCTIONS)
@torch.no_grad()
def test_a_layer_ignores_padding_that_arithmetic_changed(make, function):
    layer = EquivariantLinear("n n -> n n", 2, 2)
    zero_padded = layer(make())
    found, expected = function(zero_padded), copy.deepcopy(zero_padded).with_values(function(zero_padded.values))
    if isinstance(found, Padded):
        expected = Padded(expected.values, zero_padded.sizes)
    assert_close(layer(found).values, layer(expected).values, equal_nan=True)


@pytest.mark.parametrize("function", [lambda x: x * 1e39, lambda x: x / 1e-46], ids=["times", "divided by"])
def test_a_number_that_is_infinite_or_zero_in_float32_makes_padding_nan(function):
    x = Padded.pack([torch.ones(2, 1), torch.ones(0, 1)], "n")
    assert_close(EquivariantLinear("n -> n", 1, 1)(function(x)).values[1], torch.zeros(2, 1))


@both
def test_values_are_moved_and_converted_as_those_of_a_tensor(make):
    x, layer = make(), EquivariantLinear("n n -> n n", 2, 2)
    expected = layer(x).values.double()
    for moved in (x.to(torch.float64), x.to("cpu", torch.float64), x.to(dtype=torch.float64, non_blocking=True),
                  x.to(torch.zeros(1, dtype=torch.float64))):  # fmt: skip
        assert_close(moved.values, x.values.double())
        assert_close(layer.double()(moved).values, expected, atol=1e-5, rtol=1e-5)
    there = x.to("meta")
    assert there.device.type == "meta"
    assert there.values.shape == x.values.shape
    if isinstance(x, Sparse):
        assert x.to(torch.float64).support is x.support
        assert there.index.is_meta


@both
def test_detach_and_clone_are_those_of_the_values(make):
    values = make().values.requires_grad_()
    x = make().with_values(values)
    assert x.detach().values.data_ptr() == values.data_ptr()
    assert not x.detach().values.requires_grad
    copied = x.clone()
    assert copied.values.data_ptr() != values.data_ptr()
    copied.values.sum().backward()
    assert_close(values.grad, torch.ones_like(values))


def test_detach_clone_and_a_dtype_leave_padding_zero():
    x = EquivariantLinear("n n -> n n", 2, 2)(_padded())
    for found in (x.detach(), x.clone(), x.to(torch.float64), x[1:]):
        assert found._axes_of_zeros() == ("n", "n")
    assert (x + 1).detach()._axes_of_zeros() is None


@both
def test_a_pytree_has_the_tensors_as_leaves(make):
    x, layer = make(), EquivariantLinear("n n -> n n", 2, 2)
    leaves, tree = tree_flatten({"x": [x]})
    assert all(isinstance(leaf, torch.Tensor) for leaf in leaves)
    again = tree_unflatten(leaves, tree)["x"][0]
    assert type(again) is type(x)
    assert_close(layer(again).values, layer(x).values)
    doubled = tree_map(lambda leaf: leaf * 2 if leaf.is_floating_point() else leaf, x)
    assert_close(doubled.values, 2 * x.values)
    if isinstance(x, Sparse):
        assert again.support is x.support  # and so all that layers cached for it


def test_a_pytree_of_several_node_sets_has_their_sizes():
    x = Padded(torch.randn(2, 3, 4, 1), {"u": torch.tensor([3, 1]), "i": torch.tensor([2, 4])})
    again = tree_unflatten(*tree_flatten(x))
    assert_close(again.values, x.values)
    assert again.sizes.keys() == {"u", "i"}


def test_a_pytree_may_have_any_objects_in_the_place_of_tensors():
    for x in (_padded(), _sparse()):
        shapes = tree_map(lambda leaf: str(leaf.shape), x)
        assert tree_flatten(shapes)[0][0] == str(x.values.shape)
    assert repr(tree_map(lambda leaf: 0, _padded())) == "Padded(0, sizes=0)"
    x = Padded(torch.ones(2, 4, 3, 1), torch.tensor([[3, 1, 2, 0]] * 2))
    assert_close(torch.func.vmap(InvariantPool("n", "sum"))(x), InvariantPool("n", "sum")(x))


@both
def test_copies_and_pickles_have_equal_values(make):
    x = make()
    for again in (copy.copy(x), copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
        assert type(again) is type(x)
        assert torch.equal(again.values, x.values)


def test_a_network_on_a_padded_can_be_exported():
    net, x = InvariantNet("n n", [2, 4], 1).eval(), _padded()
    assert_close(torch.export.export(net, (x,)).module()(x), net(x))


def test_a_repr_is_one_short_line():
    many = torch.arange(1, 101)
    for x in (Padded(torch.zeros(100, 100, 100, 1), many), Sparse.of_nodes(torch.randn(5050, 1), sizes=many)):
        assert repr(x).endswith("sizes=1 to 100)")
        assert "\n" not in repr(x)


@pytest.mark.parametrize("module", [EquivariantLinear("n ->", 1, 1), InvariantPool("n")], ids=["layer", "pool"])
def test_batched_gradients_flow_through_padding(module):
    values = torch.randn(2, 3, 1, requires_grad=True)
    y = module(Padded(values, torch.tensor([3, 1])))
    many = torch.eye(2).reshape(2, 2, 1)
    found = torch.autograd.grad(y, values, many, is_grads_batched=True, retain_graph=True)[0]
    assert_close(found, torch.stack([torch.autograd.grad(y, values, one, retain_graph=True)[0] for one in many]))


def test_float8_is_refused_by_a_layer():
    x = Padded(torch.zeros(1, 2, 2, 1, dtype=torch.float8_e4m3fn), torch.tensor([2]))
    with pytest.raises(TensorError, match=r"parameters of type torch\.float32"):
        EquivariantLinear("n n -> n n", 1, 1)(x)


@pytest.mark.parametrize("reduce", ["sum", "mean"])
def test_the_input_and_output_of_a_linear_pool_may_be_changed_in_place(reduce):
    x = torch.randn(2, 3, 3, 1, requires_grad=True)
    hidden = x * 1
    y = InvariantPool("n n", reduce)(hidden)
    y.mul_(2)
    hidden.relu_()
    y.sum().backward()
    assert_close(x.grad, torch.autograd.grad(2 * InvariantPool("n n", reduce)(x).sum(), x)[0])


def test_the_gradient_of_a_maximum_that_is_nan_is_nan():
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
    x, y = (one.to(torch.float64) for one in _several(make, [2, 1]))
    layer, *parts = (EquivariantLinear("n n -> n n", k, 2, bias=False, dtype=torch.float64) for k in (3, 2, 1))
    with torch.no_grad():
        parts[0].weight.copy_(layer.weight[:, :2])
        parts[1].weight.copy_(layer.weight[:, 2:])
    assert_close(layer(bn.cat([x, y])).values, (parts[0](x) + parts[1](y)).values)


@both
def test_gradients_flow_through_cat_clone_and_an_index(make):
    x, y = _several(make, [2, 1])
    a, b = (one.values.double().requires_grad_() for one in (x, y))
    assert torch.autograd.gradcheck(lambda a, b: bn.cat([x.with_values(a), y.with_values(b)]).values, (a, b))
    assert torch.autograd.gradcheck(lambda a: x.with_values(a).clone()[1:].values, a)


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
    expected = [graphs[number] for number in chosen.reshape(-1).tolist()]
    some, few = padded[key], sparse[key]
    assert some.shape[1 if chosen.ndim else 0 :] == padded.shape[1:]
    for one, other in zip(some.unpack(shape), expected, strict=True):
        assert torch.equal(one, other)
    for one, other in zip(few.unpack(), expected, strict=True):
        assert torch.equal(one.to_dense(), other)
    assert few.support.counts.is_batch == (chosen.ndim == 1)
    again = Sparse(few.index, few.values, few.sizes, shape=shape)  # a valid support, in ascending order
    assert torch.equal(again.values, few.values)


def test_a_loop_over_a_batch_yields_its_graphs():
    assert [one.unpack()[0].shape[0] for one in _padded()] == [4, 2, 3]
    assert [one.nnz for one in _sparse()] == [2, 1]


@both
@pytest.mark.parametrize("key", [(0, 1), None, ..., True, "one", 1.0])
def test_an_index_of_another_kind_is_refused(make, key):
    with pytest.raises(TensorError, match="expected an integer, a slice, or a tensor of integers or booleans, got"):
        make()[key]


@both
@pytest.mark.parametrize("key", [3, torch.tensor([True])], ids=str)
def test_an_index_beyond_the_batch_is_refused(make, key):
    with pytest.raises(IndexError):
        make()[key]


@both
def test_every_missing_name_of_a_tensor_raises_an_error_with_advice(make):
    x = make()
    missing = [name for name in dir(torch.Tensor) if not name.startswith("_") and not hasattr(x, name)]
    for name in missing:
        with pytest.raises(NotATensorError, match=rf"A {type(x).__name__} is not a tensor and has no '{name}'\.\n."):
            getattr(x, name)
    assert REDUCTIONS | {*CONVERSIONS, "view", "ndim"} <= set(missing)
    own = object.__new__(type("Own", (type(x),), {}))
    with pytest.raises(NotATensorError, match="A Own is not a tensor and has no 'relu'"):
        own.relu  # noqa: B018


@both
@pytest.mark.parametrize("name", ["meen", "_private", "__array__", "__deepcopy__", "__setstate__"])
def test_another_missing_name_raises_the_error_of_python(make, name):
    x = make()
    with pytest.raises(AttributeError) as caught:
        getattr(x, name)
    assert type(caught.value) is AttributeError
    assert str(caught.value) == f"'{type(x).__name__}' object has no attribute '{name}'"


@pytest.mark.parametrize("kind", [Padded, Sparse])
@pytest.mark.parametrize("name", ["values", "sizes", "device"])
def test_a_missing_attribute_during_unpickling_raises_the_error_of_python(kind, name):
    with pytest.raises(AttributeError) as caught:
        getattr(object.__new__(kind), name)
    assert type(caught.value) is AttributeError
