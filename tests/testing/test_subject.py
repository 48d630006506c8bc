"""Checks compare tensors with tolerances, and leave modules and random numbers as they were."""

import copy

import pytest
import torch
from torch import nn

from bellnet import EquivariantLinear, testing
from bellnet.spec import parse_spec
from bellnet.testing.subject import Subject, largest_difference

LOOSE = (0.1, 0.01)


def test_the_largest_difference_is_found():
    found = largest_difference(torch.tensor([[1.0, 2.0], [3.0, 9.0]]), torch.tensor([[1.5, 2.0], [3.0, 4.0]]), *LOOSE)
    assert found == ((1, 1), pytest.approx(0.41))


@pytest.mark.parametrize("wrong", [torch.nan, torch.inf, -torch.inf])
def test_a_value_that_is_not_finite_differs_even_from_itself(wrong):
    tensor = torch.tensor([0.0, wrong])
    for found, expected in ((tensor, tensor), (tensor, torch.zeros(2)), (torch.zeros(2), tensor)):
        assert largest_difference(found, expected, *LOOSE)[0] == (1,)


@pytest.mark.parametrize(
    ("found", "expected", "tolerance", "differs"),
    [
        (torch.tensor([1.0, 10.5]), torch.tensor([1.5, 10.0]), LOOSE, False),
        (torch.tensor([1e-30]), torch.zeros(1), (0.0, 0.0), True),
        (torch.zeros(1), torch.zeros(1), (0.0, 0.0), False),
        (torch.zeros(0, 3), torch.zeros(0, 3), (0.0, 0.0), False),
        (torch.tensor(1.0), torch.tensor(2.0), LOOSE, True),
    ],
    ids=["within the tolerance", "exact", "equal", "empty", "numbers"],
)
def test_tensors_differ_if_by_more_than_the_tolerance(found, expected, tolerance, differs):
    assert (largest_difference(found, expected, *tolerance) is not None) == differs


@pytest.mark.parametrize(("rtol", "atol"), [(None, None), (0.5, None), (None, 0.5)])
def test_a_given_tolerance_replaces_the_default_of_the_dtype(rtol, atol):
    def tolerance(dtype, rtol=None, atol=None):
        module = EquivariantLinear("n -> n", 1, 1, dtype=dtype)
        options = {"in_channels": None, "dtype": None, "device": None, "seed": 0, "rtol": rtol, "atol": atol}
        return Subject.of(module, parse_spec("n -> n"), **options).tolerance

    default = tolerance(torch.float32)
    assert tolerance(torch.float32, rtol, atol) == (rtol or default[0], atol or default[1])
    assert tolerance(torch.float64)[0] < default[0]


class Net(nn.Module):
    """A layer, batch norm over all entries, and dropout of whole channels."""

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


@pytest.mark.parametrize("options", [{}, {"dtype": torch.float64}], ids=["own dtype", "float64"])
@pytest.mark.parametrize("training", [True, False])
def test_a_check_does_not_change_buffers_parameters_gradients_mode_and_dtype(training, options):
    net = Net().train(training)
    before, calls = copy.deepcopy(net.state_dict()), net.calls
    testing.assert_equivariant(net, "n n -> n n", **options)
    for name, tensor in net.state_dict().items():
        assert torch.equal(tensor, before[name]), name
    assert {parameter.dtype for parameter in net.parameters()} == {torch.float32}
    assert net.calls is calls
    assert net.calls == 0
    assert net.training == training
    assert all(parameter.grad is None for parameter in net.parameters())


def test_a_check_does_not_change_gradients_of_parameters():
    layer = EquivariantLinear("n -> n", 2, 2)
    layer(torch.randn(3, 2)).sum().backward()
    before = layer.weight.grad.clone()
    testing.assert_padding_invariant(layer, "n -> n")
    assert torch.equal(layer.weight.grad, before)


@pytest.mark.parametrize("check", [testing.assert_equivariant, testing.assert_padding_invariant])
def test_a_check_does_not_change_the_following_random_numbers(check):
    layer = EquivariantLinear("n -> n", 2, 2)
    torch.manual_seed(1)
    expected = torch.randn(3)
    torch.manual_seed(1)
    check(nn.Sequential(layer), "n -> n", in_channels=2)
    assert torch.equal(torch.randn(3), expected)


def test_random_numbers_are_the_same_in_every_call():
    testing.assert_equivariant(lambda x: x + torch.randn(x.shape[-1]), "n -> n", in_channels=3)


def test_a_module_is_checked_in_its_own_dtype():
    testing.assert_equivariant(EquivariantLinear("n -> n", 2, 2, dtype=torch.float64), "n -> n")
