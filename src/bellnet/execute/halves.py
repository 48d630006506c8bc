"""A product for tuples and one for the swapped tuples, at the price of one.

`x_ij @ V + x_ji @ W` is needed for both orders of every pair. The sum and the difference of the two rows of a pair are
each multiplied once, by the mean of the matrices and by half their difference; the sum and the difference of the
products are the two results. That is half of the multiplications, and where channels are many, adding up rows costs
less.

Splitting and joining are transposes of each other, so the gradient is the same thing again. Pairs do not meet each
other. Within a pair numbers are rounded as the larger of its two rows is.
"""

from collections.abc import Sequence
from functools import lru_cache
from math import sqrt

import torch
from torch import Tensor

from bellnet.tensors.keeping import making_constants

LEAST_GAIN = 3_000_000
"""Multiplications that must be spared, beyond what adding up rows costs."""

ROWS_COST = 11
"""To add up a row, back and forth, takes as long as so many multiplications for each of its channels."""


def pays(n_rows: int, inner: int, outer: int, like: Tensor) -> bool:
    """Whether products of so many rows with (inner, outer) matrices gain by it."""
    spared = n_rows * (inner * outer - ROWS_COST * (inner + outer))
    return spared >= LEAST_GAIN and like.device.type == "cpu" and like.dtype in (torch.float32, torch.float64)


class Halves:
    """The symmetric and the antisymmetric part of values on tuples.

    Args:
        swapped: (tuples,): the row of the swapped tuple, -1 for one that is not there. A tuple and the swapped one
            name each other.
    """

    def __init__(self, swapped: Tensor) -> None:
        rows = torch.arange(len(swapped), device=swapped.device)
        alone = swapped < 0
        first = ((swapped > rows) | alone).nonzero().flatten()  # one of every pair, and those without a partner
        is_equal = swapped == rows
        equal = is_equal.nonzero().flatten()
        self._n_even, self._n_odd = len(first) + len(equal), len(first)
        other, is_alone = swapped[first], alone[first]
        pairs = torch.stack([first, torch.where(is_alone, first, other)], 1).flatten()
        self._split = torch.cat([pairs, equal.repeat_interleave(2), pairs]).int()
        even = torch.empty_like(rows)
        number = torch.arange(self._n_even, device=rows.device)
        even[first], even[equal] = number[: self._n_odd], number[self._n_odd :]
        there = ~is_alone
        even[other[there]] = number[: self._n_odd][there]
        self._join = torch.stack([even, torch.where(is_equal, even, even + self._n_even)], 1).flatten().int()
        self._bounds = torch.arange(0, len(self._split) + 1, 2, dtype=torch.int32, device=rows.device)
        # A tuple that is its own swapped one counts once and not twice: a half on either way, that is a root of it.
        signs = torch.ones(len(self._split), dtype=torch.float64, device=rows.device)
        with_other = signs[1::2]
        with_other[: self._n_odd] = with_other[self._n_even :] = there.to(signs.dtype)
        with_other[self._n_even :].neg_()
        signs[2 * self._n_odd : 2 * self._n_even] = sqrt(0.5)
        back = torch.ones(len(self._join), dtype=torch.float64, device=rows.device)
        back[1::2] = torch.where((swapped < rows) & ~alone, -1.0, 1.0)
        back.view(-1, 2)[is_equal] = sqrt(0.5)
        self._signs = {signs.dtype: (signs, back), torch.float32: (signs.float(), back.float())}

    def split(self, rows: Tensor) -> Tensor:
        """From (tuples, channels) the even part of every pair, and below those the odd parts."""
        return self._add_up(rows, self._split, 0)

    def join(self, parts: Tensor, matrices: Sequence[Tensor]) -> Tensor:
        """(tuples, out): parts times the matrices (in, out) of tuples and of swapped tuples, put together again."""
        even, odd = _even_and_odd(matrices)
        mixed = parts.new_empty(len(parts), even.shape[1])
        torch.mm(parts[: self._n_even], even, out=mixed[: self._n_even])
        torch.mm(parts[self._n_even :], odd, out=mixed[self._n_even :])
        return self._add_up(mixed, self._join, 1)

    def pair(self, parts: Tensor, pulled: Tensor, of_matrices: Sequence[Tensor]) -> None:
        """Add the gradients of both matrices, from the parts of what was read and of the gradient, in place."""
        even = parts[: self._n_even].mT @ pulled[: self._n_even]
        odd = parts[self._n_even :].mT @ pulled[self._n_even :]
        for total, part in zip(of_matrices, _even_and_odd((even, odd)), strict=True):
            total.add_(part)

    def _add_up(self, rows: Tensor, order: Tensor, which: int) -> Tensor:
        weights = self._signs[rows.dtype][which]
        bounds = self._bounds[: len(order) // 2 + 1]
        return torch.embedding_bag(
            rows.detach(), order, bounds, mode=0, include_last_offset=True, per_sample_weights=weights
        )[0]


@lru_cache(maxsize=16)
def halves_of_squares(n_graphs: int, n: int, device: torch.device) -> Halves:
    """For all pairs of nodes of so many graphs, in order."""
    with making_constants():
        rows = torch.arange(n_graphs * n * n, device=device)
        return Halves(rows.view(n_graphs, n, n).mT.flatten())


def _even_and_odd(matrices: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
    straight, swapped = matrices
    return (straight + swapped).mul_(0.5), (straight - swapped).mul_(0.5)
