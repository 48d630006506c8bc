"""Mistakes that are easily made and must be explained, not passed on to torch or swallowed."""

import pytest
import torch

from bellnet import EquivariantLinear, Padded, Spec, plan
from bellnet.errors import SizesError, SpecError


def _new_nodes(sizes):
    return EquivariantLinear("-> n", 1, 1)(torch.zeros(2, 1), sizes=sizes)


MISTAKES = {
    "a mask of sizes": lambda: _new_nodes({"n": torch.tensor([True, False])}),
    "a list of sizes": lambda: _new_nodes({"n": [1, 2]}),
    "a size that is true": lambda: _new_nodes({"n": True}),
    "no size": lambda: _new_nodes({"n": None}),
    "no sizes at all, written as a number": lambda: _new_nodes(0),
    "the cost of a list of nodes": lambda: plan("n -> n").cost([2]),
    "the cost of half a node, by name": lambda: plan("n -> n").cost({"n": 2.5}),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_the_mistake_is_explained(mistake):
    with pytest.raises(SizesError):
        MISTAKES[mistake]()


def test_packing_tensors_of_different_dtypes_keeps_the_wider_one():
    graphs = [torch.zeros(1, 1, 1), torch.full((1, 1, 1), 1e-60, dtype=torch.float64)]
    assert Padded.pack(graphs).values[1].item() == 1e-60


@pytest.mark.parametrize(
    ("source", "target", "error"),
    [
        (("n", "n"), ("n",), None),
        (["n", "n"], ("n",), SpecError),
        (("n", "n"), ["n"], SpecError),
        ("nn", ("n",), SpecError),
        (("n", "n"), "n", SpecError),
    ],
    ids=str,
)
def test_a_spec_is_made_of_tuples_and_of_nothing_else(source, target, error):
    if error is None:
        assert Spec(source, target) == plan("n n -> n").spec
    else:
        with pytest.raises(error, match=r"^Spec\(source, target\): (source|target) must be a tuple of names, not "):
            Spec(source, target)
