"""Plans that are run by compiled kernels: on a CPU, in single or double precision."""

import ctypes
from collections.abc import Sequence
from typing import Any, Protocol

import torch
from torch import Tensor

from bellnet.backends.buffers import Share
from bellnet.backends.kernel_program import fits
from bellnet.backends.level_matrices import Channels
from bellnet.backends.torch_backend import Gradients, Needs
from bellnet.kernels import are_disabled, calling
from bellnet.kernels.calling import Kernel, address, can_call, n_threads, pointer
from bellnet.kernels.structs import Program, RunCall
from bellnet.plan import Plan, RestrictedPlan

NO_GRADIENTS = Gradients(None, None, None)


class KernelProgram(Protocol):
    """The structs by which kernels run a plan; of each graph the number of saved values and of multiplications."""

    head: Program
    n_read: int
    n_multiplications: int


def can_compile(plan: Plan, values: Sequence[Tensor]) -> bool:
    """Whether kernels run a plan on such tensors."""
    return can_call(values) and fits(plan)


class KernelBackend:
    """A plan with so many channels, on tensors of a kind.

    Args:
        program: The program of the plan.
        left: The plan, and what of the weights belongs to it.
        channels: Those of every source and of every target.
        like: A tensor of the kind.
        sources: The shapes of the values.
        targets: The shapes of the results.
        mean: Whether the weights divide every sum by the number of its terms.
        n_graphs: How many there are, each walked through by itself.
        counts: (node sets, graphs): how many nodes of every set each has, if they differ.
        factors: (graphs, numbers): what every number of a row of the stacks that are means is multiplied by.
        memory: For large sources and targets, if there is some.
    """

    def __init__(
        self,
        program: KernelProgram,
        left: RestrictedPlan,
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
        self._program, self._n_graphs, self._dtype = program, n_graphs, like.dtype
        self._sources, self._targets = tuple(sources), tuple(targets)
        self._forward, self._backward = (calling.function(name, like.dtype) for name in ("forward", "backward"))
        whole = left.whole
        self._weights = tuple((pair.n_maps, channels[0][pair.source], channels[1][pair.target]) for pair in whole.pairs)
        self._biases = tuple(
            (len(patterns), width) for patterns, width in zip(whole.bias_patterns, channels[1], strict=True)
        )
        self._is_whole = left.is_whole
        self._mean, self._memory = mean, memory
        head, keep = program.head, list[object]()
        self._counts = pointer("the numbers of nodes", counts, (head.n_sets, n_graphs), torch.int64, keep)
        self._factors = pointer("the factors of means", factors, (n_graphs, head.n_factors), like.dtype, keep)
        self._tables = dict(enumerate(keep))  # the owners of the memory at these addresses

    def takes(self, values: Sequence[Tensor], weights: Sequence[Tensor], biases: Sequence[Tensor] | None) -> bool:
        """Whether all are plain tensors of the shapes and the dtype of the program."""
        shapes = (*self._sources, *self._weights, *self._biases)
        return self._fit([*values, *weights, *(biases or ())], shapes)

    def takes_back(self, gradients: Sequence[Tensor], kept: Sequence[Any]) -> bool:
        """The same for gradients and for what was read, which hooks may have replaced."""
        shapes = (*self._targets, (self._n_graphs * self._program.n_read,))
        return not are_disabled() and self._fit([*gradients, *kept], shapes)

    def _fit(self, tensors: Sequence[Tensor], shapes: Sequence[tuple[int, ...]]) -> bool:
        return all(calling.fits(one, shape, self._dtype) for one, shape in zip(tensors, shapes, strict=False))

    def forward(
        self, values: Sequence[Tensor], weights: Sequence[Tensor], biases: Sequence[Tensor] | None, *, needed: bool
    ) -> tuple[list[Tensor], list[Tensor | None]]:
        """The results, and what was read."""
        results = self._empty(1, self._targets, values[0])
        read = values[0].new_empty(self._n_graphs * self._program.n_read)
        self._run(self._forward, read, values, results, weights, biases)
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
        some = torch.Tensor.new_empty if self._is_whole else torch.Tensor.new_zeros
        found = Gradients(
            [some(one, one.shape) for one in weights] if needs.weights else None,
            [some(one, one.shape) for one in biases] if needs.biases else None,
            self._empty(0, [one.shape for one in values], values[0]) if needs.values else None,
        )
        self._run(self._backward, kept[0], values, self._laid_out(gradients), weights, None, found)
        return found

    def _laid_out(self, gradients: Sequence[Tensor]) -> list[Tensor]:
        """Contiguous gradients, in memory that is used again: that of a sum has one value in all places."""
        if all(one.is_contiguous() for one in gradients):
            return list(gradients)
        copies = self._empty(1, [one.shape for one in gradients], gradients[0])
        return [copy.copy_(one) for copy, one in zip(copies, gradients, strict=True)]

    def _empty(self, side: int, shapes: Sequence[tuple[int, ...]], like: Tensor) -> list[Tensor]:
        """Sources or targets of such shapes, with any values."""
        if self._memory is None:
            return [like.new_empty(shape) for shape in shapes]
        both = zip(self._memory[side], shapes, strict=True)
        shared = [share.empty(n_rows, width, like) for share, (n_rows, width) in both]
        return [like.new_empty(shape) if one is None else one for one, shape in zip(shared, shapes, strict=True)]

    def _run(
        self,
        kernel: Kernel,
        read: Tensor,
        values: Sequence[Tensor],
        targets: Sequence[Tensor],
        weights: Sequence[Tensor],
        biases: Sequence[Tensor] | None,
        found: Gradients = NO_GRADIENTS,
    ) -> None:
        """Call a kernel, forward or backward, with tensors that fit; targets are results, or their gradients."""
        keep, groups = list[object](), (values, targets, weights, biases, *found)
        addresses = [address(tensor, keep) for group in groups if group is not None for tensor in group]
        array = (ctypes.c_void_p * len(addresses))(*addresses)
        at, starts = ctypes.addressof(array), list[int | None]()
        for group in groups:
            starts.append(None if group is None else at)
            at += 0 if group is None else 8 * len(group)
        arguments = RunCall(
            ctypes.addressof(self._program.head),
            self._n_graphs,
            n_threads(self._n_graphs * self._program.n_multiplications),
            self._mean,
            self._counts,
            self._factors,
            address(read, keep),
            *starts,
        )
        calling.call(kernel, arguments)
