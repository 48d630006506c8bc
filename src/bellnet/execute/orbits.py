"""Pooling the orbits of dense tensors: the entries with exactly the same equalities between their indices.

Left to itself, autograd would take some ten passes over tensors of full size for a maximum and its gradient. Whoever
wants to see the operations themselves is shown plain ones.
"""

from collections.abc import Iterator
from itertools import combinations
from math import inf, perm
from typing import Any, NamedTuple

import torch
from torch import Tensor

from bellnet.execute.nodes import Nodes
from bellnet.execute.transforms import is_batched, wants_plain
from bellnet.execute.zeros import zero_


class Orbit(NamedTuple):
    """The axes to merge, pair after pair, until one is left for each block; and the node sets of those."""

    merges: tuple[tuple[int, int], ...]
    sets: tuple[int, ...]

    def entries(self, tensor: Tensor) -> Tensor:
        """Where at least these indices are equal, as a view of a (batch, *axes, channels) tensor."""
        for first, second in self.merges:
            tensor = tensor.diagonal(0, first + 1, second + 1).movedim(-1, first + 1)
        return tensor

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """The axes that have one node set, two by two: their indices must differ."""
        return [pair for pair in combinations(range(len(self.sets)), 2) if self.sets[pair[0]] == self.sets[pair[1]]]

    def coincidences(self, entries: Tensor) -> Iterator[Tensor]:
        """Where more indices are equal, as views."""
        for first, second in self.pairs:
            yield entries.diagonal(0, first + 1, second + 1)

    def n_entries(self, nodes: Nodes) -> Tensor | int:
        """How many entries there are: a number, or (batch, 1) of them."""
        number: Tensor | int = 1
        for node_set in set(self.sets):
            several = self.sets.count(node_set)
            if nodes.counts is None:
                number = number * perm(nodes.lengths[node_set], several)
            else:
                for less in range(several):
                    number = number * (nodes.counts[node_set].unsqueeze(-1) - less).clamp(min=0)
        return number


def pool_orbits(tensor: Tensor, nodes: Nodes, orbits: tuple[Orbit, ...], reduce: str) -> Tensor:
    """Pool every orbit by itself.

    Args:
        tensor: (batch, *axes, channels), zero outside the nodes.
        nodes: How many there are.
        orbits: The orbits.
        reduce: "max", "sum" or "mean"; zero where there is no entry.

    Returns:
        (batch, orbits * channels).
    """
    if wants_plain():
        return _pool_plainly(tensor, nodes, orbits, reduce)
    return _Pool.apply(tensor, nodes, orbits, reduce)  # type: ignore[no-any-return,no-untyped-call]


class _Pool(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, tensor: Tensor, nodes: Nodes, orbits: tuple[Orbit, ...], reduce: str) -> Tensor:
        pooled = torch.cat([_pool(tensor, nodes, orbit, reduce) for orbit in orbits], -1)
        ctx.nodes, ctx.orbits, ctx.reduce = nodes, orbits, reduce
        ctx.shape = tensor.shape
        if reduce == "max":  # the others are linear
            ctx.save_for_backward(tensor, pooled)
        return pooled

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> tuple[Tensor, None, None, None]:
        gradient = gradients[0]
        tensor, pooled = ctx.saved_tensors if ctx.reduce == "max" else (None, gradient)
        if torch.is_grad_enabled() or wants_plain() or is_batched(gradient):  # somebody looks at this pass, too
            with torch.enable_grad():
                own = gradient.new_zeros(ctx.shape, requires_grad=True) if tensor is None else tensor.view_as(tensor)
                again = _pool_plainly(own, ctx.nodes, ctx.orbits, ctx.reduce)
                found = torch.autograd.grad(again, own, gradient, create_graph=True)[0]
            return found, None, None, None
        result = gradient.new_empty(ctx.shape)
        width = ctx.shape[-1]
        parts = zip(ctx.orbits, gradient.split(width, -1), pooled.split(width, -1), strict=True)
        # Every orbit is written with what lies on its diagonals, and those write theirs afterwards.
        for orbit, part, value in sorted(parts, key=lambda one: -len(one[0].sets)):
            of_values = result if tensor is None else tensor
            _pull(orbit.entries(result), orbit, ctx.nodes, part, (orbit.entries(of_values), value), ctx.reduce)
        return result, None, None, None


