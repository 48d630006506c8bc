"""Results over unordered slots: averages over all exchanges of those, equal to the last bit.

A map whose result does not change when slots are exchanged is any map followed by such an average. Of maps that differ
by an exchange of target slots the averages are equal, so a plan has one of them, and makes fewer products for it. An
average is a sum, in the memory of the result where that is allowed, by weights that are divided before.
"""

from collections.abc import Callable, Sequence
from math import factorial, prod
from typing import Any

import torch
from torch import Tensor

from bellnet.backends import Layout, SparseLayout, is_traced
from bellnet.errors import SupportError
from bellnet.spec import Groups, Spec
from bellnet.tensors import Support

Exchange = Callable[[Tensor, int, int], Tensor]
"""Values with two slots exchanged."""

CHUNK_BYTES = 2**21
"""So many bytes of graphs are exchanged at a time, while the cache holds them."""


class Unordered:
    """The average over all exchanges of slots that have braces around them, for the results of a layer.

    Args:
        call: How messages name the layer.
        spec: The spec of the layer.

    Attributes:
        shares: For every target what its weights are multiplied by, so that the sum over all exchanges is the average.
    """

    def __init__(self, call: str, spec: Spec) -> None:
        self._call = call
        self._groups = [spec.unordered_of(target) for target in range(len(spec.targets))]
        self.shares = [1 / prod(factorial(len(group)) for group in groups) for groups in self._groups]

    def __call__(self, results: Sequence[Tensor], layout: Layout) -> list[Tensor]:
        """For every target (batch, *axes, channels), or values on the tuples that are listed."""
        if not isinstance(layout, SparseLayout):
            return [exchanged(one, groups) for one, groups in zip(results, self._groups, strict=True)]
        several = zip(results, layout.targets, self._groups, strict=True)
        return [exchanged_listed(self._call, *one) for one in several]


def exchanged(values: Tensor, groups: Groups) -> Tensor:
    """(batch, *axes, channels), summed over all exchanges of the axes of each group of slots."""
    if is_traced() or values._is_view():
        return _summed(values, groups, _transposed)
    return _in_place(values, groups, _transposed, chunk=_chunk(values))


def exchanged_listed(call: str, values: Tensor, support: Support, groups: Groups) -> Tensor:
    """The same for values (tuples, channels) on the tuples of a support, which has those with exchanged slots too."""

    def reordered(tensor: Tensor, one: int, other: int) -> Tensor:
        places = support.cached(("exchanged", one, other), lambda: _places(call, support, one, other))
        return tensor.index_select(0, places)

    if is_traced() or values._is_view():
        return _summed(values, groups, reordered)
    return _in_place(values, groups, reordered, chunk=None)


def _transposed(tensor: Tensor, one: int, other: int) -> Tensor:
    return tensor.transpose(one + 1, other + 1)


def _chunk(values: Tensor) -> int:
    """How many graphs are taken at a time."""
    n_graphs, n_bytes = len(values), values.numel() * values.element_size()
    return max(1, n_graphs * CHUNK_BYTES // max(n_bytes, 1))


def _summed(values: Tensor, groups: Groups, exchange: Exchange) -> Tensor:
    """The sum over all exchanges: one slot of a group after the other changes places with those before it, or stays."""
    for group in groups:
        for last in range(1, len(group)):
            total = values
            for place in range(last):
                total = total + exchange(values, group[place], group[last])
            values = total
        if len(group) > 2:  # sums in another order differ by rounding, the largest of them is one number
            for last in range(1, len(group)):
                for place in range(last):
                    values = torch.maximum(values, exchange(values, group[place], group[last]))
    return values


def _in_place(values: Tensor, groups: Groups, exchange: Exchange, chunk: int | None) -> Tensor:
    """The same in the memory of values that nobody else has."""
    if not groups:
        return values
    if torch.is_grad_enabled() and values.requires_grad:
        found: Tensor = _Exchanged.apply(values, groups, exchange, chunk)  # type: ignore[no-untyped-call]
        return found
    for some in values.split(chunk) if chunk and len(values) else (values,):  # type: ignore[no-untyped-call]
        if len(groups) == 1 and len(groups[0]) == 2:
            some.add_(exchange(some, *groups[0]).clone())
        else:
            some.copy_(_summed(some, groups, exchange))
    return values


class _Exchanged(torch.autograd.Function):
    """The sum over all exchanges is its own transpose."""

    @staticmethod
    def forward(ctx: Any, values: Tensor, groups: Groups, exchange: Exchange, chunk: int | None) -> Tensor:
        ctx.groups, ctx.exchange = groups, exchange
        ctx.mark_dirty(values)
        return _in_place(values, groups, exchange, chunk)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        return _summed(gradients[0], ctx.groups, ctx.exchange), None, None, None


def _places(call: str, support: Support, one: int, other: int) -> Tensor:
    """For every tuple the place of that with two slots exchanged."""
    order = list(range(support.order))
    order[one], order[other] = other, one
    places = support.positions(support.nodes[order])
    if bool((places < 0).any()):
        missing = int((places < 0).nonzero()[0])
        raise SupportError(
            f"{call}: slots {one} and {other} of the result are unordered, but {support.show(missing)} is listed "
            "without the tuple that has them exchanged.\nList both, or write no braces around these slots."
        )
    return places
