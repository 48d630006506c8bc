"""Sums and copies along an incidence."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from bellnet.backends.projections import Incidence

N_SEGMENTS = 4
SEGMENT = st.lists(st.integers(-1, N_SEGMENTS - 1), min_size=1, max_size=12)


@given(segment=SEGMENT, is_sorted=st.booleans())
def test_segment_sums_and_gathers_follow_the_index(segment, is_sorted):
    segment = sorted(segment) if is_sorted else segment
    incidence = Incidence(torch.tensor(segment), N_SEGMENTS)
    rows, segments = torch.randn(len(segment), 2, dtype=torch.float64), torch.randn(N_SEGMENTS, 2, dtype=torch.float64)
    sums, gathered = torch.zeros_like(segments), torch.zeros_like(rows)
    for row, number in enumerate(segment):
        if number >= 0:
            sums[number] += rows[row]
            gathered[row] = segments[number]
    torch.testing.assert_close(incidence.segment_sum(rows), sums)
    torch.testing.assert_close(incidence.segment_sum_functional(rows), sums)
    torch.testing.assert_close(incidence.gather(segments), gathered)
    total = rows.clone()
    incidence.add_gathered_(segments, total)
    torch.testing.assert_close(total, rows + gathered)


@given(segment=SEGMENT, is_sorted=st.booleans())
def test_tables_for_kernels_follow_the_index(segment, is_sorted):
    segment = sorted(segment) if is_sorted else segment
    incidence = Incidence(torch.tensor(segment), N_SEGMENTS)
    assert incidence.table.tolist() == segment
    order, bounds = incidence.grouped
    order = list(range(len(segment))) if order is None else order.tolist()
    for number in range(N_SEGMENTS):
        assert order[bounds[number] : bounds[number + 1]] == [row for row, one in enumerate(segment) if one == number]
