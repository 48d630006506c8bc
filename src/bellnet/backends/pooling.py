"""Pooling the orbits of dense tensors: the entries with exactly the same equalities between their indices.

Left to itself, autograd would take some ten passes over tensors of full size for a maximum and its gradient. Kernels
take one for each (`backends/compiled_orbits.py`), and operations that write in place a few. Whoever wants to see the
operations themselves is shown plain ones.
"""

import ctypes
from collections.abc import Iterator
from functools import lru_cache
from itertools import combinations
from math import inf, perm
from typing import Any, NamedTuple

import torch
from torch import Tensor

from bellnet.backends.dense_layout import Nodes, zero_
from bellnet.backends.transforms import is_batched, is_traced, save, saved
from bellnet.kernels import structs
from bellnet.kernels.calling import call, can_call, function, n_threads, pointer
from bellnet.kernels.structs import MOST_AXES


class Orbit(NamedTuple):
    """The axes to merge, pair after pair, until one is left for each block; and the node sets of those."""

    merges: tuple[tuple[int, int], ...]
    sets: tuple[int, ...]

    @property
    def n_axes(self) -> int:
        """How many there are before merging."""
        return len(self.sets) + len(self.merges)

    @property
    def blocks(self) -> list[list[int]]:
        """The axes of equal indices, block by block."""
        blocks = [[axis] for axis in range(self.n_axes)]
        for first, second in self.merges:
            merged = [*blocks[first], *blocks[second]]
            blocks = [block for place, block in enumerate(blocks) if place not in (first, second)]
            blocks.insert(first, merged)
        return blocks

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


REDUCTIONS = {"max": structs.LARGEST, "sum": structs.TOTAL, "mean": structs.MEAN}
VALUES_PER_THREAD = 2**16
"""A thread takes part in a call for so many values."""


def can_pool(orbits: tuple[Orbit, ...], tensor: Tensor) -> bool:
    """Whether kernels pool the orbits of such a tensor, or find its gradient from that of the result."""
    return 0 < orbits[0].n_axes <= MOST_AXES and can_call([tensor])


def pool_compiled(tensor: Tensor, nodes: Nodes, orbits: tuple[Orbit, ...], reduce: str) -> tuple[Tensor, Tensor]:
    """Pool every orbit by itself.

    Args:
        tensor: (batch, *axes, channels); what is outside the nodes is not read.
        nodes: How many there are.
        orbits: All orbits.
        reduce: "max", "sum" or "mean".

    Returns:
        (batch, orbits * channels), and among how many entries the gradient of each number is shared: for a maximum a
        tensor of the same shape, else (batch, orbits).
    """
    batch, width = len(tensor), tensor.shape[-1]
    pooled = tensor.new_empty(batch, len(orbits) * width)
    divisors = torch.empty_like(pooled) if reduce == "max" else tensor.new_empty(batch, len(orbits))
    _call("pool", tensor.shape, nodes, orbits, reduce, rows=tensor, pooled=pooled, divisors=divisors)
    return pooled, divisors


def unpool_compiled(
    gradient: Tensor,
    nodes: Nodes,
    orbits: tuple[Orbit, ...],
    reduce: str,
    saved: tuple[Tensor | None, Tensor | None, Tensor],
    shape: torch.Size,
) -> Tensor:
    """The gradient of a tensor of some shape, zero outside the nodes, given that of what came of it.

    Args:
        gradient: (batch, orbits * channels).
        nodes: How many there are.
        orbits: All orbits.
        reduce: "max", "sum" or "mean".
        saved: The tensor and its maxima, or None where they are not asked for, and what the gradient is divided by.
        shape: That of the tensor.
    """
    result = gradient.new_empty(shape)
    rows, pooled, divisors = saved
    tensors = {"rows": rows, "pooled": pooled, "divisors": divisors, "gradient": gradient, "of_rows": result}
    _call("unpool", shape, nodes, orbits, reduce, **tensors)
    return result


def _call(
    name: str, shape: torch.Size, nodes: Nodes, orbits: tuple[Orbit, ...], reduce: str, **tensors: Tensor | None
) -> None:
    head, _ = _structs(orbits, nodes.lengths)
    dtype, keep = next(one.dtype for one in tensors.values() if one is not None), list[object]()
    counts = None if nodes.counts is None else nodes.counts.to(torch.int64)
    pooled = shape[0], len(orbits) * shape[-1]
    shapes = {
        "rows": shape,
        "of_rows": shape,
        "pooled": pooled,
        "gradient": pooled,
        "divisors": pooled if reduce == "max" else (shape[0], len(orbits)),
    }
    arguments = structs.PoolCall(
        orbits=ctypes.addressof(head),
        n_graphs=shape[0],
        n_threads=n_threads(shape.numel(), VALUES_PER_THREAD),
        channels=shape[-1],
        reduce=REDUCTIONS[reduce],
        counts=pointer("the numbers of nodes", counts, (len(nodes.lengths), shape[0]), torch.int64, keep),
        **{one: pointer(one, tensor, shapes[one], dtype, keep) for one, tensor in tensors.items()},
    )
    call(function(name, dtype), arguments)


@lru_cache(maxsize=256)
def _structs(
    orbits: tuple[Orbit, ...], lengths: tuple[int, ...]
) -> tuple[structs.Orbits, "ctypes.Array[structs.Prefix]"]:
    """The orbits as kernels take them, and the tree of equality patterns that the struct points to."""
    n_axes = orbits[0].n_axes
    sets, numbers = [0] * n_axes, {}
    for number, orbit in enumerate(orbits):
        firsts = [0] * n_axes
        for block, node_set in zip(orbit.blocks, orbit.sets, strict=True):
            for axis in block:
                sets[axis], firsts[axis] = node_set, min(block)
        numbers[tuple(firsts)] = number
    prefixes: list[structs.Prefix] = []

    def grow(prefix: tuple[int, ...]) -> int:
        """Write down what comes after these axes, of which each names the first one that has the same index."""
        following = len(prefix)
        if following == n_axes:
            return numbers[prefix]
        place, blocks = len(prefixes), sorted(set(prefix))
        prefixes.append(structs.Prefix())
        children = [grow((*prefix, one)) if sets[one] == sets[following] else -1 for one in blocks]
        children.append(grow((*prefix, following)))
        prefixes[place] = structs.Prefix(n_blocks=len(blocks), axis=blocks, child=children)
        return place

    grow(())
    array = (structs.Prefix * len(prefixes))(*prefixes)
    head = structs.Orbits(
        n_axes=n_axes,
        n_orbits=len(orbits),
        length=[lengths[one] for one in sets],
        set=sets,
        prefixes=ctypes.addressof(array),
    )
    return head, array


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
