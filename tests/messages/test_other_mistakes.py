"""Mistakes that are easily made and must be explained, not passed on to torch or swallowed."""

import pytest
import torch

from bellnet import EquivariantLinear, Padded, Spec, plan
from bellnet.errors import BellnetError


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
