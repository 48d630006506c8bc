"""Looking for tuples in a list, a few or many at once."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from bellnet.tensors import support as codes

NUMBERS = st.lists(st.integers(0, 30), max_size=40)


@pytest.mark.parametrize("many", [0, 10**9], ids=["sorted first", "as they come"])
@given(wanted=NUMBERS, here=st.sets(st.integers(0, 30)), shuffled=st.randoms(use_true_random=False))
def test_every_number_is_found_in_its_place_or_not_at_all(many, wanted, here, shuffled):
    listed = list(here)
    shuffled.shuffle(listed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(codes, "MANY", many)
        found = codes.find(torch.tensor(wanted, dtype=torch.int64), torch.tensor(listed, dtype=torch.int64))
    assert found.tolist() == [listed.index(number) if number in here else -1 for number in wanted]


@given(wanted=NUMBERS, here=st.sets(st.integers(0, 30)), shuffled=st.randoms(use_true_random=False))
def test_an_order_that_is_known_is_taken_only_if_it_is_one(wanted, here, shuffled):
    listed, places = sorted(here), sorted(range(len(wanted)), key=wanted.__getitem__)
    shuffled.shuffle(places)
    numbers = torch.tensor(wanted, dtype=torch.int64), torch.tensor(listed, dtype=torch.int64)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(codes, "MANY", 0)
        found = codes.find(*numbers, lambda: torch.tensor(places, dtype=torch.int64))
    assert found.tolist() == [listed.index(number) if number in here else -1 for number in wanted]
