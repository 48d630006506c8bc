"""Tuples of nodes as single numbers, so that lists of tuples can be sorted and searched."""

from collections.abc import Callable, Sequence
from typing import cast

import torch
from torch import Tensor

LARGEST = 2**63 - 1

MANY = 2**15
"""So many numbers are sorted before they are looked for: a search that jumps about waits for memory twice as long."""


def encode(lists: Sequence[Sequence[Tensor] | Tensor], lengths: Sequence[int]) -> list[Tensor]:
    """One number for each tuple, in all lists alike, and in the order of the tuples.

    Args:
        lists: (r, tuples) integers each, or their rows if there are any.
        lengths: What each of the r entries stays below.

    >>> one, other = encode([torch.tensor([[0, 1], [2, 0]]), torch.tensor([[1], [0]])], (2, 3))
    >>> one, other
    (tensor([2, 3]), tensor([3]))
    """
    if not lengths:
        return [cast(Tensor, tuples).new_zeros(cast(Tensor, tuples).shape[1]) for tuples in lists]
    codes, most = [tuples[0] for tuples in lists], lengths[0]
    for place, length in enumerate(lengths[1:], 1):
        if most * length > LARGEST:
            # The numbers would not fit: beginnings that occur are numbered anew, which are at most as many as tuples.
            ranks = torch.unique(torch.cat(codes), return_inverse=True)[1]
            codes, most = list(ranks.split([len(one) for one in codes])), len(ranks)
        codes = [one * length + tuples[place] for one, tuples in zip(codes, lists, strict=True)]
        most *= length
    return codes


def is_increasing(codes: Tensor) -> bool:
    """Whether every number is larger than the one before."""
    return bool((codes[1:] > codes[:-1]).all())


def find(wanted: Tensor, codes: Tensor, in_order: Callable[[], Tensor] | None = None) -> Tensor:
    """For every wanted number its place among the codes, which are unique; -1 for one that is not there.

    Sorting takes longest: `in_order` may know in which order the wanted numbers ascend.
    """
    if not len(codes):
        return torch.full_like(wanted, -1)
    order = None
    if not is_increasing(codes):
        codes, order = codes.sort()
    if len(wanted) < MANY or is_increasing(wanted):
        return _find(wanted, codes, order)
    places = None if in_order is None else in_order()
    ascending = wanted if places is None else wanted[places]
    if places is None or not is_increasing(ascending):
        ascending, places = wanted.sort()
    return torch.empty_like(places).scatter_(0, places, _find(ascending, codes, order))


def _find(wanted: Tensor, codes: Tensor, order: Tensor | None) -> Tensor:
    if torch.equal(wanted, codes):
        return torch.arange(len(codes), device=codes.device) if order is None else order
    place = torch.searchsorted(codes, wanted).clamp_(max=len(codes) - 1)
    missing = codes[place] != wanted
    return (place if order is None else order[place]).masked_fill_(missing, -1)
