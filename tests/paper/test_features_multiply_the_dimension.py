"""Theorem 2: layers from d to d' features have dimension d d' Bell(k + l) + d' Bell(l)."""

import pytest
import torch
from torch.func import functional_call

from bellnet import EquivariantLinear
from bellnet.testing import matrix_of
from tests.paper.layers import BELL, of_orders

CASES = [(1, 0, 3, 2), (1, 1, 2, 3), (2, 0, 2, 3), (2, 1, 2, 2), (1, 2, 1, 3), (2, 2, 2, 1), (2, 2, 1, 2)]


@pytest.mark.parametrize(("k", "l", "d", "d_out"), [*CASES, (2, 2, 16, 32), (3, 3, 2, 5)])
def test_the_number_of_parameters_is_the_dimension_of_the_theorem(k, l, d, d_out):
    layer = EquivariantLinear(of_orders(k, l), d, d_out)
    assert layer.weight.shape == (BELL[k + l], d, d_out)
    assert layer.bias.shape == (BELL[l], d_out)
    assert sum(parameter.numel() for parameter in layer.parameters()) == d * d_out * BELL[k + l] + d_out * BELL[l]


@pytest.mark.parametrize("options", [{}, {"basis": "orbit", "normalize": "sum"}])
@pytest.mark.parametrize(("k", "l", "d", "d_out"), CASES)
def test_all_parameters_are_independent(k, l, d, d_out, options):
    spec, n = of_orders(k, l), k + l
    layer = EquivariantLinear(spec, d, d_out, dtype=torch.float64, **options)
    nothing = torch.zeros(*[n] * k, d, dtype=torch.float64)

    def written_out(weight, bias):
        def call(x):
            return functional_call(layer, {"weight": weight, "bias": bias}, x)

        matrix = matrix_of(call, spec, n, in_channels=d)
        return torch.cat([matrix.flatten(), call(nothing).flatten()])

    parameters = (layer.weight.detach(), layer.bias.detach())
    blocks = torch.autograd.functional.jacobian(written_out, parameters, vectorize=True)
    jacobian = torch.cat([block.flatten(1) for block in blocks], 1)
    assert torch.linalg.matrix_rank(jacobian) == d * d_out * BELL[k + l] + d_out * BELL[l]
