import pytest
import torch

from bellnet.testing.subject import NO_ROUNDING, Tolerance, difference

LOOSE = Tolerance(rtol=0.1, atol=0.01)


def test_the_largest_difference_is_found():
    found = difference(torch.tensor([[1.0, 2.0], [3.0, 9.0]]), torch.tensor([[1.5, 2.0], [3.0, 4.0]]), LOOSE)
    assert (found.place, found.found, found.expected, found.allowed) == ((1, 1), 9, 4, pytest.approx(0.41))


def test_differences_within_the_tolerance_are_none():
    assert difference(torch.tensor([1.0, 10.5]), torch.tensor([1.5, 10.0]), LOOSE) is None


@pytest.mark.parametrize("wrong", [torch.nan, torch.inf, -torch.inf])
def test_what_is_not_finite_always_differs_even_from_itself(wrong):
    tensor = torch.tensor([0.0, wrong])
    assert difference(tensor, tensor, LOOSE).place == (1,)
    assert str(difference(tensor, tensor, LOOSE)) == "not finite"
    assert difference(tensor, torch.zeros(2), LOOSE).place == (1,)
    assert difference(torch.zeros(2), tensor, LOOSE).place == (1,)


def test_without_rounding_the_smallest_difference_counts():
    assert difference(torch.tensor([1e-30]), torch.zeros(1), NO_ROUNDING) is not None
    assert difference(torch.zeros(1), torch.zeros(1), NO_ROUNDING) is None


def test_empty_tensors_and_numbers_can_be_compared():
    assert difference(torch.zeros(0, 3), torch.zeros(0, 3), NO_ROUNDING) is None
    assert difference(torch.tensor(1.0), torch.tensor(2.0), LOOSE).place == ()


@pytest.mark.parametrize(("rtol", "atol"), [(None, None), (0.5, None), (None, 0.5)])
def test_a_tolerance_that_is_given_takes_the_place_of_the_default(rtol, atol):
    default = Tolerance.choose(torch.float32, None, None)
    chosen = Tolerance.choose(torch.float32, rtol, atol)
    assert chosen == Tolerance(default.rtol if rtol is None else rtol, default.atol if atol is None else atol)
    assert Tolerance.choose(torch.float64, None, None).rtol < default.rtol
