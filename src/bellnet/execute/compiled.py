"""A plan on dense tensors, run by compiled kernels: on a CPU, in single or double precision."""

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from bellnet.execute.calling import are_ordinary, as_they_are, can_call, n_threads
from bellnet.execute.layout import Channels, Gradients, Needs
from bellnet.execute.nodes import Nodes
from bellnet.execute.program import Program, fits, program
from bellnet.kernels import TYPES, kernels
from bellnet.plan import Plan
from bellnet.tensors.keeping import making_constants

Kernel = Callable[[Any], int]

FEW_MULTIPLICATIONS = 2**17
"""So many are worth a thread."""


def can_compile(plan: Plan, values: Sequence[Tensor]) -> bool:
    """Whether kernels run a plan on such tensors."""
    return can_call(values) and fits(plan)


class CompiledWalk:
    """A plan with so many channels, for dense tensors over so many nodes.

    Args:
        plan: The plan.
        channels: Those of every source and of every target.
        nodes: How many nodes there are.
        values: What it runs on, or tensors like that.
        mean: Whether to divide every sum by the number of its terms.
    """

    def __init__(self, plan: Plan, channels: Channels, nodes: Nodes, values: Sequence[Tensor], *, mean: bool) -> None:
        like, library = values[0], kernels()
        self._program, self._n_graphs = program(plan, channels, nodes.lengths), len(like)
        kind = TYPES[like.dtype]
        self._forward: Kernel = getattr(library, f"bellnet_forward_{kind}")
        self._backward: Kernel = getattr(library, f"bellnet_backward_{kind}")
        self._shapes = tuple(
            (self._n_graphs, *[nodes.lengths[node_set] for node_set in root.axes], width)
            for root, width in zip(plan.target.roots, channels[1], strict=True)
        )
        self._dtype = like.dtype
        self._parameters: tuple[tuple[int, ...], ...] = (
            *((pair.n_maps, channels[0][pair.source], channels[1][pair.target]) for pair in plan.pairs),
            *((len(patterns), width) for patterns, width in zip(plan.written, channels[1], strict=True)),
        )
        self._n_multiplications = self._n_graphs * self._program.n_multiplications
        # Where all graphs are of one size the weights are divided, elsewhere what was read.
        self._counts = None if nodes.counts is None else nodes.counts.to(torch.int64).contiguous()
        self._factors = _factors(self._program, plan, nodes, like) if mean and nodes.counts is not None else None
        self._mean = mean and nodes.counts is None

    def takes(self, weights: Sequence[Tensor], biases: Sequence[Tensor] | None) -> bool:
        """Whether weights and biases have the numbers in memory that kernels will look for."""
        several = [*weights, *(biases or ())]
        return are_ordinary(several) and all(
            one.dtype == self._dtype and one.is_cpu and one.shape == shape
            for one, shape in zip(several, self._parameters, strict=False)
        )

    def forward(
        self, values: Sequence[Tensor], weights: Sequence[Tensor], biases: Sequence[Tensor] | None, *, needed: bool
    ) -> tuple[list[Tensor], list[Tensor | None]]:
        """The results, and what was read."""
        values, weights = as_they_are(values), as_they_are(weights)
        like = values[0]
        results = [like.new_empty(shape) for shape in self._shapes]
        read = like.new_empty(self._n_graphs * self._program.n_read)
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
        values, weights, gradients = map(as_they_are, (values, weights, gradients))
        found = Gradients(
            [torch.empty_like(one) for one in weights] if needs.weights else None,
            [torch.empty_like(one, memory_format=torch.contiguous_format) for one in biases] if needs.biases else None,
            [torch.empty_like(one) for one in values] if needs.values else None,
        )
        self._run(self._backward, kept[0], (values, gradients, weights, None, *found))
        return found

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
            ctypes.addressof(self._program.words),
            self._n_graphs,
            n_threads(self._n_multiplications, FEW_MULTIPLICATIONS),
            self._mean,
            0 if self._counts is None else self._counts.data_ptr(),
            0 if self._factors is None else self._factors.data_ptr(),
            read.data_ptr(),
            *[group is not None for group in groups[3:]],
            *there,
        )
        kernel((ctypes.c_int64 * len(numbers))(*numbers))


def _factors(program: Program, plan: Plan, nodes: Nodes, like: Tensor) -> Tensor:
    """(graphs, numbers): what every number of a row of the bundles that are means is multiplied by."""
    key = program, like.dtype
    if key not in nodes.kept:
        with making_constants():
            by_bundle, parts = nodes.factors(plan, like).factors or (), [like.new_zeros(len(like), 0)]
            for number, widths in program.factored:
                found = by_bundle[number]
                assert found is not None
                columns = found.reshape(len(like), len(widths))
                parts.append(columns.repeat_interleave(torch.tensor(widths, device="cpu"), 1).to(like.dtype))
            nodes.kept[key] = torch.cat(parts, 1)
    kept: Tensor = nodes.kept[key]
    return kept
