"""Contractions, and the one step that computes each from another one."""

import pytest
import torch

from bellnet import plan
from bellnet.plan import Contraction

SPECS = ["n n -> n n", "n n n -> n n n", "n n n n ->", "u i u -> i u", "i u i -> u u i", "a b a b -> c"]


def _contractions(spec):
    """All contractions of a plan and all that they are computed from."""
    found = {}
    for level in plan(spec).levels:
        for contraction in level.contractions:
            while contraction not in found:
                found[contraction] = None
                if contraction.step is not None:
                    contraction = contraction.step.parent
    return list(found)


def _by_steps(contraction, tensor):
    """The contraction of a tensor with one axis for each slot, one step at a time."""
    if contraction.step is None:
        return tensor.permute(contraction.kept)
    parent = _by_steps(contraction.step.parent, tensor)
    if contraction.step.kind == "sum":
        return parent.sum(contraction.step.axes[0])
    first, second = contraction.step.axes
    return parent.diagonal(0, first, second).movedim(-1, first)


@pytest.mark.parametrize("spec", SPECS)
def test_steps_lead_back_to_the_identity(spec):
    for contraction in _contractions(spec):
        identity = Contraction.identity(contraction.sets)
        length = 0
        while contraction.step is not None:
            assert contraction.step.parent.rank == contraction.rank + 1
            contraction, length = contraction.step.parent, length + 1
        assert contraction == identity
        assert length <= len(identity.blocks)


@pytest.mark.parametrize("spec", SPECS)
def test_steps_compute_the_contraction_of_that_name(spec):
    sets = plan(spec).spec.set_numbers[0]
    tensor = torch.randn([3 + number for number in sets], dtype=torch.float64)
    for contraction in _contractions(spec):
        torch.testing.assert_close(_by_steps(contraction, tensor), torch.einsum(contraction.contraction_name, tensor))


@pytest.mark.parametrize("spec", SPECS)
def test_a_broadcast_has_the_reversed_name_of_the_contraction(spec):
    for contraction in _contractions(spec):
        source, _, target = contraction.contraction_name.partition("->")
        assert contraction.broadcast_name == f"{target}->{source}"


@pytest.mark.parametrize("spec", SPECS)
def test_no_more_sums_than_slots_run_over_the_whole_tensor(spec):
    order = len(plan(spec).spec.source)
    whole = [
        contraction
        for contraction in _contractions(spec)
        if contraction.step is not None and contraction.step.parent.rank == order
    ]
    assert len([contraction for contraction in whole if contraction.step.kind == "sum"]) <= order
    assert len(whole) < len(_contractions(spec)) or order < 2


def test_the_total_is_computed_from_row_sums():
    total = Contraction((0, 1), (0, 0), ())
    assert total.step.parent.step.parent == Contraction.identity((0, 0))
    assert total.step.parent in plan("n n -> n n").levels[1].contractions


def test_axes_are_grouped_by_node_set_and_then_by_first_appearance():
    contraction = Contraction.keeping((0, 1, 2, 1), (1, 0, 1, 0), {0, 1, 2})
    assert contraction.kept == (1, 0, 2)
    assert contraction.axis_sets == (0, 1, 1)
    assert (contraction.contraction_name, contraction.rank, contraction.dropped) == ("abcb->bac", 3, ())


@pytest.mark.parametrize("spec", ["n n -> n n", "n n n -> n n n", "u i -> u i"])
def test_both_sides_of_a_layer_share_a_tree_if_they_are_equal(spec):
    assert plan(spec).source is plan(spec).target
