"""Layers on sparse tensors agree with themselves under torch's transforms."""

import pytest
import torch

import bellnet as bn

SPECS = ["n n -> n n", "n n -> n", "n n ->"]


@pytest.fixture(params=SPECS)
def subject(request):
    """A layer as a function of the stored values, and such values."""
    torch.manual_seed(0)
    x = bn.Sparse(torch.tensor([[0, 1, 2, 4, 3], [1, 0, 3, 2, 3]]), torch.randn(5, 2, dtype=torch.float64), 5)
    layer = bn.EquivariantLinear(request.param, 2, 3, dtype=torch.float64)

    def run(values, module=layer):
        result = module(x.with_values(values))
        return result.values if isinstance(result, bn.Sparse) else result

    return layer, run, x.values


def test_vmap_runs_over_sets_of_values(subject):
    _, run, values = subject
    several = torch.stack([values, 2 * values, values - 1])
    torch.testing.assert_close(torch.vmap(run)(several), torch.stack([run(one) for one in several]))


def test_jacobians_forwards_and_backwards_are_those_of_autograd(subject):
    _, run, values = subject
    expected = torch.autograd.functional.jacobian(run, values)
    torch.testing.assert_close(torch.func.jacrev(run)(values), expected)
    torch.testing.assert_close(torch.func.jacfwd(run)(values), expected)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The .grad attribute")  # torch.compile looks at it where it goes on after a break
def test_a_compiled_layer_gives_the_same_and_has_the_same_gradients(subject):
    layer, run, values = subject
    compiled = torch.compile(layer, backend="aot_eager")
    for module in (layer, compiled):
        for parameter in layer.parameters():
            parameter.grad = None
        result = run(values, module)
        result.pow(2).sum().backward()
        found = [result.detach(), *(parameter.grad for parameter in layer.parameters())]
        if module is layer:
            expected = found
    torch.testing.assert_close(found, expected)
