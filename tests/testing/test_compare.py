import pytest
import torch

from bellnet import EquivariantLinear
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
