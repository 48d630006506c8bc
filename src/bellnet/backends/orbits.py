"""Pooling the orbits of dense tensors: the entries with exactly the same equalities between their indices.

Left to itself, autograd would take some ten passes over tensors of full size for a maximum and its gradient. Kernels
take one for each (`backends/compiled_orbits.py`), and operations that write in place a few. Whoever wants to see the
operations themselves is shown plain ones.
"""

from math import inf
from typing import Any

import torch
from torch import Tensor

from bellnet.backends.compiled_orbits import can_pool, pool_compiled, unpool_compiled
from bellnet.backends.nodes import Nodes
from bellnet.backends.orbit import Orbit
from bellnet.backends.transforms import is_batched, is_traced, save, saved
from bellnet.backends.zeros import zero_


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
    if is_traced():
        return _pool_plainly(tensor, nodes, orbits, reduce)
    return _Pool.apply(tensor, nodes, orbits, reduce)  # type: ignore[no-any-return,no-untyped-call]


class _Pool(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, tensor: Tensor, nodes: Nodes, orbits: tuple[Orbit, ...], reduce: str) -> Tensor:
        ctx.nodes, ctx.orbits, ctx.reduce = nodes, orbits, reduce
        ctx.shape = tensor.shape
        divisors = None
        if can_pool(orbits, tensor):
            pooled, divisors = pool_compiled(tensor, nodes, orbits, reduce)
        else:
            pooled = torch.cat([_pool(tensor, nodes, orbit, reduce) for orbit in orbits], -1)
        # Sums and means are linear: their gradient does not ask for values.
        save(ctx, *(tensor, pooled) if reduce == "max" else (None, None), divisors)
        return pooled

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> tuple[Tensor, None, None, None]:
        gradient = gradients[0]
        tensor, pooled, divisors = saved(ctx)
        if torch.is_grad_enabled() or is_traced() or is_batched(gradient):  # somebody looks at this pass, too
            with torch.enable_grad():
                own = gradient.new_zeros(ctx.shape, requires_grad=True) if tensor is None else tensor.view_as(tensor)
                again = _pool_plainly(own, ctx.nodes, ctx.orbits, ctx.reduce)
                found = torch.autograd.grad(again, own, gradient, create_graph=True)[0]
            return found, None, None, None
        if divisors is not None and can_pool(ctx.orbits, gradient):
            own = tensor, pooled, divisors
            return unpool_compiled(gradient, ctx.nodes, ctx.orbits, ctx.reduce, own, ctx.shape), None, None, None
        result = gradient.new_empty(ctx.shape)
        by_orbit = ctx.shape[0], len(ctx.orbits), ctx.shape[-1]
        several = [one.reshape(by_orbit).unbind(1) for one in (gradient, gradient if pooled is None else pooled)]
        parts = zip(ctx.orbits, *several, strict=True)
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
