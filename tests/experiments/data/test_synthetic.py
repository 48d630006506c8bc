"""The synthetic tasks are the functions they are named after, and the same seed gives the same examples."""

import pytest
import torch

from bellnet.errors import OptionError
from bellnet.testing import permute_nodes
from experiments.data import synthetic


@pytest.mark.parametrize("task", synthetic.TASKS)
def test_shapes_follow_the_task(task):
    inputs, targets = synthetic.make(task, 7, n=6)
    assert inputs.shape == (7, 6, 6, 1)
    assert targets.shape == (7, *[6] * len(synthetic.get(task).target), 1)


def test_targets_are_what_their_names_say():
    inputs, symmetric = synthetic.make("symmetric", 4, n=5)
    matrix = inputs.squeeze(-1)
    torch.testing.assert_close(symmetric.squeeze(-1), (matrix + matrix.mT) / 2)
    assert torch.equal(
        synthetic.get("diagonal").solve(inputs).squeeze(-1), torch.stack([m.diag().diag() for m in matrix])
    )
    traces = torch.stack([m.trace() for m in matrix])
    torch.testing.assert_close(synthetic.get("trace").solve(inputs).squeeze(-1), traces)


def test_entries_are_uniform_between_0_and_10():
    inputs, _ = synthetic.make("trace", 200, n=20)
    assert (inputs.min() >= 0) & (inputs.max() <= 10)
    assert inputs.mean() == pytest.approx(5, abs=0.05)
    assert inputs.var() == pytest.approx(100 / 12, rel=0.02)


def test_singular_values_are_below_a_half_but_for_the_largest_which_is_apart_by_a_half():
    inputs, targets = synthetic.make("singular", 50, n=12)
    values = torch.linalg.svdvals(inputs.squeeze(-1))
    assert values[:, 1:].max() <= 0.5 + 1e-5
    assert (values[:, 0] - values[:, 1]).min() >= 0.5 - 1e-5
    image = (inputs.squeeze(-1) @ targets).norm(dim=(-2, -1))
    torch.testing.assert_close(image, values[:, 0])
    torch.testing.assert_close(targets.norm(dim=(-2, -1)), torch.ones(50))


@pytest.mark.parametrize("task", synthetic.TASKS)
def test_the_functions_commute_with_permutations(task):
    the_task = synthetic.get(task)
    inputs, targets = synthetic.make(task, 3, n=6)
    order = {"n": torch.randperm(6, generator=torch.Generator().manual_seed(1))}
    found = the_task.solve(permute_nodes(inputs, "n n", order))
    expected = permute_nodes(targets, " ".join(the_task.target), order)
    assert float(the_task.error(found, expected)) < 1e-6


@pytest.mark.parametrize("task", synthetic.TASKS)
def test_the_same_seed_gives_the_same_examples_whatever_the_count(task):
    inputs, _ = synthetic.make(task, 130, n=4, seed=5)
    fewer, _ = synthetic.make(task, 20, n=4, seed=5)
    assert torch.equal(inputs[:20], fewer)
    assert not torch.equal(inputs[:20], synthetic.make(task, 20, n=4, seed=6)[0])


def test_training_and_test_examples_of_different_seeds_do_not_meet():
    train, test = (synthetic.make("trace", 300, n=3, seed=seed)[0].flatten(1) for seed in (0, 1))
    assert torch.cdist(train, test).min() > 0


def test_the_trivial_predictor_errs_as_in_the_paper():
    for task, expected in (("symmetric", 4.17), ("diagonal", 0.21), ("trace", 333.33), ("singular", 0.025)):
        _, train = synthetic.make(task, 2000, n=40, seed=0)
        _, test = synthetic.make(task, 1000, n=40, seed=1)
        assert synthetic.trivial_error(task, train, test) == pytest.approx(expected, rel=0.08), task


def test_the_direction_error_and_the_cosine_loss_do_not_depend_on_sign_or_length():
    targets = torch.nn.functional.normalize(torch.randn(5, 8, 1), dim=-2)
    assert float(synthetic.direction_error(-3 * targets, targets)) == pytest.approx(0, abs=1e-6)
    assert float(synthetic.cosine_loss(-3 * targets, targets)) == pytest.approx(0, abs=1e-6)
    other = torch.randn(5, 8, 1)
    loss = 1 - torch.nn.functional.cosine_similarity(other, targets, dim=-2).square()
    expected = ((2 - 2 * (1 - loss).sqrt()) / 8).mean()
    torch.testing.assert_close(synthetic.direction_error(other, targets), expected)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: synthetic.make("transpose", 1), "There is no synthetic task 'transpose'; there are 'symmetric'"),
        (lambda: synthetic.make("trace", -1), "count must be an integer from 0 up, not -1."),
        (lambda: synthetic.make("trace", 1, n=2.5), "n must be an integer from 0 up, not 2.5."),
    ],
)
def test_wrong_requests_are_named(call, words):
    with pytest.raises(OptionError) as caught:
        call()
    assert words in str(caught.value)


def test_no_examples_are_allowed():
    inputs, targets = synthetic.make("diagonal", 0, n=3)
    assert inputs.shape == targets.shape == (0, 3, 3, 1)
