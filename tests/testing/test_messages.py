"""The words of every complaint that the checks make."""

import re

import pytest
import torch
from torch import nn

from bellnet import ChannelDropout, EquivariantLinear, Padded, Spec, errors, testing
from tests.testing import faults


def message(kind, check, *args, **options):
    with pytest.raises(kind) as caught:
        check(*args, **options)
    return str(caught.value)


def test_a_failure_names_module_spec_difference_place_renumbering_and_seed():
    text = message(errors.EquivarianceError, testing.assert_equivariant, faults.LooksAtNodeZero(), "n n -> n", seed=3)
    lines = text.splitlines()
    assert lines[0] == 'LooksAtNodeZero() is not equivariant as "n n -> n".'
    assert re.fullmatch(r"    largest difference       0\.0\d+, where [\d.e-]+ is allowed", lines[2])
    assert re.fullmatch(r"    where                    output\[\d, \d, \d\]", lines[3])
    assert re.fullmatch(r"    renumbered, then called  -?\d+\.\d+", lines[4])
    assert re.fullmatch(r"    called, then renumbered  -?\d+\.\d+", lines[5])
    assert lines[6] == "    sizes                    {'n': 5}"
    assert re.fullmatch(r"    renumbering              \{'n': \[\d, \d, \d, \d, \d\]\}", lines[7])
    assert lines[8] == "    to reproduce             seed=3, trial 1 of 3"
    assert len(lines) == 9


def test_what_a_failure_says_can_be_reproduced_by_hand():
    module = faults.SumOfRowsWithoutNodeZero()
    text = message(errors.EquivarianceError, testing.assert_equivariant, module, "n n -> n", seed=5)
    permutation = [int(digit) for digit in re.search(r"'n': \[([\d, ]+)\]", text).group(1).split(", ")]
    place = tuple(int(digit) for digit in re.search(r"output\[([\d, ]+)\]", text).group(1).split(", "))
    x = torch.randn(2, 5, 5, 2, generator=torch.Generator().manual_seed(5), dtype=torch.float64).float()
    found = module(testing.permute_nodes(x, "n n", permutation))
    expected = testing.permute_nodes(module(x), "n", permutation)
    assert f"renumbered, then called  {found[place]:.6g}" in text
    assert f"called, then renumbered  {expected[place]:.6g}" in text


def test_a_failure_of_invariance_says_so():
    text = message(errors.EquivarianceError, testing.assert_invariant, lambda x: x[..., 0, :], "n", in_channels=1)
    assert text.startswith('<lambda> is not invariant over "n".')


def test_dropout_and_batch_norm_in_training_mode_are_pointed_at():
    module = nn.Sequential(nn.Dropout(0.5), nn.Linear(2, 2))
    text = message(errors.EquivarianceError, testing.assert_equivariant, module, "n -> n", in_channels=2)
    assert text.startswith('Sequential is not equivariant as "n -> n".')
    assert text.endswith("It is in training mode and holds Dropout: check it after module.eval() as well.")
    ours = nn.Sequential(ChannelDropout(0.5, 0), nn.Linear(2, 2))  # entry by entry, so not equivariant
    text = message(errors.EquivarianceError, testing.assert_equivariant, ours, "n -> n", in_channels=2)
    assert text.endswith("It is in training mode and holds ChannelDropout: check it after module.eval() as well.")


def test_unknown_channels_are_asked_for():
    text = message(errors.OptionError, testing.assert_equivariant, nn.ReLU(), "n -> n")
    assert text == (
        'assert_equivariant(module, "n -> n"): ReLU() has no attribute in_channels, so its inputs cannot be made up.\n'
        "Pass in_channels=..., the number of channels it takes."
    )
    text = message(errors.OptionError, testing.assert_padding_invariant, len, "n -> n")
    assert text.startswith('assert_padding_invariant(module, "n -> n"): len has no attribute in_channels')


def test_an_output_of_the_wrong_shape_is_shown():
    def mean(x):
        return x.mean(1)

    text = message(errors.ShapeError, testing.assert_equivariant, mean, "n n -> n n", in_channels=3)
    assert text == (
        'mean does not return what "n n -> n n" says.\n\n'
        "    given     (2, 5, 5, 3)\n    expected  (2, 5, 5, channels)\n    got       (2, 5, 3)"
    )


def test_channels_must_not_be_dropped():
    text = message(errors.ShapeError, testing.assert_invariant, lambda x: x.sum(), "n", in_channels=3, batch=())
    assert text.endswith("expected  (channels)\n    got       ()")


