"""Pooling the orbits of dense tensors by compiled kernels: on a CPU, in single or double precision."""

import ctypes
from functools import lru_cache

import torch
from torch import Tensor

from bellnet.backends.nodes import Nodes
from bellnet.backends.orbit import Orbit
from bellnet.kernels import structs
from bellnet.kernels.calling import call, can_call, function, n_threads, pointer
from bellnet.kernels.structs import MOST_AXES

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
