"""Which segment each row belongs to, and sums and copies along this index.

Every operation of the sparse layout is one of these: stored entries belong to the entry that remains when a slot is
dropped, diagonal entries to the entry with one slot less, an entry to the same entry elsewhere or with permuted slots.

Sums run on `embedding_bag`, which sums rows from anywhere in one pass and always in the same order. It has no second
derivative; `segment_sum_functional` and `gather` can be differentiated and traced.
"""

from collections.abc import Callable
from functools import cached_property
from typing import NamedTuple

import torch
from torch import Tensor

from bellnet.tensors.tracing import no_transforms

LONG = 4096
"""Longer segments are summed in portions: float32 would lose small terms, and one thread would sum it all."""


class Incidence:
    """For each row the segment it belongs to.

    Args:
        segment: (rows,) integers, -1 for a row without a segment.
        n_segments: The number of segments.
        sort: Returns the stable order of the rows by segment, if it is known and every row has a segment.
    """

    def __init__(self, segment: Tensor, n_segments: int, sort: Callable[[], Tensor] | None = None) -> None:
        self.n_rows, self.n_segments, self._sort = len(segment), n_segments, sort
        belongs = segment >= 0
        is_total = bool(belongs.all())
        self.rows = None if is_total else belongs.nonzero().flatten()  # those with a segment; None for all
        self.segment = segment if is_total else segment[belongs]
        self.is_empty = not len(self.segment)
        self.is_single = is_total and n_segments == 1 and not self.is_empty
        self.is_identity = False

    @classmethod
    def identity(cls, n_rows: int, device: torch.device) -> "Incidence":
        """Every row is a segment."""
        incidence = cls(torch.arange(n_rows, device=device), n_rows)
        incidence.is_identity = True
        return incidence

    def segment_sum(self, rows: Tensor) -> Tensor:
        """(segments, channels): the sum of the rows of every segment."""
        if self.is_identity:
            return rows
        if self.is_empty:
            return rows.new_zeros(self.n_segments, rows.shape[-1])
        return rows.sum(0, keepdim=True) if self.is_single else self._bags.sum(rows)

    def segment_sum_functional(self, rows: Tensor) -> Tensor:
        """The same in operations that can be differentiated and traced."""
        if self.is_identity:
            return rows
        rows = rows if self.rows is None else rows.index_select(0, self.rows)
        return rows.new_zeros(self.n_segments, rows.shape[-1]).index_add(0, self.segment, rows)

    def segment_counts(self, weights: Tensor | None = None) -> Tensor:
        """(segments,): the number of rows of every segment, or the sum of their (rows,) weights."""
        weights = weights if weights is None or self.rows is None else weights[self.rows]
        with no_transforms():
            return torch.bincount(self.segment, weights, self.n_segments)

    def gather(self, segments: Tensor) -> Tensor:
        """(rows, channels): for every row the value of its segment, zero without one."""
        if self.is_identity:
            return segments
        if self.is_empty:
            return segments.new_zeros(self.n_rows, segments.shape[-1])
        found = segments.index_select(0, self.segment)
        return (
            found
            if self.rows is None
            else found.new_zeros(self.n_rows, found.shape[-1]).index_copy(0, self.rows, found)
        )

    def add_gathered_(self, segments: Tensor, rows: Tensor) -> None:
        """Add to every row the value of its segment, in place."""
        if self.is_empty:
            return
        found = segments if self.is_identity or self.is_single else segments.index_select(0, self.segment)
        if self.rows is None:
            rows.add_(found)
        else:
            rows.index_add_(0, self.rows, found)

    @cached_property
    def _bags(self) -> "Bags":
        order, _ = self.grouped
        return Bags.of(self._all_rows if order is None else order, self.segment_counts())

    @property
    def _all_rows(self) -> Tensor:
        return torch.arange(self.n_rows, device=self.segment.device)

    @cached_property
    def table(self) -> Tensor:
        """(rows,): the segment of every row, -1 without one."""
        if self.rows is None:
            return self.segment.contiguous()
        with no_transforms():
            return self.segment.new_full((self.n_rows,), -1).index_copy(0, self.rows, self.segment)

    @cached_property
    def grouped(self) -> tuple[Tensor | None, Tensor]:
        """The rows segment by segment, None if they are so already; and where each segment begins, and the end."""
        with no_transforms():
            if bool((self.segment[1:] >= self.segment[:-1]).all()):
                return self.rows, _bounds(self.segment_counts())
            order = self.segment.argsort(stable=True) if self._sort is None else self._sort()
            order = order if self.rows is None else self.rows[order]
            return order.contiguous(), _bounds(self.segment_counts())


class Bags(NamedTuple):
    """Rows grouped by segment; long segments are summed in several stages.

    Attributes:
        order: The rows, segment by segment.
        stages: Where each segment, or each portion of one, begins in the stage before; the end comes last.
    """

    order: Tensor
    stages: tuple[Tensor, ...]

    @classmethod
    def of(cls, order: Tensor, counts: Tensor) -> "Bags":
        """From the rows segment by segment, and the number of rows of every segment."""
        with no_transforms():
            stages = []
            while int(counts.max()) > LONG:
                portions = (counts + LONG - 1) // LONG
                before, first = _bounds(counts), _bounds(portions)
                starts = torch.repeat_interleave(before[:-1] - first[:-1] * LONG, portions)
                starts += torch.arange(len(starts), device=counts.device) * LONG
                stages.append(torch.cat([starts, before[-1:]]))
                counts = portions
            return cls(order, (*stages, _bounds(counts)))

    def sum(self, rows: Tensor) -> Tensor:
        """(segments, channels): the sum of the rows of every segment."""
        first, *further = self.stages
        total = _embedding_bag(rows, self.order, first)
        for bounds in further:
            total = _embedding_bag(total, torch.arange(len(total), device=total.device), bounds)
        return total


def _embedding_bag(rows: Tensor, order: Tensor, bounds: Tensor) -> Tensor:
    return torch.embedding_bag(rows.detach(), order, bounds, mode=0, include_last_offset=True)[0]


def _bounds(counts: Tensor) -> Tensor:
    return torch.cat([counts.new_zeros(1), counts.cumsum(0)])
