"""Pooling the orbits of dense tensors by compiled kernels: on a CPU, in single or double precision."""

import ctypes
from functools import lru_cache

import torch
from torch import Tensor

from bellnet.execute.calling import as_they_are, can_call, n_threads
from bellnet.execute.nodes import Nodes
from bellnet.execute.orbit import Orbit
from bellnet.execute.program import MOST_AXES
from bellnet.kernels import TYPES, kernels

REDUCTIONS = {"max": 0, "sum": 1, "mean": 2}
"""As in `kernels/pool.h`."""
FEW_NUMBERS = 2**16
"""So many are worth a thread."""


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
    _call("pool", tensor.shape, nodes, orbits, reduce, (tensor, pooled, divisors))
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
    _call("unpool", shape, nodes, orbits, reduce, (*saved, gradient, result))
    return result


def _call(
    name: str,
    shape: torch.Size,
    nodes: Nodes,
    orbits: tuple[Orbit, ...],
    reduce: str,
    tensors: tuple[Tensor | None, ...],
) -> None:
    lying = [None if one is None else as_they_are([one])[0] for one in tensors]
    counts = None if nodes.counts is None else nodes.counts.to(torch.int64).contiguous()
    like = next(one for one in lying if one is not None)
    getattr(kernels(), f"bellnet_{name}_{TYPES[like.dtype]}")(
        ctypes.byref(_words(orbits, nodes.lengths)),
        ctypes.c_int64(shape[0]),
        ctypes.c_int64(n_threads(shape.numel(), FEW_NUMBERS)),
        _pointer(counts),
        ctypes.c_int64(shape[-1]),
        ctypes.c_int64(REDUCTIONS[reduce]),
        *[_pointer(one) for one in lying],
    )


def _pointer(tensor: Tensor | None) -> ctypes.c_void_p | None:
    return None if tensor is None else ctypes.c_void_p(tensor.data_ptr())


@lru_cache(maxsize=256)
def _words(orbits: tuple[Orbit, ...], lengths: tuple[int, ...]) -> "ctypes.Array[ctypes.c_int64]":
    """The orbits as the whole numbers that kernels walk by: axes, and which orbit an equality pattern is of."""
    n_axes = orbits[0].n_axes
    sets, numbers = [0] * n_axes, {}
    for number, orbit in enumerate(orbits):
        firsts = [0] * n_axes
        for block, node_set in zip(orbit.blocks, orbit.sets, strict=True):
            for axis in block:
                sets[axis], firsts[axis] = node_set, min(block)
        numbers[tuple(firsts)] = number
    prefixes: list[list[int]] = []

    def grow(prefix: tuple[int, ...]) -> int:
        """Write down what comes after these axes, of which each names the first one that has the same index."""
        following = len(prefix)
        if following == n_axes:
            return numbers[prefix]
        place, blocks = len(prefixes), sorted(set(prefix))
        prefixes.append([])
        children = [grow((*prefix, one)) if sets[one] == sets[following] else -1 for one in blocks]
        children.append(grow((*prefix, following)))
        prefixes[place] = [len(blocks), *_filled(blocks, MOST_AXES), *_filled(children, MOST_AXES + 1)]
        return place

    grow(())
    head = [n_axes, len(orbits), *_filled([lengths[one] for one in sets], MOST_AXES), *_filled(sets, MOST_AXES)]
    words = [*head, *[word for prefix in prefixes for word in prefix]]
    return (ctypes.c_int64 * len(words))(*words)


def _filled(numbers: list[int], length: int) -> list[int]:
    return numbers + [0] * (length - len(numbers))