def test_an_output_that_is_no_tensor_is_refused():
    text = message(errors.TensorError, testing.assert_equivariant, lambda x: (x, x), "n -> n", in_channels=3)
    assert text.startswith("<lambda> returned a tuple, but the check compares tensors.")


@pytest.mark.parametrize("sizes", [{"u": 3}, {}])
def test_missing_sizes_are_named(sizes):
    text = message(errors.SizesError, testing.assert_equivariant, len, "u i -> u", in_channels=1, sizes=sizes)
    assert text.startswith('The check of "u i -> u" needs the size of every node set; there is none for')
    assert text.endswith("'i'.")


def test_no_trials_check_nothing():
    text = message(errors.OptionError, testing.assert_equivariant, len, "n -> n", in_channels=1, trials=0)
    assert text == "trials must be 1 or more, not 0: without a trial nothing is checked."


@pytest.mark.parametrize("spec", ["n n -> n", Spec(("n", "n"), ("n",))])
def test_an_invariant_module_has_no_target(spec):
    text = message(errors.SpecError, testing.assert_invariant, len, spec, in_channels=1)
    assert text == (
        'assert_invariant(module, "n n -> n"): an invariant module has no nodes in its output, but this target is "n".'
        '\nWrite "n n", or call assert_equivariant.'
    )


def test_a_module_that_sees_padding_is_told_what_and_where():
    lines = message(
        errors.EquivarianceError, testing.assert_padding_invariant, faults.MeanCountsPadding(), "n ->", seed=2
    ).splitlines()
    assert lines[0] == 'MeanCountsPadding() sees the padding as "n ->".'
    assert lines[2] == "    what                 the output of graph 0"
    assert re.fullmatch(r"    largest difference   \d\.\d+, where [\d.e-]+ is allowed", lines[3])
    assert re.fullmatch(r"    where                \[0, [01]\]", lines[4])
    assert re.fullmatch(r"    in the padded batch  -?\d+\.\d+", lines[5])
    assert re.fullmatch(r"    one by one           -?\d+\.\d+", lines[6])
    assert lines[7:] == ["    sizes                {'n': [4, 1, 3]}", "    to reproduce         seed=2"]


def test_values_outside_are_told_to_be_zero():
    check, module = testing.assert_padding_invariant, faults.LeavesGarbageOutside()
    text = message(errors.EquivarianceError, check, module, "n n -> n")
    assert "what                 the output outside the true sizes" in text
    assert "in the padded batch  1\n    expected             0" in text


def test_sizes_that_do_not_fit_are_shown():
    check, module = testing.assert_padding_invariant, faults.ForgetsSizes()
    text = message(errors.SizesError, check, module, "n n -> n")
    assert text == (
        "ForgetsSizes returned a Padded whose sizes of node set 'n' are [4, 2, 5], but the graphs have [4, 1, 3]."
    )
    text = message(errors.SizesError, check, len, "n ->", in_channels=1, sizes={"u": [1]})
    assert text == "The check of \"n ->\" needs the sizes of every node set; there are none for 'n'."
    text = message(errors.SizesError, check, len, "u i ->", in_channels=1, sizes={"u": [1], "i": [1, 2]})
    assert "one size of every node set for each graph, and at least one graph" in text
    text = message(errors.SizesError, check, len, "->", in_channels=1)
    assert text == 'The spec "->" has no nodes, so there is nothing to pad.'


def test_padded_outputs_of_the_wrong_kind_or_shape_are_refused():
    check = testing.assert_padding_invariant
    text = message(errors.TensorError, check, lambda x: [x], "n -> n", in_channels=1)
    assert text.startswith("<lambda> returned a list for a tensor, but the check compares tensors.")
    text = message(errors.TensorError, check, lambda x: 1 if isinstance(x, Padded) else x, "n -> n", in_channels=1)
    assert text.startswith("<lambda> returned a int for a Padded, but")
    text = message(errors.ShapeError, check, EquivariantLinear("n n -> n", 1, 2), "n n -> n n")
    assert text.endswith("expected  (1, 4, 4, channels)\n    got       (1, 4, 2)")

    def too_short(x):
        return x.values[:, :2] if isinstance(x, Padded) else x

    text = message(errors.ShapeError, check, too_short, "n -> n", in_channels=1)
    assert text.endswith("expected  (3, 4 or more, channels)\n    got       (3, 2, 1)")
