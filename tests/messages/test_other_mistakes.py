"""Mistakes that are easily made and must be explained, not passed on to torch or swallowed."""

import pytest
import torch

from bellnet import EquivariantLinear, Padded, Spec, change_basis, plan
from bellnet.errors import BellnetError


def _new_nodes(sizes):
    return EquivariantLinear("-> n", 1, 1)(torch.zeros(2, 1), sizes=sizes)


MISTAKES = {
    "one number instead of a dict of sizes": lambda: _new_nodes(5),
    "a size that is not whole": lambda: _new_nodes({"n": 2.5}),
    "a tensor of sizes that are not whole": lambda: _new_nodes({"n": torch.tensor([2.5, 1.0])}),
    "a mask of sizes": lambda: _new_nodes({"n": torch.tensor([True, False])}),
    "no size": lambda: _new_nodes({"n": None}),
    "coefficients in a list": lambda: change_basis("n ->", [1.0], to="orbit"),
    "the cost of half a node": lambda: plan("n -> n").cost(2.5),
    "the cost of a list of nodes": lambda: plan("n -> n").cost([2]),
    "the cost of half a node, by name": lambda: plan("n -> n").cost({"n": 2.5}),
    "unpacking sizes beyond the padding": lambda: Padded(torch.zeros(1, 2, 2, 1), torch.tensor([3])).unpack(),
    "unpacking sizes for more axes": lambda: Padded(torch.zeros(1, 2, 2, 1), torch.tensor([[1, 2]])).unpack(),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_the_mistake_is_explained(mistake):
    with pytest.raises(BellnetError):
        MISTAKES[mistake]()


def test_packing_numbers_of_different_types_does_not_round_in_silence():
    graphs = [torch.zeros(1, 1, 1), torch.full((1, 1, 1), 1e-60, dtype=torch.float64)]
    try:
        packed = Padded.pack(graphs)
    except BellnetError:
        return
    assert packed.values[1].item() == 1e-60


@pytest.mark.parametrize("make", [list, "".join])
def test_a_spec_of_lists_or_strings_is_the_spec_of_tuples_or_refused(make):
    try:
        spec = Spec(make(["n", "n"]), make(["n"]))
    except BellnetError:
        return
    assert spec == Spec(("n", "n"), ("n",))
    assert plan(spec).n_maps == 5
