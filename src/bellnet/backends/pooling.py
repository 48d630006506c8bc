"""Pooling of the orbits of dense tensors: the entries with exactly the same equalities between their indices.

Kernels take one pass over the tensor for the result and one for the gradient. Elsewhere the result is computed in
functional torch operations, and the gradient in place: autograd alone would take some ten passes for a maximum.
"""

import ctypes
from collections.abc import Iterator
from functools import lru_cache
from itertools import combinations
from math import inf, perm
from typing import Any, NamedTuple

import torch
from torch import Tensor

from bellnet.backends.dense_layout import Nodes
from bellnet.kernels import structs
from bellnet.kernels.calling import call, can_call, function, n_threads, pointer
from bellnet.tensors.tracing import is_batched, is_traced, save, saved

REDUCTIONS = {reduce: structs.CONSTANTS[f"POOL_{reduce.upper()}"] for reduce in ("max", "sum", "mean")}
VALUES_PER_THREAD = 2**16


class Orbit(NamedTuple):
    """The axes to merge, pair after pair, until one is left for each block; and the node sets of those."""

    merges: tuple[tuple[int, int], ...]
    sets: tuple[int, ...]

    @property
    def n_axes(self) -> int:
        """The number of axes before merging."""
        return len(self.sets) + len(self.merges)

    @property
    def blocks(self) -> list[list[int]]:
        """The axes of equal indices, block by block."""
        blocks = [[axis] for axis in range(self.n_axes)]
        for first, second in self.merges:
            merged = [*blocks[first], *blocks[second]]
            blocks = [block for position, block in enumerate(blocks) if position not in (first, second)]
            blocks.insert(first, merged)
        return blocks

    def entries(self, tensor: Tensor) -> Tensor:
        """The entries with at least these equalities, as a view of a (batch, *axes, channels) tensor."""
        for first, second in self.merges:
            tensor = tensor.diagonal(0, first + 1, second + 1).movedim(-1, first + 1)
        return tensor

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """The pairs of remaining axes of one node set, whose indices must differ."""
        return [pair for pair in combinations(range(len(self.sets)), 2) if self.sets[pair[0]] == self.sets[pair[1]]]

    def coincidences(self, entries: Tensor) -> Iterator[Tensor]:
        """The entries with further equalities, as views."""
        for first, second in self.pairs:
            yield entries.diagonal(0, first + 1, second + 1)

    def n_entries(self, nodes: Nodes) -> Tensor | int:
        """The number of entries: an integer, or (batch, 1) of them."""
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
        nodes: The numbers of nodes.
        orbits: All orbits.
        reduce: "max", "sum" or "mean"; an orbit without entries gives zero.

    Returns:
        (batch, orbits * channels).
    """
    if is_traced():
        return _pool_functional(tensor, nodes, orbits, reduce)
    return _Pool.apply(tensor, nodes, orbits, reduce)  # type: ignore[no-any-return,no-untyped-call]


class _Pool(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, tensor: Tensor, nodes: Nodes, orbits: tuple[Orbit, ...], reduce: str) -> Tensor:
        ctx.nodes, ctx.orbits, ctx.reduce, ctx.shape = nodes, orbits, reduce, tensor.shape
        divisors = None
        if _can_pool(orbits, tensor):
            batch, width = len(tensor), tensor.shape[-1]
            pooled = tensor.new_empty(batch, len(orbits) * width)
            divisors = torch.empty_like(pooled) if reduce == "max" else tensor.new_empty(batch, len(orbits))
            _call("pool", tensor.shape, nodes, orbits, reduce, rows=tensor, pooled=pooled, divisors=divisors)
        else:
            pooled = _pool_functional(tensor, nodes, orbits, reduce)
        # The gradient of sums and means does not depend on the values.
        save(ctx, *(tensor, pooled) if reduce == "max" else (None, None), divisors)
        return pooled

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> tuple[Tensor, None, None, None]:
        gradient = gradients[0]
        tensor, pooled, divisors = saved(ctx)
        if torch.is_grad_enabled() or is_traced() or is_batched(gradient):
            with torch.enable_grad():
                own = gradient.new_zeros(ctx.shape, requires_grad=True) if tensor is None else tensor.view_as(tensor)
                again = _pool_functional(own, ctx.nodes, ctx.orbits, ctx.reduce)
                found = torch.autograd.grad(again, own, gradient, create_graph=True)[0]
            return found, None, None, None
        result = gradient.new_empty(ctx.shape)
        if divisors is not None and _can_pool(ctx.orbits, gradient):
            tensors = {
                "rows": tensor,
                "pooled": pooled,
                "divisors": divisors,
                "gradient": gradient,
                "grad_rows": result,
            }
            _call("pool_backward", ctx.shape, ctx.nodes, ctx.orbits, ctx.reduce, **tensors)
            return result, None, None, None
        by_orbit = ctx.shape[0], len(ctx.orbits), ctx.shape[-1]
        several = [one.reshape(by_orbit).unbind(1) for one in (gradient, gradient if pooled is None else pooled)]
        parts = zip(ctx.orbits, *several, strict=True)
        # Every orbit is written together with its coincidences, which are overwritten afterwards.
        for orbit, part, value in sorted(parts, key=lambda one: -len(one[0].sets)):
            values = result if tensor is None else tensor
            _write_gradient(orbit.entries(result), orbit, ctx.nodes, part, (orbit.entries(values), value), ctx.reduce)
        return result, None, None, None


def _write_gradient(
    into: Tensor, orbit: Orbit, nodes: Nodes, gradient: Tensor, pooled: tuple[Tensor, Tensor], reduce: str
) -> None:
    """Write the gradient of the entries of an orbit, given that of the result."""
    if not orbit.sets:
        into.copy_(gradient)
        return
    shape = (len(gradient), *[1] * len(orbit.sets), gradient.shape[-1])
    gradient, count = gradient.reshape(shape), orbit.n_entries(nodes)
    if reduce == "max":
        # Equal maxima share the gradient, so that it is permutation-equivariant as well.
        entries, value = pooled
        into.copy_(entries).eq_(value.reshape(shape))
        for several in orbit.coincidences(into):
            several.zero_()
        nodes.clean_(into, orbit.sets)
        wide = torch.promote_types(into.dtype, torch.float32)
        ties = into.sum(tuple(range(1, into.ndim - 1)), keepdim=True, dtype=wide)
        none = count == 0  # otherwise there are no ties only if the maximum is NaN
        ties = ties + (none if isinstance(none, bool) else none.reshape(-1, *shape[1:-1], 1))
        into.mul_((gradient / ties).to(into.dtype))
    else:
        if reduce == "mean":
            most = max(count, 1) if isinstance(count, int) else count.clamp(min=1).reshape(-1, *shape[1:-1], 1)
            gradient = gradient / most
        into.copy_(gradient)
    nodes.clean_(into, orbit.sets)


def _pool_functional(tensor: Tensor, nodes: Nodes, orbits: tuple[Orbit, ...], reduce: str) -> Tensor:
    """Pool in operations that can be traced and differentiated."""
    return torch.cat([_pool_orbit(orbit.entries(tensor), nodes, orbit, reduce) for orbit in orbits], -1)


def _pool_orbit(entries: Tensor, nodes: Nodes, orbit: Orbit, reduce: str) -> Tensor:
    if not orbit.sets:
        return entries
    axes, excluded = tuple(range(1, entries.ndim - 1)), _excluded(nodes, orbit, entries)
    if reduce == "sum":
        return entries.masked_fill(excluded, 0).sum(axes)
    count = (~excluded).expand(*entries.shape[:-1], 1).sum(axes)
    if reduce == "mean":  # sums of many half-precision values overflow although their mean does not
        total = entries.masked_fill(excluded, 0).sum(axes, dtype=torch.promote_types(entries.dtype, torch.float32))
        return (total / count.clamp(min=1)).to(entries.dtype)
    if 0 in entries.shape[1:-1]:
        return entries.sum(axes)
    return entries.masked_fill(excluded, -inf).amax(axes).masked_fill(count == 0, 0)


def _excluded(nodes: Nodes, orbit: Orbit, entries: Tensor) -> Tensor:
    """Where two indices of one node set coincide, or there is no node: broadcasts to the entries."""
    excluded = torch.zeros([1] * entries.ndim, dtype=torch.bool, device=entries.device)
    for one, other in orbit.pairs:
        length = nodes.lengths[orbit.sets[one]]
        shape = [1] * entries.ndim
        shape[one + 1] = shape[other + 1] = length
        excluded = excluded | torch.eye(length, dtype=torch.bool, device=entries.device).reshape(shape)
    inside = nodes.inside(orbit.sets)
    return excluded if inside is None else excluded | ~inside


# ---- kernels


def _can_pool(orbits: tuple[Orbit, ...], tensor: Tensor) -> bool:
    return 0 < orbits[0].n_axes <= structs.MOST_AXES and can_call([tensor])


def _call(
    name: str, shape: torch.Size, nodes: Nodes, orbits: tuple[Orbit, ...], reduce: str, **tensors: Tensor | None
) -> None:
    """Call a kernel for tensors of a shape; they are named as in the struct."""
    head, _ = _structs(orbits, nodes.lengths)
    dtype, owners = next(one.dtype for one in tensors.values() if one is not None), list[object]()
    counts = None if nodes.counts is None else nodes.counts.to(torch.int64)
    pooled = shape[0], len(orbits) * shape[-1]
    shapes = {name: shape if name.endswith("rows") else pooled for name in tensors}
    shapes["divisors"] = pooled if reduce == "max" else (shape[0], len(orbits))
    arguments = structs.PoolCall(
        orbits=ctypes.addressof(head),
        n_graphs=shape[0],
        n_threads=n_threads(shape.numel(), VALUES_PER_THREAD),
        n_channels=shape[-1],
        reduce=REDUCTIONS[reduce],
        counts=pointer("the numbers of nodes", counts, (len(nodes.lengths), shape[0]), torch.int64, owners),
        **{one: pointer(one, tensor, shapes[one], dtype, owners) for one, tensor in tensors.items()},
    )
    call(function(name, dtype), arguments)


@lru_cache(maxsize=256)
def _structs(orbits: tuple[Orbit, ...], lengths: tuple[int, ...]) -> tuple[Any, Any]:
    """The struct of the orbits, and the tree of equality patterns that it points to."""
    n_axes = orbits[0].n_axes
    sets, numbers = [0] * n_axes, {}
    for number, orbit in enumerate(orbits):
        firsts = [0] * n_axes
        for block, node_set in zip(orbit.blocks, orbit.sets, strict=True):
            for axis in block:
                sets[axis], firsts[axis] = node_set, min(block)
        numbers[tuple(firsts)] = number
    prefixes: list[Any] = []

    def grow(prefix: tuple[int, ...]) -> int:
        """Add the prefixes after this one, which has for every axis the first one with the same index."""
        following = len(prefix)
        if following == n_axes:
            return numbers[prefix]
        position, blocks = len(prefixes), sorted(set(prefix))
        prefixes.append(structs.Prefix())
        children = [grow((*prefix, one)) if sets[one] == sets[following] else -1 for one in blocks]
        children.append(grow((*prefix, following)))
        prefixes[position] = structs.Prefix(len(blocks), tuple(blocks), tuple(children))
        return position

    grow(())
    array = (structs.Prefix * len(prefixes))(*prefixes)
    axis_lengths = tuple(lengths[one] for one in sets)
    return structs.Orbits(n_axes, len(orbits), axis_lengths, tuple(sets), ctypes.addressof(array)), array
