"""Which rows of one list belong to which row of another, and adding up or handing out along it.

Every move of the sparse executor is one of these: tuples belong to the tuple that is left of them when a slot is
dropped, diagonal tuples to the tuple with one slot less, a tuple to the same tuple elsewhere or in another order.
Each row of the first list, a *part*, belongs to at most one row of the second, a *whole*.

Both directions run on `embedding_bag`, which adds up rows from anywhere in one pass, always in the same order.
Measured on a CPU it takes a fifth of the time of `index_add`, and no memory but for its result. It has no second
derivative; `add_up_plainly` and `hand_out` can be differentiated and traced.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from bellnet.tensors.tracing import no_transforms

LONG = 4096
"""More parts than this are added up in portions: single precision would lose small terms, and one thread do it all."""


class Incidence:
    """For each part the whole it belongs to.

    Args:
        whole: (parts,) integers, -1 for a part that belongs to none.
        n_wholes: How many wholes there are.
        in_order: Finds all parts in the order of their wholes, equal ones as they stand, if somebody else needs that
            as well and all belong to a whole.
    """

    def __init__(self, whole: Tensor, n_wholes: int, in_order: Callable[[], Tensor] | None = None) -> None:
        self.n_parts, self.n_wholes, self._in_order = len(whole), n_wholes, in_order
        belongs = whole >= 0
        self.is_total = bool(belongs.all())
        self.parts = None if self.is_total else belongs.nonzero().flatten()
        self.whole = whole if self.is_total else whole[belongs]
        self.is_empty = not len(self.whole)
        self.is_one = self.is_total and n_wholes == 1 and not self.is_empty
        self.is_same = False

    @classmethod
    def same(cls, n_parts: int, device: torch.device) -> "Incidence":
        """Every part is its own whole."""
        incidence = cls(torch.arange(n_parts, device=device), n_parts)
        incidence.is_same = True
        return incidence

    def add_up(self, parts: Tensor) -> Tensor:
        """(wholes, channels): the sum of the parts of every whole."""
        if self.is_same:
            return parts
        if self.is_empty:
            return parts.new_zeros(self.n_wholes, parts.shape[-1])
        if self.is_one:
            return parts.sum(0, keepdim=True)
        return self._bags.add_up(parts)

    def add_up_plainly(self, parts: Tensor) -> Tensor:
        """The same in operations that can be differentiated and traced."""
        if self.is_same:
            return parts
        belonging = parts if self.parts is None else parts.index_select(0, self.parts)
        return parts.new_zeros(self.n_wholes, parts.shape[-1]).index_add(0, self.whole, belonging)

    def count(self, parts: Tensor) -> Tensor:
        """(wholes,): the sum of one number for each part; nothing has to be sorted for it."""
        belonging = parts if self.parts is None else parts[self.parts]
        return torch.bincount(self.whole, belonging, self.n_wholes)

    def hand_out(self, wholes: Tensor) -> Tensor:
        """(parts, channels): for every part what its whole has, zero for one that belongs to none."""
        if self.is_same:
            return wholes
        if self.is_empty:
            return wholes.new_zeros(self.n_parts, wholes.shape[-1])
        found = wholes.index_select(0, self.whole)
        if self.parts is None:
            return found
        return found.new_zeros(self.n_parts, found.shape[-1]).index_copy(0, self.parts, found)

    def add_to_parts(self, wholes: Tensor, parts: Tensor) -> None:
        """Add to every part what its whole has, in place."""
        if self.is_empty:
            return
        found = wholes if self.is_same or self.is_one else wholes.index_select(0, self.whole)
        if self.parts is None:
            parts.add_(found)
        else:
            parts.index_add_(0, self.parts, found)

    @cached_property
    def _bags(self) -> "Bags":
        return Bags.of(self.by_whole(), self._count_parts())

    def _count_parts(self) -> Tensor:
        """(wholes,): how many parts each has."""
        with no_transforms():
            return torch.bincount(self.whole, minlength=self.n_wholes)

    @cached_property
    def table(self) -> Tensor:
        """(parts,): for every part its whole, -1 for none."""
        if self.parts is None:
            return self.whole.contiguous()
        with no_transforms():
            return self.whole.new_full((self.n_parts,), -1).index_copy(0, self.parts, self.whole)

    @cached_property
    def in_order(self) -> tuple[Tensor | None, Tensor]:
        """The parts, whole after whole, None if they stand so already; and where each whole begins, and the end."""
        with no_transforms():
            order = None if self.is_total and self._ascends else self.by_whole().contiguous()
            return order, _bounds(self._count_parts())

    @property
    def belonging(self) -> Tensor:
        """The parts that belong to a whole."""
        return torch.arange(self.n_parts, device=self.whole.device) if self.parts is None else self.parts

    @cached_property
    def _ascends(self) -> bool:
        return bool((self.whole[1:] >= self.whole[:-1]).all())

    def by_whole(self) -> Tensor:
        """The parts that belong to a whole in the order of those."""
        with no_transforms():
            if self._ascends:
                return self.belonging
            order = self.whole.argsort(stable=True) if self._in_order is None else self._in_order()
            return order if self.parts is None else self.parts[order]


@dataclass(frozen=True)
class Bags:
    """What belongs together, one whole after the other; many parts of one whole are added up in several stages.

    Attributes:
        order: The parts, whole after whole.
        stages: Where each whole, or each portion of one, begins in the stage before; the end comes last.
    """

    order: Tensor
    stages: tuple[Tensor, ...]

    @classmethod
    def of(cls, order: Tensor, counts: Tensor) -> "Bags":
        """From the parts, whole after whole, and how many every whole has."""
        with no_transforms():
            stages = []
            while int(counts.max()) > LONG:
                portions = (counts + LONG - 1) // LONG
                before, first = _bounds(counts), _bounds(portions)
                within = torch.arange(int(first[-1]), device=counts.device) - torch.repeat_interleave(
                    first[:-1], portions
                )
                starts = torch.repeat_interleave(before[:-1], portions) + within * LONG
                stages.append(torch.cat([starts, before[-1:]]))
                counts = portions
            return cls(order, (*stages, _bounds(counts)))

    def add_up(self, parts: Tensor) -> Tensor:
        """(wholes, channels): the sum of the parts of every whole."""
        first, *further = self.stages
        total = _bags(parts, self.order, first)
        for bounds in further:
            total = _bags(total, torch.arange(len(total), device=total.device), bounds)
        return total


def _bounds(counts: Tensor) -> Tensor:
    return torch.cat([counts.new_zeros(1), counts.cumsum(0)])


def _bags(rows: Tensor, order: Tensor, bounds: Tensor) -> Tensor:
    """Row i of the result is the sum of the rows that `order` names from bounds[i] on, up to bounds[i + 1]."""
    return torch.embedding_bag(rows.detach(), order, bounds, mode=0, include_last_offset=True)[0]
