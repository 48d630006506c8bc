"""The backend of compiled kernels: on a CPU, in float32 or float64."""

import ctypes
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from bellnet.backends import buffers
from bellnet.backends.kernel_program import KernelProgram
from bellnet.backends.level_matrices import Channels, Gradients, Tensors
from bellnet.kernels import calling
from bellnet.kernels.structs import MOST_AXES, MOST_SETS, RunCall
from bellnet.plan import Plan, RestrictedPlan


def can_run(plan: Plan, values: Tensors) -> bool:
    """Whether kernels run a plan on such tensors."""
    if not calling.can_call(values) or len(plan.levels[0].rank) > MOST_SETS:
        return False
    return all(len(stack.axis_sets) <= MOST_AXES for tree in (plan.source, plan.target) for stack in tree.stacks)


class KernelBackend:
    """A plan with given channels, for tensors of one kind.

    Args:
        program: The program of the plan.
        restricted: The plan, and which weights belong to it.
        channels: Those of every source and of every target.
        like: A tensor of the kind.
        shapes: Those of the sources and of the targets.
        mean: Whether the weights are divided by the number of terms of their sums.
        n_graphs: How many are run one by one.
        counts: (node sets, graphs): the numbers of nodes, if they differ.
        factors: (graphs, values): what the contractions that are means are multiplied by.
        memory: For large sources and targets.
    """

    def __init__(
        self,
        program: KernelProgram,
        restricted: RestrictedPlan,
        channels: Channels,
        like: Tensor,
        shapes: tuple[Sequence[tuple[int, ...]], Sequence[tuple[int, ...]]],
        *,
        mean: bool,
        n_graphs: int = 1,
        counts: Tensor | None = None,
        factors: Tensor | None = None,
        memory: tuple[Sequence[buffers.SharedBuffer], Sequence[buffers.SharedBuffer]] | None = None,
    ) -> None:
        self._program, self._n_graphs, self._dtype, self._shapes = program, n_graphs, like.dtype, shapes
        self._forward, self._backward = (calling.function(name, like.dtype) for name in ("forward", "backward"))
        whole, n_saved = restricted.whole, n_graphs * program.n_saved
        self._expected = (
            *shapes[0],
            *((pair.n_maps, channels[0][pair.source], channels[1][pair.target]) for pair in whole.pairs),
            *((len(patterns), width) for patterns, width in zip(whole.bias_patterns, channels[1], strict=True)),
        )
        self._expected_back, self._n_saved = (*shapes[1], (n_saved,)), n_saved
        self._is_whole, self._mean, self._memory = restricted.is_whole, mean, memory
        self._n_multiplications = n_graphs * program.n_multiplications
        head, owners = program.head, list[object]()
        counts_pointer = calling.pointer("the numbers of nodes", counts, (head.n_sets, n_graphs), torch.int64, owners)
        factors_pointer = calling.pointer("factors of means", factors, (n_graphs, head.n_factors), like.dtype, owners)
        self._pointers, self._owners = (counts_pointer, factors_pointer), owners

    def accepts(self, values: Tensors, weights: Tensors, biases: Tensors | None) -> bool:
        """Whether all are plain tensors of the shapes and the dtype of the program."""
        return self._fit([*values, *weights, *(biases or ())], self._expected)

    def accepts_gradients(self, gradients: Tensors, saved: Sequence[Any]) -> bool:
        """The same for gradients and saved contractions, which hooks may have replaced."""
        return not calling.are_disabled() and self._fit([*gradients, *saved], self._expected_back)

    def _fit(self, tensors: Tensors, shapes: Sequence[tuple[int, ...]]) -> bool:
        return all(calling.fits(one, shape, self._dtype) for one, shape in zip(tensors, shapes, strict=False))

    def forward(
        self, values: Tensors, weights: Tensors, biases: Tensors | None, *, needs_values: bool
    ) -> tuple[list[Tensor], list[Tensor | None]]:
        """The results, and the contractions, which are saved for backward."""
        results = self._empty(1, self._shapes[1], values[0])
        contractions = values[0].new_empty(self._n_saved)
        self._run(self._forward, contractions, (values, results, weights, biases, None, None, None))
        return results, [contractions]

    def backward(
        self,
        gradients: Tensors,
        values: Tensors,
        weights: Tensors,
        biases: Tensors,
        saved: Sequence[Any],
        needs: tuple[bool, bool, bool],
    ) -> Gradients:
        """The gradients of weights, biases and values, None for those that are not needed."""
        make = torch.Tensor.new_empty if self._is_whole else torch.Tensor.new_zeros
        found = (
            [make(one, one.shape) for one in weights] if needs[0] else None,
            [make(one, one.shape) for one in biases] if needs[1] else None,
            self._empty(0, self._shapes[0], values[0]) if needs[2] else None,
        )
        if not all(one.is_contiguous() for one in gradients):  # the gradient of a sum is one expanded value
            copies = self._empty(1, self._shapes[1], gradients[0])
            gradients = [copy.copy_(one) for copy, one in zip(copies, gradients, strict=True)]
        self._run(self._backward, saved[0], (values, gradients, weights, None, *found))
        return found

    def _empty(self, side: int, shapes: Sequence[tuple[int, ...]], like: Tensor) -> list[Tensor]:
        """Uninitialised sources or targets."""
        if self._memory is None:
            return [like.new_empty(shape) for shape in shapes]
        return [
            like.new_empty(shape)
            if shape[0] * shape[1] * like.element_size() < buffers.LARGE
            else buffer.empty(shape[0], shape[1], like)
            for buffer, shape in zip(self._memory[side], shapes, strict=True)
        ]

    def _run(self, kernel: calling.Kernel, contractions: Tensor, groups: tuple[Tensors | None, ...]) -> None:
        """Call a kernel with tensors that fit; targets are results, or their gradients."""
        owners = list[object]()
        addresses = [calling.address(tensor, owners) for group in groups if group is not None for tensor in group]
        array = (ctypes.c_void_p * len(addresses))(*addresses)
        at, starts = ctypes.addressof(array), list[int | None]()
        for group in groups:
            starts.append(None if group is None else at)
            at += 0 if group is None else 8 * len(group)
        arguments = RunCall(
            ctypes.addressof(self._program.head),
            self._n_graphs,
            calling.n_threads(self._n_multiplications),
            self._mean,
            *self._pointers,
            calling.address(contractions, owners),
            *starts,
        )
        calling.call(kernel, arguments)
