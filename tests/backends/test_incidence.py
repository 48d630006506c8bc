"""Adding up along an incidence, in every way in which it is done."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from bellnet.backends.projections import Incidence

WHOLES = 4
WHOLE = st.lists(st.integers(-1, WHOLES - 1), min_size=1, max_size=12)


@given(whole=WHOLE, is_sorted=st.booleans())
def test_parts_are_added_up_to_their_wholes_and_handed_out_again(whole, is_sorted):
    whole = sorted(whole) if is_sorted else whole
    incidence = Incidence(torch.tensor(whole), WHOLES)
    parts, wholes = torch.randn(len(whole), 2, dtype=torch.float64), torch.randn(WHOLES, 2, dtype=torch.float64)
    sums, handed = torch.zeros_like(wholes), torch.zeros_like(parts)
    for part, place in enumerate(whole):
        if place >= 0:
            sums[place] += parts[part]
            handed[part] = wholes[place]
    torch.testing.assert_close(incidence.segment_sum(parts), sums)
    torch.testing.assert_close(incidence.segment_sum_functional(parts), sums)
    torch.testing.assert_close(incidence.gather(wholes), handed)
    total = parts.clone()
    incidence.add_gathered_(wholes, total)
    torch.testing.assert_close(total, parts + handed)


@given(whole=WHOLE, is_sorted=st.booleans())
def test_tables_for_kernels_say_the_same(whole, is_sorted):
    whole = sorted(whole) if is_sorted else whole
    incidence = Incidence(torch.tensor(whole), WHOLES)
    assert incidence.table.tolist() == whole
    order, bounds = incidence.grouped
    order = list(range(len(whole))) if order is None else order.tolist()
    for place in range(WHOLES):
        assert order[bounds[place] : bounds[place + 1]] == [part for part, one in enumerate(whole) if one == place]
