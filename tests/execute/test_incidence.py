"""Adding up along several incidences at once."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from bellnet.execute import incidence
from bellnet.execute.incidence import Incidence, JointSum

WHOLES = 4
WHOLE = st.lists(st.integers(-1, WHOLES - 1), min_size=1, max_size=12)


@pytest.mark.parametrize("many", [0, 10**9], ids=["merged", "sorted again"])
@given(several=st.lists(WHOLE, min_size=1, max_size=3), is_interleaved=st.booleans())
def test_parts_are_added_up_to_their_wholes_incidence_by_incidence(many, several, is_interleaved):
    length = max(map(len, several))
    several = [whole + [-1] * (length - len(whole)) for whole in several]
    incidences = [Incidence(torch.tensor(whole), WHOLES) for whole in several]
    step = len(several) if is_interleaved else 1
    starts = [number if is_interleaved else number * length for number in range(len(several))]
    rows = torch.randn(length * len(several), 2, dtype=torch.float64)
    expected = torch.zeros(WHOLES, len(several), 2, dtype=torch.float64)
    for number, whole in enumerate(several):
        for part, place in enumerate(whole):
            if place >= 0:
                expected[place, number] += rows[starts[number] + part * step]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(incidence, "MANY", many)
        found = JointSum(incidences, starts, step).add_up(rows)
    torch.testing.assert_close(found, expected.view(WHOLES, -1))