def _pool(tensor: Tensor, nodes: Nodes, orbit: Orbit, reduce: str) -> Tensor:
    entries, count = orbit.entries(tensor), orbit.n_entries(nodes)
    if not orbit.sets:
        return entries
    axes = tuple(range(1, entries.ndim - 1))
    if 0 in entries.shape[1:-1] or (isinstance(count, int) and count == 0):
        return entries.new_zeros(len(entries), entries.shape[-1])
    if reduce == "max":
        below_all = nodes.below_all(orbit.sets, entries.dtype)
        if below_all is not None:  # there are zeros elsewhere
            entries = entries + below_all
        elif orbit.pairs:
            entries = entries.clone()
        for several in orbit.coincidences(entries):
            several.fill_(-inf)
        largest = entries.amax(axes)
        return largest if isinstance(count, int) else largest.masked_fill_(count == 0, 0)
    if orbit.pairs:
        entries = entries.clone()
        for several in orbit.coincidences(entries):
            several.zero_()
    if reduce == "sum":
        return entries.sum(axes)
    # Sums of many half-precision numbers overflow although their mean does not.
    total = entries.sum(axes, dtype=torch.promote_types(entries.dtype, torch.float32))
    return (total / (count if isinstance(count, int) else count.clamp(min=1))).to(entries.dtype)


def _pull(
    into: Tensor, orbit: Orbit, nodes: Nodes, gradient: Tensor, pooled: tuple[Tensor, Tensor], reduce: str
) -> None:
    """Write the gradient of the entries of an orbit, given that of what came of them."""
    if not orbit.sets:
        into.copy_(gradient)
        return
    shape = (len(gradient), *[1] * len(orbit.sets), gradient.shape[-1])
    gradient, count = gradient.reshape(shape), orbit.n_entries(nodes)
    bits = nodes.bits(orbit.sets, into.dtype)
    if reduce == "max":
        # Equal entries share the gradient, so that it does not depend on the numbering of nodes either.
        entries, value = pooled
        into.copy_(entries).eq_(value.reshape(shape))
        for several in orbit.coincidences(into):
            several.zero_()
        if bits is not None:
            zero_(into, bits)
        wide = torch.promote_types(into.dtype, torch.float32)
        ties = into.sum(tuple(range(1, into.ndim - 1)), keepdim=True, dtype=wide)
        none = count == 0  # else nothing is equal to the largest only where that is no number
        ties = ties + (none if isinstance(none, bool) else none.reshape(-1, *shape[1:-1], 1))
        into.mul_((gradient / ties).to(into.dtype))
        if bits is not None:
            zero_(into, bits)
        return
    if reduce == "mean":
        most = max(count, 1) if isinstance(count, int) else count.clamp(min=1).reshape(-1, *shape[1:-1], 1)
        gradient = gradient / most
    into.copy_(gradient)
    if bits is not None:
        zero_(into, bits)


def _pool_plainly(tensor: Tensor, nodes: Nodes, orbits: tuple[Orbit, ...], reduce: str) -> Tensor:
    """The same in operations that can be traced and differentiated."""
    return torch.cat([_pool_one_plainly(tensor, nodes, orbit, reduce) for orbit in orbits], -1)


def _pool_one_plainly(tensor: Tensor, nodes: Nodes, orbit: Orbit, reduce: str) -> Tensor:
    entries = orbit.entries(tensor)
    if not orbit.sets:
        return entries
    axes = tuple(range(1, entries.ndim - 1))
    left_out = _left_out(nodes, orbit, entries)
    if reduce == "sum":
        return entries.masked_fill(left_out, 0).sum(axes)
    count = (~left_out).expand(*entries.shape[:-1], 1).sum(axes)
    if reduce == "mean":
        total = entries.masked_fill(left_out, 0).sum(axes, dtype=torch.promote_types(entries.dtype, torch.float32))
        return (total / count.clamp(min=1)).to(entries.dtype)
    if 0 in entries.shape[1:-1]:
        return entries.sum(axes)
    return entries.masked_fill(left_out, -inf).amax(axes).masked_fill(count == 0, 0)


def _left_out(nodes: Nodes, orbit: Orbit, entries: Tensor) -> Tensor:
    """Where two indices of one node set coincide, or there is no node: broadcasts to the entries."""
    left_out = torch.zeros([1] * entries.ndim, dtype=torch.bool, device=entries.device)
    for one, other in orbit.pairs:
        length = nodes.lengths[orbit.sets[one]]
        shape = [1] * entries.ndim
        shape[one + 1] = shape[other + 1] = length
        left_out = left_out | torch.eye(length, dtype=torch.bool, device=entries.device).reshape(shape)
    inside = nodes.inside(orbit.sets)
    return left_out if inside is None else left_out | ~inside
