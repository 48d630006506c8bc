"""`Padded` and `Sparse` as citizens: facts, arithmetic, moving, trees of tensors, short reprs."""

import copy

import pytest
import torch
from torch.testing import assert_close
from torch.utils._pytree import tree_flatten, tree_map, tree_unflatten

from bellnet import EquivariantLinear, InvariantNet, Padded, Sparse
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
    with pytest.raises(SupportError, match=r"Sparse \+ Sparse: they list different tuples"):
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
