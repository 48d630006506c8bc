"""A check runs a module many times; afterwards nothing must tell of it."""

import copy

import pytest
import torch
from torch import nn

from bellnet import EquivariantLinear, testing


class Net(nn.Module):
    """A layer, batch norm over all positions, and dropout of whole channels."""

    def __init__(self):
        super().__init__()
        self.in_channels = 2
        self.layer = EquivariantLinear("n n -> n n", 2, 4)
        self.norm = nn.BatchNorm1d(4)
        self.register_buffer("calls", torch.zeros(()), persistent=False)

    def forward(self, x):
        self.calls += 1
        y = self.layer(x)
        y = self.norm(y.reshape(-1, 4)).reshape(y.shape)
        return y * nn.functional.dropout(torch.ones(4), 0.5, self.training)


@pytest.mark.parametrize("training", [True, False])
def test_buffers_parameters_gradients_and_mode_do_not_change(training):
    net = Net().train(training)
    before, calls = copy.deepcopy(net.state_dict()), net.calls
    testing.assert_equivariant(net, "n n -> n n")
    for name, tensor in net.state_dict().items():
        assert torch.equal(tensor, before[name]), name
    assert net.calls is calls
    assert net.calls == 0
    assert net.training == training
    assert all(parameter.grad is None for parameter in net.parameters())


def test_gradients_that_were_there_stay_as_they_were():
    layer = EquivariantLinear("n -> n", 2, 2)
    layer(torch.randn(3, 2)).sum().backward()
    before = layer.weight.grad.clone()
    testing.assert_padding_invariant(layer, "n -> n")
    assert torch.equal(layer.weight.grad, before)


@pytest.mark.parametrize("check", [testing.assert_equivariant, testing.assert_padding_invariant])
def test_random_numbers_go_on_as_if_nothing_had_happened(check):
    layer = EquivariantLinear("n -> n", 2, 2)
    torch.manual_seed(1)
    expected = torch.randn(3)
    torch.manual_seed(1)
    check(nn.Sequential(layer), "n -> n", in_channels=2)
    assert torch.equal(torch.randn(3), expected)


def test_noise_is_the_same_in_every_call():
    testing.assert_equivariant(lambda x: x + torch.randn(x.shape[-1]), "n -> n", in_channels=3)


def test_a_check_in_another_type_is_made_on_a_copy():
    net = Net().eval()
    testing.assert_equivariant(net, "n n -> n n", dtype=torch.float64)
    assert {parameter.dtype for parameter in net.parameters()} == {torch.float32}


def test_a_module_is_checked_in_its_own_type():
    testing.assert_equivariant(EquivariantLinear("n -> n", 2, 2, dtype=torch.float64), "n -> n")
