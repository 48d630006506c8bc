"""Which rows of one list belong to which row of another, and adding up or handing out along it.

Every move of the sparse executor is one of these: tuples belong to the tuple that is left of them when a slot is
dropped, diagonal tuples to the tuple with one slot less, a tuple to the same tuple elsewhere or in another order.
Each row of the first list, a *part*, belongs to at most one row of the second, a *whole*.

Both directions run on `embedding_bag`, which adds up rows from anywhere in one pass, always in the same order.
Measured on a CPU it takes a fifth of the time of `index_add`, and no memory but for its result. It has no second
derivative; `add_up_plainly` and `hand_out` can be differentiated and traced.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import torch
from torch import Tensor

from bellnet.tensors.keeping import making_constants

MANY = 2**15
"""So many parts of several incidences are merged; fewer are sorted again, in fewer operations."""

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

    def add_handed_out(self, total: Tensor, wholes: Tensor) -> None:
        """Add to the total (parts, channels) for every part what its whole has, in place."""
        total.add_(wholes if self.is_one else self.hand_out(wholes))

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

    def find(self, wholes: Tensor, piece: slice | None) -> Tensor | None:
        """The same for some of the parts; None if none of them belongs to a whole."""
        if self.is_empty:
            return None
        start, stop = (0, self.n_parts) if piece is None else (piece.start, piece.stop)
        if self._found_before is None:
            one_each = _numbers((stop - start).bit_length(), wholes.device)[: stop - start + 1]
            return _bags(wholes, self.whole[start:stop], one_each)
        bounds = self._found_before[start : stop + 1]
        first, last = int(bounds[0]), int(bounds[-1])
        return _bags(wholes, self.whole[first:last], bounds - first) if last > first else None

    def add_to_parts(self, wholes: Tensor, parts: Tensor) -> None:
        """Add to every part what its whole has, in place."""
        if self.is_empty:
            return
        found = wholes.index_select(0, self.whole)
        if self.parts is None:
            parts.add_(found)
        else:
            parts.index_add_(0, self.parts, found)

    @cached_property
    def _found_before(self) -> Tensor | None:
        """(parts + 1,): how many of the parts before belong to a whole; None if all do."""
        if self.parts is None:
            return None
        with making_constants():
            belongs = torch.zeros(self.n_parts + 1, dtype=torch.int64, device=self.whole.device)
            belongs[self.parts + 1] = 1
            return belongs.cumsum(0)

    @cached_property
    def _bags(self) -> "Bags":
        with making_constants():
            counts = torch.bincount(self.whole, minlength=self.n_wholes)
        return Bags.of(self.by_whole(), counts)

    @cached_property
    def table(self) -> Tensor:
        """(parts,): for every part its whole, -1 for none."""
        if self.parts is None:
            return self.whole.contiguous()
        with making_constants():
            return self.whole.new_full((self.n_parts,), -1).index_copy(0, self.parts, self.whole)

    @cached_property
    def in_order(self) -> tuple[Tensor | None, Tensor]:
        """The parts, whole after whole, None if they stand so already; and where each whole begins, and the end."""
        with making_constants():
            bounds = _bounds(torch.bincount(self.whole, minlength=self.n_wholes))
            return None if self.is_total and self._ascends else self.by_whole().contiguous(), bounds

    @property
    def belonging(self) -> Tensor:
        """The parts that belong to a whole."""
        return torch.arange(self.n_parts, device=self.whole.device) if self.parts is None else self.parts

    @cached_property
    def _ascends(self) -> bool:
        return bool((self.whole[1:] >= self.whole[:-1]).all())

    def by_whole(self) -> Tensor:
        """The parts that belong to a whole in the order of those."""
        with making_constants():
            if self._ascends:
                return self.belonging
            order = self.whole.argsort(stable=True) if self._in_order is None else self._in_order()
            return order if self.parts is None else self.parts[order]


class JointSum:
    """Several incidences with the same wholes, all parts in one matrix.

    Args:
        incidences: What belongs to what.
        starts: For each the row of its first part.
        step: From the row of a part to that of the next.
    """

    def __init__(self, incidences: Sequence[Incidence], starts: Sequence[int], step: int) -> None:
        self.n_wholes = incidences[0].n_wholes
        several = len(incidences)
        with making_constants():
            bags = torch.cat([one.whole * several + number for number, one in enumerate(incidences)])
            counts = torch.bincount(bags, minlength=self.n_wholes * several)
            if len(bags) < MANY:
                pairs = zip(incidences, starts, strict=True)
                order = torch.cat([one.belonging * step + start for one, start in pairs])[bags.argsort(stable=True)]
            else:
                order = _merged(incidences, starts, step, counts.view(-1, several))
            self._bags = Bags.of(order, counts)

    def add_up(self, rows: Tensor) -> Tensor:
        """(wholes, incidences * channels): the sum of the parts of every whole, incidences side by side."""
        return self._bags.add_up(rows).view(self.n_wholes, -1)


class JointIncidence:
    """Several incidences of the same parts, each of which belongs to a whole of every one; all wholes in one matrix.

    Args:
        incidences: What belongs to what.
        starts: For each the row of its first whole.
        step: From the row of a whole to that of the next.
    """

    def __init__(self, incidences: Sequence[Incidence], starts: Sequence[int], step: int) -> None:
        with making_constants():
            self._each = len(incidences)
            order = incidences[0].whole.new_empty(len(incidences[0].whole), self._each)
            for number, (one, start) in enumerate(zip(incidences, starts, strict=True)):
                torch.add(order.new_tensor(start), one.whole, alpha=step, out=order[:, number])
            self._order = order.flatten()
            self._bounds = torch.arange(0, len(self._order) + 1, self._each, device=order.device)

    def hand_out(self, rows: Tensor, piece: slice | None) -> Tensor:
        """(parts, channels): for every part, or some of them, the sum of what its wholes have."""
        if piece is None:
            return _bags(rows, self._order, self._bounds)
        order = self._order[piece.start * self._each : piece.stop * self._each]
        return _bags(rows, order, self._bounds[: piece.stop - piece.start + 1])


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
        with making_constants():
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


def _merged(incidences: Sequence[Incidence], starts: Sequence[int], step: int, counts: Tensor) -> Tensor:
    """The parts of all incidences, those of every whole together: each is sorted by itself, perhaps by others."""
    first = _bounds(counts.flatten())[:-1].view(counts.shape)
    order = counts.new_empty(sum(len(one.whole) for one in incidences))
    for number, (one, start) in enumerate(zip(incidences, starts, strict=True)):
        moved = first[:, number] - _bounds(counts[:, number])[:-1]
        places = torch.repeat_interleave(moved, counts[:, number])
        places += torch.arange(len(places), device=places.device)
        order.scatter_(0, places, one.by_whole() * step + start)
    return order


def _bounds(counts: Tensor) -> Tensor:
    return torch.cat([counts.new_zeros(1), counts.cumsum(0)])


def _bags(rows: Tensor, order: Tensor, bounds: Tensor) -> Tensor:
    """Row i of the result is the sum of the rows that `order` names from bounds[i] on, up to bounds[i + 1]."""
    return torch.embedding_bag(rows.detach(), order, bounds, mode=0, include_last_offset=True)[0]


@lru_cache(maxsize=32)
def _numbers(n_bits: int, device: torch.device) -> Tensor:
    """All numbers with so many bits."""
    with making_constants():
        return torch.arange(2**n_bits, device=device)
