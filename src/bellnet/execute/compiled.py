"""Plans that are run by compiled kernels: on a CPU, in single or double precision."""

import ctypes
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import torch
from torch import Tensor

from bellnet.execute.calling import are_ordinary, as_they_are, can_call, n_threads
from bellnet.execute.layout import Channels, Gradients, Needs
from bellnet.execute.pool import Share
from bellnet.execute.program import fits
from bellnet.kernels import TYPES, kernels
from bellnet.plan import Plan, Present

Kernel = Callable[[Any], int]


class Words(Protocol):
    """A program, as kernels walk by it, and for each graph how many numbers it reads and how often it multiplies."""

    words: "ctypes.Array[ctypes.c_int64]"
    n_read: int
    n_multiplications: int


def can_compile(plan: Plan, values: Sequence[Tensor]) -> bool:
    """Whether kernels run a plan on such tensors."""
    return can_call(values) and fits(plan)


class CompiledWalk:
    """A plan with so many channels, on tensors of a kind.

    Args:
        words: The program of the plan.
        left: The plan, and what of the weights belongs to it.
        channels: Those of every source and of every target.
        like: A tensor of the kind.
        sources: The shapes of the values.
        targets: The shapes of the results.
        mean: Whether the weights divide every sum by the number of its terms.
        n_graphs: How many there are, each walked through by itself.
        counts: (node sets, graphs): how many nodes of every set each has, if they differ.
        factors: (graphs, numbers): what every number of a row of the bundles that are means is multiplied by.
        memory: For large sources and targets, if there is some.
    """

    def __init__(
        self,
        words: Words,
        left: Present,
        channels: Channels,
        like: Tensor,
        sources: Sequence[tuple[int, ...]],
        targets: Sequence[tuple[int, ...]],
        *,
        mean: bool,
        n_graphs: int = 1,
        counts: Tensor | None = None,
        factors: Tensor | None = None,
        memory: tuple[Sequence[Share], Sequence[Share]] | None = None,
    ) -> None:
        library, kind = kernels(), TYPES[like.dtype]
        self._words, self._n_graphs, self._dtype = words, n_graphs, like.dtype
        self._sources, self._targets = tuple(sources), tuple(targets)
        self._forward: Kernel = getattr(library, f"bellnet_forward_{kind}")
        self._backward: Kernel = getattr(library, f"bellnet_backward_{kind}")
        whole = left.whole
        self._parameters: tuple[tuple[int, ...], ...] = (
            *((pair.n_maps, channels[0][pair.source], channels[1][pair.target]) for pair in whole.pairs),
            *((len(patterns), width) for patterns, width in zip(whole.written, channels[1], strict=True)),
        )
        self._is_whole = left.is_whole
        self._counts, self._factors, self._mean, self._memory = counts, factors, mean, memory

    def takes(self, values: Sequence[Tensor], weights: Sequence[Tensor], biases: Sequence[Tensor] | None) -> bool:
        """Whether all have the numbers in memory that kernels will look for."""
        return self._are_there([*values, *weights, *(biases or ())], (*self._sources, *self._parameters))

    def takes_back(self, gradients: Sequence[Tensor], kept: Sequence[Any]) -> bool:
        """The same for gradients and for what was read, which hooks may have made something else of."""
        n_read = self._n_graphs * self._words.n_read
        return self._are_there([*gradients, *kept], (*self._targets, (n_read,)))

    def _are_there(self, tensors: Sequence[Tensor], shapes: Sequence[tuple[int, ...]]) -> bool:
        return are_ordinary(tensors) and all(
            one.dtype == self._dtype and one.is_cpu and one.layout == torch.strided and one.shape == shape
            for one, shape in zip(tensors, shapes, strict=False)
        )

    def forward(
        self, values: Sequence[Tensor], weights: Sequence[Tensor], biases: Sequence[Tensor] | None, *, needed: bool
    ) -> tuple[list[Tensor], list[Tensor | None]]:
        """The results, and what was read."""
        values, weights = as_they_are(values), as_they_are(weights)
        like = values[0]
        results = self._empty(1, self._targets, like)
        read = like.new_empty(self._n_graphs * self._words.n_read)
        if biases is not None:
            biases = as_they_are(biases)
        self._run(self._forward, read, (values, results, weights, biases, None, None, None))
        return results, [read]

    def backward(
        self,
        gradients: Sequence[Tensor],
        values: Sequence[Tensor],
        weights: Sequence[Tensor],
        biases: Sequence[Tensor],
        kept: Sequence[Any],
        needs: Needs,
    ) -> Gradients:
        """The gradients of weights, biases and values, as far as they are needed."""
        values, weights, gradients = as_they_are(values), as_they_are(weights), self._laid_out(gradients)
        some = torch.Tensor.new_empty if self._is_whole else torch.Tensor.new_zeros
        found = Gradients(
            [some(one, one.shape) for one in weights] if needs.weights else None,
            [some(one, one.shape) for one in biases] if needs.biases else None,
            self._empty(0, [one.shape for one in values], values[0]) if needs.values else None,
        )
        self._run(self._backward, as_they_are(kept)[0], (values, gradients, weights, None, *found))
        return found

    def _laid_out(self, gradients: Sequence[Tensor]) -> list[Tensor]:
        """Gradients one number after the other: that of a sum is a single one."""
        if all(one.is_contiguous() for one in gradients):
            return as_they_are(gradients)
        copies = self._empty(1, [one.shape for one in gradients], gradients[0])
        return [copy.copy_(one) for copy, one in zip(copies, gradients, strict=True)]

    def _empty(self, side: int, shapes: Sequence[tuple[int, ...]], like: Tensor) -> list[Tensor]:
        """Sources or targets of such shapes, with any values."""
        if self._memory is None:
            return [like.new_empty(shape) for shape in shapes]
        both = zip(self._memory[side], shapes, strict=True)
        shared = [share.empty(n_rows, width, like) for share, (n_rows, width) in both]
        return [like.new_empty(shape) if one is None else one for one, shape in zip(shared, shapes, strict=True)]

    def _run(self, kernel: Kernel, read: Tensor, groups: Sequence[Sequence[Tensor] | None]) -> None:
        """Call a kernel.

        Args:
            kernel: Which one.
            read: Where what is read stands.
            groups: Sources, targets or their gradients, weights, biases, and the gradients of weights, biases and
                sources; None for what is not there, which is neither of the first three.
        """
        there = [pointer for group in groups if group is not None for pointer in map(Tensor.data_ptr, group)]
        numbers = (
            ctypes.addressof(self._words.words),
            self._n_graphs,
            n_threads(self._n_graphs * self._words.n_multiplications),
            self._mean,
            0 if self._counts is None else self._counts.data_ptr(),
            0 if self._factors is None else self._factors.data_ptr(),
            read.data_ptr(),
            *[group is not None for group in groups[3:]],
            *there,
        )
        kernel((ctypes.c_int64 * len(numbers))(*numbers))
