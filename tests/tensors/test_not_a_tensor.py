"""Names of tensors that are asked of `Padded` and `Sparse`: answered with words, and in nobody's way."""

import copy
import pickle

import pytest
import torch
from torch.utils import _pytree as trees

from bellnet import Padded, Sparse
from bellnet.errors import NotATensorError
from bellnet.tensors.node_tensor import CONVERSIONS, REDUCTIONS


def padded():
    return Padded(torch.randn(2, 3, 3, 1), torch.tensor([3, 1]))


def sparse():
    return Sparse(torch.tensor([[0, 1], [1, 0]]), torch.randn(2, 1), sizes=3)


BOTH = pytest.mark.parametrize("make", [padded, sparse])


@BOTH
def test_every_public_name_of_tensors_is_there_or_answered_with_the_way_out(make):
    x = make()
    lacking = [name for name in dir(torch.Tensor) if not name.startswith("_") and not hasattr(x, name)]
    for name in lacking:
        with pytest.raises(NotATensorError, match=rf"A {type(x).__name__} is not a tensor and has no '{name}'\.\n."):
            getattr(x, name)
    assert REDUCTIONS | {*CONVERSIONS, "view", "ndim"} <= set(lacking)


@BOTH
def test_what_is_derived_from_them_is_answered_alike(make):
    x = make()
    derived = type("Own", (type(x),), {})
    own = object.__new__(derived)
    assert not hasattr(own, "mean")
    with pytest.raises(NotATensorError) as caught:
        own.relu  # noqa: B018
    with pytest.raises(NotATensorError) as expected:
        x.relu  # noqa: B018
    assert str(caught.value) == str(expected.value).replace(f"A {type(x).__name__} ", "A Own ")


@BOTH
@pytest.mark.parametrize("name", ["meen", "_private", "__array__", "__deepcopy__", "__setstate__"])
def test_other_names_are_answered_as_python_does(make, name):
    x = make()
    with pytest.raises(AttributeError) as caught:
        getattr(x, name)
    assert type(caught.value) is AttributeError
    assert str(caught.value) == f"'{type(x).__name__}' object has no attribute '{name}'"


@pytest.mark.parametrize("kind", [Padded, Sparse])
@pytest.mark.parametrize("name", ["values", "sizes", "device"])
def test_what_half_made_objects_lack_is_not_taken_for_a_name_of_tensors(kind, name):
    with pytest.raises(AttributeError) as caught:
        getattr(object.__new__(kind), name)
    assert type(caught.value) is AttributeError


@BOTH
def test_copies_pickles_and_trees_go_on_as_before(make):
    x = make()
    leaves, form = trees.tree_flatten(x)
    made = [copy.copy(x), copy.deepcopy(x), pickle.loads(pickle.dumps(x)), trees.tree_unflatten(leaves, form)]
    for again in made:
        assert type(again) is type(x)
        assert torch.equal(again.values, x.values)
