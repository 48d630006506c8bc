"""Products of sparse tensors: sums over terms, which are pairs of stored entries whose product is stored.

A term of "ab,bc->ac" is a triangle: (a, b) is stored in the first factor, (b, c) in the second, (a, c) in the result.
Terms are found once for three supports. The result is a sum over terms of the product of two rows, and so are all its
derivatives, with the three roles exchanged. Terms are summed in portions, so that no tensor has a row for each of them.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import torch
from torch import Tensor

from bellnet.backends.projections import Bags, segment_bounds
from bellnet.plan import ProductPlan
from bellnet.tensors import Support
from bellnet.tensors.support import encode
from bellnet.tensors.tracing import Cached, is_batched, is_traced, save, saved

MOST_CANDIDATES = 2**20
"""Pairs of factors that are looked up at a time while terms are found."""
PORTION_BYTES, FEWEST = 2**21, 1024
"""Bytes of products, but at least this many terms, that are summed at a time."""
X, Y, TARGET = range(3)
"""The roles in a term."""
OTHERS = ((Y, TARGET), (X, TARGET), (X, Y))
"""For every role the other two."""


class SortedTerms(NamedTuple):
    """The terms grouped by row of one role.

    Attributes:
        one: For every term the row of the first of the other roles.
        other: The same for the second.
        counts: The number of terms of every row.
        bounds: Where those of every row begin, and the end.
    """

    one: Tensor
    other: Tensor
    counts: Tensor
    bounds: Tensor


class Terms(Cached):
    """All terms of a product of sparse tensors.

    Args:
        rows: For every role the row of each term, in the order of those of the target.
        n_rows: For every role the number of rows.
        n_all: (rows of the target,) the number of terms if all entries were stored.
    """

    def __init__(self, rows: Sequence[Tensor], n_rows: tuple[int, int, int], n_all: Tensor) -> None:
        self.rows, self.n_rows, self.n_all = rows, n_rows, n_all

    @classmethod
    def between(cls, plan: ProductPlan, sources: Sequence[Support], target: Support) -> "Terms":
        """Those of three supports, cached by the first as long as the others exist."""
        x, y = sources
        return x.cached_with((y, target), ("terms", plan), lambda: _find_terms(plan, x, y, target))

    @property
    def n_stored(self) -> Tensor:
        """(rows of the target,): the number of terms of each."""
        return self.by(TARGET).counts

    def by(self, role: int) -> SortedTerms:
        """The terms grouped by row of a role, cached."""

        def make() -> SortedTerms:
            one, other = (self.rows[number] for number in OTHERS[role])
            if role != TARGET:
                order = self.rows[role].argsort(stable=True)
                one, other = one[order], other[order]
            counts = torch.bincount(self.rows[role], minlength=self.n_rows[role])
            return SortedTerms(one, other, counts, segment_bounds(counts))

        return self.cached(role, make)

    def sum(self, role: int, one: Tensor, other: Tensor) -> Tensor:
        """For every row of a role the sum over its terms of the product of rows of the other two."""
        terms = self.by(role)
        total = one.new_zeros(self.n_rows[role], one.shape[1])
        for rows, some in _portions(terms.bounds, one):
            products = one.index_select(0, terms.one[some]).mul_(other.index_select(0, terms.other[some]))
            bags = Bags.of(torch.arange(len(products), device=products.device), terms.counts[rows])
            total[rows] = bags.sum(products)
        return total

    def sum_functional(self, role: int, one: Tensor, other: Tensor) -> Tensor:
        """The same in operations that can be traced and differentiated."""
        first, second = (self.rows[number] for number in OTHERS[role])
        products = one.index_select(0, first) * other.index_select(0, second)
        return one.new_zeros(self.n_rows[role], one.shape[1]).index_add(0, self.rows[role], products)


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
    """The product of the values of stored entries, at the entries of the target.

    Args:
        plan: The letters of the factors and the result.
        x: (stored entries, channels) of the first factor.
        y: The same of the second.
        sources: The supports of both factors.
        target: That of the product.
        power: Sums are divided by the number of their terms to this power: 0 for sums, 1 for means.
        stored: Whether terms are counted whose factors are stored, or all.
    """
    terms = Terms.between(plan, sources, target)
    wide = torch.promote_types(x.dtype, torch.float32)  # half-precision sums of many terms lose the small ones
    result = sum_terms(terms, TARGET, x.to(wide), y.to(wide))
    if power and plan.summed:
        n_terms = terms.n_stored if stored else terms.n_all
        result = result * n_terms.clamp(min=1).to(wide).pow(-power).unsqueeze(-1)
    return result.to(x.dtype)


def sum_terms(terms: Terms, role: int, one: Tensor, other: Tensor) -> Tensor:
    """For every row of a role the sum over its terms of the product of rows of the other two, with its gradient."""
    if is_traced() or is_batched(one) or is_batched(other):
        return terms.sum_functional(role, one, other)
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
        grad_one, grad_other = (
            sum_terms(ctx.terms, role, *(rows[number] for number in OTHERS[role])) if needed else None
            for role, needed in zip(roles, ctx.needs_input_grad[2:], strict=True)
        )
        return None, None, grad_one, grad_other


def _portions(bounds: Tensor, like: Tensor) -> Iterator[tuple[slice, slice]]:
    """Ranges of rows, and of their terms."""
    size = max(PORTION_BYTES // (like.element_size() * max(like.shape[1], 1)), FEWEST)
    for first, last in _ranges(bounds, size):
        yield slice(first, last), slice(int(bounds[first]), int(bounds[last]))


def _ranges(bounds: Tensor, size: int) -> Iterator[tuple[int, int]]:
    """Ranges of rows with about `size` terms together, from the first row that has terms; no row is divided."""
    starts = torch.arange(0, int(bounds[-1]), size, device=bounds.device)
    firsts = torch.unique(torch.searchsorted(bounds, starts, right=True) - 1)
    return pairwise([*firsts.tolist(), len(bounds) - 1])


class _Factor(NamedTuple):
    """One factor: for every entry of the target the entries of the factor that agree with it in their common letters.

    Attributes:
        support: The entries of the factor.
        order: The order in which such entries are neighbours; None for their own.
        start: For every entry of the target the first of them.
        counts: The number of them.
    """

    support: Support
    order: Tensor | None
    start: Tensor
    counts: Tensor

    @classmethod
    def of(cls, support: Support, letters: str, target: Support, target_letters: str) -> "_Factor":
        common = [letter for letter in letters if letter in target_letters]
        if common:
            lengths = [support.totals[letters.index(letter)] for letter in common]
            pairs = (support, letters), (target, target_letters)
            rows = [[one.nodes[names.index(letter)] for letter in common] for one, names in pairs]
        else:
            lengths, rows = [target.counts.n_graphs], [[support.graphs], [target.graphs]]
        codes, wanted = encode(rows, lengths)
        order = None
        if not bool((codes[1:] >= codes[:-1]).all()):
            codes, order = codes.sort(stable=True)
        start = torch.searchsorted(codes, wanted)
        return cls(support, order, start, torch.searchsorted(codes, wanted, right=True) - start)

    def candidates(self, rows: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
        """All pairs of one of these entries of the target and an entry here, in portions."""
        counts = self.counts[rows]
        bounds = segment_bounds(counts)
        for first, last in _ranges(bounds, MOST_CANDIDATES):
            repeats = counts[first:last]
            wanted = torch.repeat_interleave(rows[first:last], repeats)
            before = torch.repeat_interleave(bounds[first:last] - bounds[first], repeats)
            positions = self.start[wanted] + torch.arange(len(wanted), device=rows.device) - before
            yield wanted, positions if self.order is None else self.order[positions]


def _find_terms(plan: ProductPlan, x: Support, y: Support, target: Support) -> Terms:
    """Find for every entry of the target the agreeing entries of one factor, and look up those of the other.

    For each entry the factor with fewer agreeing entries is taken.
    """
    letters = plan.letters
    supports = x, y
    factors = [
        _Factor.of(support, own, target, letters[TARGET]) for support, own in zip(supports, letters, strict=False)
    ]
    by_x = factors[X].counts <= factors[Y].counts
    found: list[list[Tensor]] = [[], [], []]
    for role, chosen in ((X, by_x), (Y, ~by_x)):
        own, other = supports[role], supports[Y - role]
        rows = (chosen & (factors[role].counts > 0)).nonzero().flatten()
        for wanted, positions in factors[role].candidates(rows):
            nodes = [
                own.nodes[letters[role].index(letter)][positions]
                if letter in letters[role]
                else target.nodes[letters[TARGET].index(letter)][wanted]
                for letter in letters[Y - role]
            ]
            # A factor without slots has one entry for every graph.
            others = other.positions(torch.stack(nodes)) if nodes else target.graphs[wanted]
            stored = (others >= 0).nonzero().flatten()
            for number, part in ((role, positions), (Y - role, others), (TARGET, wanted)):
                found[number].append(part[stored])
    terms = [torch.cat(parts) if parts else target.index.new_zeros(0) for parts in found]
    order = terms[TARGET].argsort(stable=True)
    n_all = torch.ones(target.nnz, dtype=torch.float64, device=target.index.device)
    for letter in plan.summed:
        counts = x.counts.by_set[x.counts.key(x.slots[letters[X].index(letter)])]
        n_all = n_all * counts[target.graphs]
    return Terms([one[order] for one in terms], (x.nnz, y.nnz, target.nnz), n_all)
