"""Permutations of slots: outputs averaged over those of unordered slots, checks of symmetric and hollow inputs.

A map whose result does not change when slots are exchanged is any map followed by such an average. The averages of maps
that differ by an exchange of target slots are equal, so a plan has one of them. The average is a sum of results whose
weights are divided beforehand. It is exactly symmetric, without rounding errors, and in place where that is allowed.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import combinations
from math import factorial, prod
from typing import Any

import torch
from torch import Tensor

from bellnet.backends import Layout, SparseLayout, is_traced
from bellnet.errors import DeclarationError, SupportError
from bellnet.plan import Plan
from bellnet.spec import Groups, Spec
from bellnet.tensors import Support

Exchange = Callable[[Tensor, int, int], Tensor]
"""Returns values with two slots exchanged."""

CHUNK_BYTES = 2**21
"""The graphs of a batch are symmetrized in chunks of this size, which fit into the cache."""


class Symmetrization:
    """The sum over all permutations of the unordered slots of the results of a layer.

    It is an average if the weights of every target are multiplied by the factor in `shares`.
    """

    def __init__(self, call: str, spec: Spec) -> None:
        self._call = call
        self._groups = [spec.constants(target).unordered for target in range(len(spec.targets))]
        self.shares = [1 / prod(factorial(len(group)) for group in groups) for groups in self._groups]

    def __call__(self, results: Sequence[Tensor], layout: Layout) -> list[Tensor]:
        """Symmetrize the results of all targets: (batch, *axes, channels), or (stored entries, channels)."""
        if not isinstance(layout, SparseLayout):
            pairs = zip(results, self._groups, strict=True)
            return [_symmetrized(one, groups, _transposed, _chunk(one)) for one, groups in pairs]
        triples = zip(results, layout.targets, self._groups, strict=True)
        return [_symmetrized(one, groups, partial(self._exchanged, on), None) for one, on, groups in triples]

    def _exchanged(self, support: Support, values: Tensor, one: int, other: int) -> Tensor:
        """Values on a support, which must be symmetric in two slots, with these exchanged."""
        key = "exchanged", one, other
        return values.index_select(0, support.cached(key, lambda: self._positions(support, one, other)))

    def _positions(self, support: Support, one: int, other: int) -> Tensor:
        """For every stored entry the position of the one with two slots exchanged."""
        positions = _exchanged_positions(support, one, other)
        if bool((positions < 0).any()):
            entry = support.show(int((positions < 0).nonzero()[0]))
            raise SupportError(
                f"{self._call}: slots {one} and {other} of the result are unordered, but {entry} is stored without the "
                "entry that has them exchanged.\nStore both, or write no braces around these slots."
            )
        return positions


def _exchanged_positions(support: Support, one: int, other: int) -> Tensor:
    """For every stored entry the position of the one with two slots exchanged, -1 where that is not stored."""
    order = list(range(support.order))
    order[one], order[other] = other, one
    return support.positions(support.nodes[order])


def _transposed(tensor: Tensor, one: int, other: int) -> Tensor:
    return tensor.transpose(one + 1, other + 1)


def _chunk(values: Tensor) -> int:
    """The number of graphs in a chunk."""
    return max(1, len(values) * CHUNK_BYTES // max(values.numel() * values.element_size(), 1))


def _symmetrized(values: Tensor, groups: Groups, exchange: Exchange, chunk: int | None) -> Tensor:
    """The sum over all permutations of each group of slots; in place, unless that is not allowed."""
    if is_traced() or values._is_view():
        return _summed(values, groups, exchange)
    if not groups:
        return values
    if torch.is_grad_enabled() and values.requires_grad:
        result: Tensor = _InPlaceSum.apply(values, groups, exchange, chunk)  # type: ignore[no-untyped-call]
        return result
    return _sum_in_place(values, groups, exchange, chunk)


def _summed(values: Tensor, groups: Groups, exchange: Exchange) -> Tensor:
    """The sum over all permutations: every slot of a group in turn is exchanged with those before it, or stays."""
    for group in groups:
        for last in range(1, len(group)):
            total = values
            for slot in group[:last]:
                total = total + exchange(values, slot, group[last])
            values = total
        if len(group) > 2:  # sums in different orders differ by rounding; their maximum is symmetric
            for one, other in combinations(group, 2):
                values = torch.maximum(values, exchange(values, one, other))
    return values


def _sum_in_place(values: Tensor, groups: Groups, exchange: Exchange, chunk: int | None) -> Tensor:
    for some in values.split(chunk) if chunk and len(values) else (values,):  # type: ignore[no-untyped-call]
        if len(groups) == 1 and len(groups[0]) == 2:
            some.add_(exchange(some, *groups[0]).clone())
        else:
            some.copy_(_summed(some, groups, exchange))
    return values


class _InPlaceSum(torch.autograd.Function):
    """The sum over all permutations, which is its own transpose."""

    @staticmethod
    def forward(ctx: Any, values: Tensor, groups: Groups, exchange: Exchange, chunk: int | None) -> Tensor:
        ctx.groups, ctx.exchange = groups, exchange
        ctx.mark_dirty(values)
        return _sum_in_place(values, groups, exchange, chunk)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        return _summed(gradients[0], ctx.groups, ctx.exchange), None, None, None


def check_declared(call: str, plan: Plan, values: Tensor, support: Support | None) -> None:
    """Refuse (batch, *axes, channels), or stored values, that are not symmetric or hollow as the plan assumes."""
    groups = plan.symmetry.groups
    for one, other in _pairs(plan):
        name = plan.spec.source[one]
        if groups[one] == groups[other]:
            exchanged = _transposed(values, one, other) if support is None else _looked_up(values, support, one, other)
            if not torch.allclose(values, exchanged, rtol=1e-4, atol=1e-6, equal_nan=True):
                raise DeclarationError(
                    f"{call} was declared to have symmetric inputs, but exchanging slots {one} and {other} of node set "
                    f"{name!r} changes this one by up to {float((values - exchanged).abs().max()):.3g}.\nLeave out "
                    f"{'symmetric=True' if plan.symmetric else 'the braces'} to use all maps, or symmetrise the input: "
                    "(x + x.transpose(-2, -3)) / 2 for order 2."
                )
        if plan.hollow:
            diagonal = (
                values.diagonal(0, one + 1, other + 1)
                if support is None
                else values[support.nodes[one] == support.nodes[other]]
            )
            if diagonal.count_nonzero():
                raise DeclarationError(
                    f"{call} was declared to have hollow inputs, but this one has values up to "
                    f"{float(diagonal.abs().max()):.3g} where slots {one} and {other} of node set {name!r} coincide.\n"
                    "Leave out hollow=True to use the maps that read this diagonal."
                )


def _pairs(plan: Plan) -> Iterator[tuple[int, int]]:
    """The pairs of source slots over one node set."""
    source = plan.spec.source
    return (pair for pair in combinations(range(len(source)), 2) if source[pair[0]] == source[pair[1]])


def _looked_up(values: Tensor, support: Support, one: int, other: int) -> Tensor:
    """The values at the entries with two slots exchanged, zero where those are not stored."""
    positions = _exchanged_positions(support, one, other)
    return values[positions.clamp(min=0)].masked_fill((positions < 0).unsqueeze(-1), 0)
