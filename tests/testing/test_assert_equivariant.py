import re

import pytest
import torch
from torch import nn

from bellnet import EquivariantLinear, InvariantPool, errors, testing
from tests.testing import faults

SPECS = [
    "n n -> n n",
    "n -> n",
    "n n ->",
    "n n n -> n",
    "n -> n n",
    "u i -> i u",
    "u u i -> u",
    "-> n n",
    "u -> u i",
    "->",
]


@pytest.mark.parametrize("spec", SPECS)
@pytest.mark.parametrize("options", [{}, {"normalize": "sum"}, {"normalize": "sum", "basis": "orbit"}])
def test_layers_are_equivariant(spec, options):
    testing.assert_equivariant(EquivariantLinear(spec, 2, 3, **options), spec)


@pytest.mark.parametrize("batch", [(), (3,), (2, 1, 2), (0,)])
def test_inputs_may_have_any_batch_axes(batch):
    testing.assert_equivariant(EquivariantLinear("n n -> n", 2, 3), "n n -> n", batch=batch)


@pytest.mark.parametrize("sizes", [0, 1, 2, 7, {"n": 4}])
def test_sizes_can_be_chosen(sizes):
    testing.assert_equivariant(EquivariantLinear("n n -> n", 2, 3), "n n -> n", sizes=sizes)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
def test_default_tolerances_fit_the_dtype(dtype):
    layer = EquivariantLinear("n n -> n n", 4, 4, normalize="sum")
    testing.assert_equivariant(layer, "n n -> n n", dtype=dtype)
    assert layer.weight.dtype == torch.float32


def test_a_function_is_checked_like_a_module():
    testing.assert_equivariant(lambda x: x.transpose(-2, -3), "n n -> n n", in_channels=1)


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize(
    ("module", "spec"),
    [
        (faults.SumOfRowsWithoutNodeZero(), "n n -> n"),
        (faults.LooksAtNodeZero(), "n n -> n"),
        (faults.LooksAtOrder(), "n n -> n"),
        (faults.OneBiasForEachPosition(), "n n -> n"),
        (faults.TransposesTheWrongAxes(), "u i -> u i"),
        (faults.FillsOneNode(), "-> n"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, nn.Module) else None,
)
def test_planted_faults_are_found_with_any_seed(module, spec, seed):
    with pytest.raises(errors.EquivarianceError):
        testing.assert_equivariant(module, spec, seed=seed)


def test_a_module_without_the_planted_fault_passes():
    testing.assert_equivariant(faults.SumOfRows(), "n n -> n")


def test_a_wrong_spec_is_found():
    layer = EquivariantLinear("u i -> u i", 2, 2)
    testing.assert_equivariant(layer, "u i -> u i")
    with pytest.raises(errors.EquivarianceError):
        testing.assert_equivariant(EquivariantLinear("n n -> n n", 2, 2), "u i -> u i", sizes={"u": 5, "i": 5})


def test_a_fault_below_the_rounding_of_float32_is_found_in_float64():
    layer = EquivariantLinear("n -> n", 1, 1)

    def slightly_off(x):
        return layer.double()(x) + 1e-7 * x[..., :1, :]

    testing.assert_equivariant(slightly_off, "n -> n", in_channels=1, dtype=torch.float64, atol=1e-5)
    with pytest.raises(errors.EquivarianceError):
        testing.assert_equivariant(slightly_off, "n -> n", in_channels=1, dtype=torch.float64)


def test_a_failed_check_is_an_assertion_error():
    with pytest.raises(AssertionError):
        testing.assert_equivariant(faults.LooksAtNodeZero(), "n n -> n")


@pytest.mark.parametrize("shape", ["n n", "n n ->", "u i"])
@pytest.mark.parametrize("reduce", ["max", "sum", "mean"])
def test_pooling_is_invariant(shape, reduce):
    testing.assert_invariant(InvariantPool(shape.replace("->", ""), reduce), shape, in_channels=3)


def test_a_layer_is_invariant_and_the_first_node_is_not():
    testing.assert_invariant(EquivariantLinear("n n ->", 2, 3), "n n")
    with pytest.raises(errors.EquivarianceError):
        testing.assert_invariant(lambda x: x[..., 0, :], "n", in_channels=1)


def test_a_single_node_is_checked_and_infinity_is_an_error():
    testing.assert_invariant(faults.MaxWithoutDiagonal(), "n n", in_channels=1, sizes=3)
    with pytest.raises(errors.EquivarianceError, match="not finite"):
        testing.assert_invariant(faults.MaxWithoutDiagonal(), "n n", in_channels=1)


def test_a_module_may_compute_gradients():
    def gradient(x):
        x = x.detach().requires_grad_()
        return torch.autograd.grad(x.sum(-2).pow(2).sum(), x)[0]

    testing.assert_equivariant(gradient, "n -> n", in_channels=2)


def test_a_failure_can_be_reproduced_by_hand():
    module = faults.SumOfRowsWithoutNodeZero()
    with pytest.raises(errors.EquivarianceError) as caught:
        testing.assert_equivariant(module, "n n -> n", seed=5)
    text = str(caught.value)
    permutation = [int(digit) for digit in re.search(r"'n': \[([\d, ]+)\]", text).group(1).split(", ")]
    position = tuple(int(digit) for digit in re.search(r"output\[([\d, ]+)\]", text).group(1).split(", "))
    x = torch.randn(2, 5, 5, 2, generator=torch.Generator().manual_seed(5), dtype=torch.float64).float()
    found = module(testing.permute_nodes(x, "n n", permutation))
    expected = testing.permute_nodes(module(x), "n", permutation)
    assert f"permuted, then called  {found[position]:.6g}" in text
    assert f"called, then permuted  {expected[position]:.6g}" in text
