"""Contractions of listed tuples: all terms, that is pairs of listed factors whose product has a listed place.

A term of "ab,bc->ac" is a triangle: (a, b) listed in the first factor, (b, c) in the second, (a, c) where the product
is wanted. They are found once for three supports and kept. A result is then a sum over terms of the product of two
rows; so is every derivative of it, with the three roles exchanged. Some terms are taken after the others, so that
nothing is made that has a row for each of them.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

import torch
from torch import Tensor

from bellnet.backends.incidence import Bags
from bellnet.backends.transforms import is_batched, is_traced, save, saved
from bellnet.plan import ProductPlan
from bellnet.tensors import Support
from bellnet.tensors.support import encode
from bellnet.tensors.tracing import no_transforms

MOST_CANDIDATES = 2**20
"""So many pairs of factors are looked up at once while terms are found."""

PIECE_BYTES, FEWEST = 2**21, 1024
"""So many bytes of products, but at least so many terms, are added up at once."""

X, Y, TARGET = range(3)
"""The roles in a term."""

OTHERS = ((Y, TARGET), (X, TARGET), (X, Y))
"""For every role the other two."""


class Sorted(NamedTuple):
    """The terms of every row of one role, one row after the other.

    Attributes:
        one: For every term the row of the first of the other roles.
        other: The same for the second.
        counts: How many terms every row has.
        bounds: Where those of every row begin, and the end.
    """

    one: Tensor
    other: Tensor
    counts: Tensor
    bounds: Tensor


class Terms:
    """All terms of a contraction between listed tuples.

    Args:
        rows: For every role the row that each term has, in the order of the target's.
        n_rows: For every role how many there are.
        n_all: (rows of the target,) how many terms there would be if all tuples were listed.
    """

    def __init__(self, rows: tuple[Tensor, Tensor, Tensor], n_rows: tuple[int, int, int], n_all: Tensor) -> None:
        self.rows, self.n_rows, self.n_all = rows, n_rows, n_all
        self._sorted: dict[int, Sorted] = {}

    @classmethod
    def between(cls, plan: ProductPlan, sources: Sequence[Support], target: Support) -> "Terms":
        """Those of three supports, kept with the first as long as the others are there."""
        x, y = sources
        return x.cached_with((y, target), ("terms", plan), lambda: _find_terms(plan, x, y, target))

    @cached_property
    def n_listed(self) -> Tensor:
        """(rows of the target,): how many terms each has."""
        with no_transforms():
            return torch.bincount(self.rows[TARGET], minlength=self.n_rows[TARGET])

    def by(self, role: int) -> Sorted:
        """The terms in the order of one role."""
        if role not in self._sorted:
            with no_transforms():
                self._sorted[role] = self._sort(role)
        return self._sorted[role]

    def _sort(self, role: int) -> Sorted:
        one, other = (self.rows[number] for number in OTHERS[role])
        if role != TARGET:
            order = self.rows[role].argsort(stable=True)
            one, other = one[order], other[order]
        counts = torch.bincount(self.rows[role], minlength=self.n_rows[role])
        return Sorted(one, other, counts, torch.cat([counts.new_zeros(1), counts.cumsum(0)]))

    def sum(self, role: int, one: Tensor, other: Tensor) -> Tensor:
        """For every row of a role the sum over its terms of the product of rows of the other two."""
        ordered = self.by(role)
        total = one.new_zeros(self.n_rows[role], one.shape[1])
        for rows, terms in _pieces(ordered.bounds, one):
            parts = one.index_select(0, ordered.one[terms]).mul_(other.index_select(0, ordered.other[terms]))
            bags = Bags.of(torch.arange(len(parts), device=parts.device), ordered.counts[rows])
            total[rows] = bags.add_up(parts)
        return total

    def sum_plainly(self, role: int, one: Tensor, other: Tensor) -> Tensor:
        """The same in operations that can be traced and differentiated."""
        first, second = (self.rows[number] for number in OTHERS[role])
        parts = one.index_select(0, first) * other.index_select(0, second)
        return one.new_zeros(self.n_rows[role], one.shape[1]).index_add(0, self.rows[role], parts)


def multiply_sparse(
    plan: ProductPlan,
    x: Tensor,
    y: Tensor,
    *,
    sources: Sequence[Support],
    target: Support,
    power: float,
    stored: bool,
) -> Tensor:
    """The product of values on listed tuples, at the tuples of the target.

    Args:
        plan: What is multiplied with what.
        x: (tuples, channels) of the first factor.
        y: The same of the second.
        sources: The tuples of both factors.
        target: Those of the product.
        power: Sums are divided by the number of their terms to this power: 0 for sums, 1 for means.
        stored: Whether those terms count of which both factors are listed, or all.
    """
    terms = Terms.between(plan, sources, target)
    wide = torch.promote_types(x.dtype, torch.float32)  # half-precision sums of many numbers lose their small terms
    result = sum_of_terms(terms, TARGET, x.to(wide), y.to(wide))
    if power and plan.summed:
        n_terms = terms.n_listed if stored else terms.n_all
        result = result * n_terms.clamp(min=1).to(wide).pow(-power).unsqueeze(-1)
    return result.to(x.dtype)


def sum_of_terms(terms: Terms, role: int, one: Tensor, other: Tensor) -> Tensor:
    """For every row of a role the sum over its terms of the product of rows of the other two, with its gradient."""
    if is_traced() or is_batched(one) or is_batched(other):
        return terms.sum_plainly(role, one, other)
    return _Sum.apply(terms, role, one, other)  # type: ignore[no-any-return,no-untyped-call]


class _Sum(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, terms: Terms, role: int, one: Tensor, other: Tensor) -> Tensor:
        ctx.terms, ctx.role = terms, role
        save(ctx, one, other)
        return terms.sum(role, one, other)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> tuple[None, None, Tensor | None, Tensor | None]:
        roles = OTHERS[ctx.role]
        rows = {ctx.role: gradients[0], **dict(zip(roles, saved(ctx), strict=True))}
        of_one, of_other = (
            sum_of_terms(ctx.terms, role, *(rows[number] for number in OTHERS[role])) if needed else None
            for role, needed in zip(roles, ctx.needs_input_grad[2:], strict=True)
        )
        return None, None, of_one, of_other


def _pieces(bounds: Tensor, like: Tensor) -> Iterator[tuple[slice, slice]]:
    """Some rows after the others, from the first that has terms, and where those are."""
    some = max(PIECE_BYTES // (like.element_size() * max(like.shape[1], 1)), FEWEST)
    for first, last in _cuts(bounds, some):
        yield slice(first, last), slice(int(bounds[first]), int(bounds[last]))


def _cuts(bounds: Tensor, some: int) -> Iterator[tuple[int, int]]:
    """Rows from one up to another, with about so many terms together; one row is never cut."""
    starts = torch.arange(0, int(bounds[-1]), some, device=bounds.device)
    firsts = torch.unique(torch.searchsorted(bounds, starts, right=True) - 1)
    return pairwise([*firsts.tolist(), len(bounds) - 1])


@dataclass(frozen=True)
class _Side:
    """One factor, from which terms may be found: the tuples that share the letters of a tuple of the target.

    Attributes:
        support: Its tuples.
        order: Them in an order in which those stand together that do.
        start: For every tuple of the target the first of them.
        counts: And how many there are.
    """

    support: Support
    order: Tensor | None
    start: Tensor
    counts: Tensor

    @classmethod
    def of(cls, support: Support, letters: str, target: Support, of_target: str) -> "_Side":
        common = [letter for letter in letters if letter in of_target]
        if common:
            lengths = [support.totals[letters.index(letter)] for letter in common]
            pairs = (support, letters), (target, of_target)
            rows = [[one.nodes[names.index(letter)] for letter in common] for one, names in pairs]
        else:
            lengths, rows = [target.counts.n_graphs], [[support.graphs], [target.graphs]]
        keys, wanted = encode(rows, lengths)
        order = None
        if not bool((keys[1:] >= keys[:-1]).all()):
            keys, order = keys.sort(stable=True)
        start = torch.searchsorted(keys, wanted)
        return cls(support, order, start, torch.searchsorted(keys, wanted, right=True) - start)

    def candidates(self, rows: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
        """For these tuples of the target all pairs of one of them and a tuple of this side, some after the others."""
        counts = self.counts[rows]
        bounds = torch.cat([counts.new_zeros(1), counts.cumsum(0)])
        for first, last in _cuts(bounds, MOST_CANDIDATES):
            piece = counts[first:last]
            wanted = torch.repeat_interleave(rows[first:last], piece)
            within = torch.arange(len(wanted), device=rows.device) - torch.repeat_interleave(
                bounds[first:last] - bounds[first], piece
            )
            places = self.start[wanted] + within
            yield wanted, places if self.order is None else self.order[places]


def _find_terms(plan: ProductPlan, x: Support, y: Support, target: Support) -> Terms:
    """Look up, for every tuple of the target and every tuple of one factor that fits it, the other factor.

    Of the two factors the one with fewer such tuples is taken, for each tuple of the target by itself.
    """
    of_x, of_y, of_target = plan.letters
    sides = [_Side.of(x, of_x, target, of_target), _Side.of(y, of_y, target, of_target)]
    by_x = sides[X].counts <= sides[Y].counts
    found: list[list[Tensor]] = [[], [], []]
    for role, chosen in ((X, by_x), (Y, ~by_x)):
        own, others = (x, of_x), (y, of_y)
        if role == Y:
            own, others = others, own
        rows = (chosen & (sides[role].counts > 0)).nonzero().flatten()
        for wanted, places in sides[role].candidates(rows):
            nodes = [
                own[0].nodes[own[1].index(letter)][places]
                if letter in own[1]
                else target.nodes[of_target.index(letter)][wanted]
                for letter in others[1]
            ]
            # A factor without slots has one tuple for every graph.
            other = others[0].positions(torch.stack(nodes)) if nodes else target.graphs[wanted]
            kept = (other >= 0).nonzero().flatten()
            for number, part in ((role, places), (Y - role, other), (TARGET, wanted)):
                found[number].append(part[kept])
    none = target.index.new_zeros(0)
    together = [torch.cat(parts) if parts else none for parts in found]
    order = together[TARGET].argsort(stable=True)
    first, second, third = (one[order] for one in together)
    n_all = torch.ones(target.nnz, dtype=torch.float64, device=none.device)
    for letter in plan.summed:
        counts = x.counts.by_set[x.counts.key(x.slots[of_x.index(letter)])]
        n_all = n_all * counts[target.graphs]
    return Terms((first, second, third), (x.nnz, y.nnz, target.nnz), n_all)
