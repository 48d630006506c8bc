"""First and second derivatives, against finite differences."""

import pytest
import torch
from torch.autograd import gradcheck, gradgradcheck
from torch.func import functional_call

from bellnet import EquivariantLinear, Padded
from tests.backends.subjects import declared, randomise

pytestmark = pytest.mark.usefixtures("every_backend")

CASES = {
    "n n -> n n": {},
    "n n -> n": {"normalize": "sum"},
    "n n ->": {"basis": "orbit", "normalize": "sum"},
    "-> n n": {"basis": "orbit", "normalize": "sum"},
    "n -> n n": {"bias": False},
    "u i -> i u": {},
    "n n n -> n": {},
}


def _as_function(spec, options, *, padded):
    """The layer as a function of its input and parameters, and a point to differentiate it at."""
    layer = randomise(EquivariantLinear(spec, 2, 1, dtype=torch.float64, **options))
    names = [name for name, _ in layer.named_parameters()]
    sizes = dict.fromkeys(layer.spec.target_only, 2)

    def function(x, *parameters):
        given = Padded(x, torch.tensor([2, 1])) if padded else x
        y = functional_call(layer, dict(zip(names, parameters, strict=True)), (given,), {"sizes": sizes})
        return y.values if isinstance(y, Padded) else y

    x = torch.randn(2, *[2] * len(layer.spec.source), 2, dtype=torch.float64)
    point = [x, *(parameter.detach() for parameter in layer.parameters())]
    return function, [tensor.requires_grad_() for tensor in point]


@pytest.mark.parametrize("padded", [False, True], ids=["whole", "padded"])
@pytest.mark.parametrize("spec", CASES)
def test_first_derivatives_equal_finite_differences(spec, padded):
    assert gradcheck(*_as_function(spec, CASES[spec], padded=padded))


@pytest.mark.parametrize("padded", [False, True], ids=["whole", "padded"])
@pytest.mark.parametrize("spec", CASES)
def test_second_derivatives_equal_finite_differences(spec, padded):
    assert gradgradcheck(*_as_function(spec, CASES[spec], padded=padded))


@pytest.mark.parametrize("hollow", [False, True])
def test_derivatives_on_symmetric_inputs_equal_finite_differences(hollow):
    layer = randomise(EquivariantLinear("n n -> n n", 1, 1, symmetric=True, hollow=hollow, dtype=torch.float64))

    def function(x):
        return layer(declared(layer.spec, x, symmetric=True, hollow=hollow))

    x = torch.randn(3, 3, 1, dtype=torch.float64, requires_grad=True)
    assert gradcheck(function, x)
    assert gradgradcheck(function, x)


@pytest.mark.parametrize("frozen", ["x", "weight", "bias"])
def test_only_tensors_that_require_gradients_get_them(frozen):
    layer = randomise(EquivariantLinear("n n -> n n", 2, 3, dtype=torch.float64))
    tensors = {"x": torch.randn(3, 3, 2, dtype=torch.float64), "weight": layer.weight, "bias": layer.bias}
    wanted = torch.autograd.grad(layer(tensors["x"].requires_grad_()).square().sum(), list(tensors.values()))
    tensors[frozen].requires_grad_(False)
    layer(tensors["x"]).square().sum().backward()
    for (name, tensor), gradient in zip(tensors.items(), wanted, strict=True):
        if name == frozen:
            assert tensor.grad is None
        else:
            torch.testing.assert_close(tensor.grad, gradient)
