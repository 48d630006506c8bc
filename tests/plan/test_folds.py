"""Folds, and the one step that computes each from another."""

import pytest
import torch

from bellnet import plan
from bellnet.plan import Fold

SPECS = ["n n -> n n", "n n n -> n n n", "n n n n ->", "u i u -> i u", "i u i -> u u i", "a b a b -> c"]


def _folds(spec):
    """All reads of a plan and all that they are computed from."""
    found = {}
    for level in plan(spec).levels:
        for fold in level.reads:
            while fold not in found:
                found[fold] = None
                if fold.step is not None:
                    fold = fold.step.parent
    return list(found)


def _by_steps(fold, tensor):
    """The fold of a tensor with one axis for each slot, one step at a time."""
    if fold.step is None:
        return tensor.permute(fold.kept)
    parent = _by_steps(fold.step.parent, tensor)
    if fold.step.kind == "sum":
        return parent.sum(fold.step.axes[0])
    first, second = fold.step.axes
    return parent.diagonal(0, first, second).movedim(-1, first)


@pytest.mark.parametrize("spec", SPECS)
def test_every_chain_of_steps_ends_at_the_identity(spec):
    for fold in _folds(spec):
        identity = Fold.identity(fold.sets)
        length = 0
        while fold.step is not None:
            assert fold.step.parent.rank == fold.rank + 1
            fold, length = fold.step.parent, length + 1
        assert fold == identity
        assert length <= len(identity.blocks)


@pytest.mark.parametrize("spec", SPECS)
def test_steps_compute_what_the_name_of_the_fold_says(spec):
    sets = plan(spec).spec.set_numbers[0]
    tensor = torch.randn([3 + number for number in sets], dtype=torch.float64)
    for fold in _folds(spec):
        torch.testing.assert_close(_by_steps(fold, tensor), torch.einsum(fold.read_name, tensor))


@pytest.mark.parametrize("spec", SPECS)
def test_writing_is_named_as_reading_backwards(spec):
    for fold in _folds(spec):
        source, _, target = fold.read_name.partition("->")
        assert fold.write_name == f"{target}->{source}"


@pytest.mark.parametrize("spec", SPECS)
def test_no_more_sums_than_slots_run_over_the_whole_tensor(spec):
    order = len(plan(spec).spec.source)
    whole = [fold for fold in _folds(spec) if fold.step is not None and fold.step.parent.rank == order]
    assert len([fold for fold in whole if fold.step.kind == "sum"]) <= order
    assert len(whole) < len(_folds(spec)) or order < 2


def test_the_sums_of_rows_are_shared_with_the_total():
    total = Fold((0, 1), (0, 0), ())
    assert total.step.parent.step.parent == Fold.identity((0, 0))
    assert total.step.parent in plan("n n -> n n").levels[1].reads


def test_axes_are_grouped_by_node_set_and_then_by_first_appearance():
    fold = Fold.keeping((0, 1, 2, 1), (1, 0, 1, 0), {0, 1, 2})
    assert fold.kept == (1, 0, 2)
    assert fold.axis_sets == (0, 1, 1)
    assert (fold.read_name, fold.rank, fold.dropped) == ("abcb->bac", 3, ())
