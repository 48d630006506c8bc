"""Contestants start from the same weights and inputs, accumulate no gradients, and are compared only if they agree."""

from dataclasses import replace

import pytest
import torch
from torch import nn

from benchmarks.cases import BARE, OURS, STACKED, Case
from benchmarks.contestants import check_agreement, contestants

TINY = Case(2, batch=2, n=4, in_channels=3, out_channels=5)


@pytest.mark.parametrize("case", [TINY, Case(3, 1, 3, 2, 2), Case(4, 1, 2, 2, 2)])
def test_a_case_has_all_its_contestants(case):
    assert tuple(contestants(case)) == case.contestants


def test_contestants_agree():
    check_agreement(contestants(TINY))


def test_a_contestant_that_computes_another_function_raises():
    found = contestants(TINY)
    with torch.no_grad():
        found[STACKED].module.coefficients[0, 0, 3] += 1
    with pytest.raises(ValueError, match="'stacked' does not compute the function of 'ours'"):
        check_agreement(found)


@pytest.mark.parametrize("name", TINY.contestants)
def test_a_run_accumulates_no_gradients(name):
    contestant = contestants(TINY)[name]
    contestant.run("forward+backward")
    assert contestant.x.grad is None
    assert all(parameter.grad is None for parameter in contestant.module.parameters())


@pytest.mark.parametrize("name", TINY.contestants)
def test_a_backward_pass_reaches_input_and_parameters(name):
    contestant = contestants(TINY)[name]
    needed = [contestant.x, *contestant.module.parameters()]
    gradients = torch.autograd.grad(contestant.module(contestant.x), needed, contestant.upstream)
    assert all(gradient.count_nonzero() > 0 for gradient in gradients)


def test_the_forward_pass_saves_nothing_for_backward():
    seen: list[bool] = []

    class GradModeRecorder(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            seen.append(torch.is_grad_enabled())
            return x

    contestant = replace(contestants(TINY)[OURS], module=GradModeRecorder())
    contestant.run("forward")
    assert seen == [False]


@pytest.mark.parametrize(("order", "times"), [(2, 2), (3, 6), (4, 24)])
def test_the_bare_product_mixes_once_for_every_permutation_of_the_axes(order, times):
    found = contestants(Case(order, batch=1, n=2, in_channels=2, out_channels=3))
    assert found[BARE].upstream.shape[-1] == times * found[OURS].upstream.shape[-1]


def test_stacking_gets_its_input_channels_first():
    found = contestants(TINY)
    assert found[STACKED].x.is_contiguous()
    assert torch.equal(found[STACKED].x, found[OURS].x.movedim(-1, 1))
