"""A plan on dense tensors: some graphs after the others, so many that the cache holds them.

Tensors have their axes grouped by node set.
"""

from math import prod
from typing import Any

import torch
from torch import Tensor

from bellnet.execute.dense_moves import DenseMoves
from bellnet.execute.level_matrices import LevelMatrices
from bellnet.execute.means import NO_MEANS, Means
from bellnet.execute.nodes import Nodes
from bellnet.execute.small import SmallWalk
from bellnet.execute.unrolled import unroll
from bellnet.plan import Plan

CHUNK_BYTES = 2**22
"""Graphs are taken through all moves a few at a time, about so many bytes of them."""

SMALL_BYTES, SMALL_ROWS = 2**20, 2**14
"""Tensors of fewer bytes and rows, once for every swap, are worth fewer operations rather than less memory."""


class Dense:
    """The layout of tensors that hold a value for every tuple of nodes."""

    has_axes = True

    def __init__(self, nodes: Nodes) -> None:
        self.nodes = nodes

    def key(self, values: Tensor) -> object:
        """What is prepared depends on lengths and values of a kind; on the sizes of padded graphs as well."""
        nodes = self.nodes
        return None if nodes.counts is not None else (nodes.lengths, values.shape, values.dtype, values.device)

    def present(self, plan: Plan) -> None:
        """All maps have something to do."""

    def walk(self, plan: Plan, channels: tuple[int, int], values: Tensor) -> "SmallWalk | DenseWalk":
        """What runs a plan with so many channels on these values."""
        if _is_small(plan, channels, values):
            return SmallWalk(plan, self.nodes, values)
        return DenseWalk(plan, channels, self.nodes)

    def moves(self, plan: Plan, values: Tensor, *, mean: bool) -> tuple[DenseMoves, Means]:
        """The moves in plain operations, and how the sums of these values become means if they are wanted."""
        by_counts = mean and self.nodes.counts is not None
        means = self.nodes.factors(plan, values) if by_counts else NO_MEANS
        return DenseMoves(plan, self.nodes, folds_means=mean and not by_counts), means


class DenseWalk:
    """A plan with so many channels, for large dense tensors over so many nodes."""

    is_small = False

    def __init__(self, plan: Plan, channels: tuple[int, int], nodes: Nodes) -> None:
        self.plan, self.nodes = plan, nodes
        self._code = unroll(plan, channels)
        self._width = channels[1]

    def means(self, values: Tensor) -> Means:
        """How the sums of these values become means; the weights see to it, if they can."""
        if self.nodes.counts is None and values.dtype in (torch.float32, torch.float64):
            return Means(self.nodes.lengths)
        return self.nodes.factors(self.plan, values)

    def views(self, matrices: LevelMatrices, gathered: Tensor) -> Any:
        """The matrices as they are used."""
        return matrices.apart(gathered)

    def forward(
        self, values: Tensor, matrices: Any, *, bias: Tensor | None, means: Means
    ) -> tuple[Tensor, list[Tensor]]:
        """The result; and what was read but the values themselves, chunk after chunk of graphs."""
        run, lengths = self._code.forward, self.nodes.lengths
        inside = self.nodes.bits(self.plan.target.axes, values.dtype)
        shape = (len(values), *[lengths[node_set] for node_set in self.plan.target.axes], self._width)
        chunks = _chunks(len(values), (values.numel() + prod(shape)) * values.element_size())
        if chunks is None:
            result, reads = run(values, lengths, matrices, bias, means, inside, None)
            return result, reads
        result, reads = values.new_empty(shape), []
        for graphs in chunks:
            mask = None if inside is None else inside[graphs]
            _, read = run(values[graphs], lengths, matrices, bias, means.some(graphs), mask, result[graphs])
            reads += read
        return result, reads

    def backward(
        self,
        gradient: Tensor,
        values: Tensor,
        read: list[Tensor],
        *,
        matrices: Any,
        of_matrices: Any,
        of_bias: Tensor | None,
        means: Means,
    ) -> Tensor | None:
        """The gradient of the values, if matrices are given; those of matrices and bias are added in place."""
        run = self._code.backward_to_weights if matrices is None else self._code.backward
        lengths, inside = self.nodes.lengths, self.nodes.bits(self.plan.target.axes, values.dtype)
        of = of_matrices, of_bias
        each = self._code.n_kept
        if len(read) == each:
            result: Tensor | None = run(gradient, [values, *read], lengths, matrices, means, inside, None, *of)
            return result
        result = None if matrices is None else torch.empty_like(values, memory_format=torch.contiguous_format)
        start = 0
        for first in range(0, len(read), each):
            graphs = slice(start, start + len(read[first]))
            start = graphs.stop
            mask, into = None if inside is None else inside[graphs], None if result is None else result[graphs]
            there = [values[graphs], *read[first : first + each]]
            run(gradient[graphs], there, lengths, matrices, means.some(graphs), mask, into, *of)
        return result


def _is_small(plan: Plan, channels: tuple[int, int], values: Tensor) -> bool:
    """Whether operations count more than what they work on."""
    n_swaps, n_rows = len(plan.levels[-1].swaps), values.numel() // max(channels[0], 1)
    n_bytes = values.numel() * values.element_size()
    if n_bytes * n_swaps > SMALL_BYTES or n_rows * n_swaps > SMALL_ROWS:
        return False
    return values.dtype in (torch.float32, torch.float64) and not values.is_meta


def _chunks(n_graphs: int, n_bytes: int) -> list[slice] | None:
    """Some graphs after the others; None for all at once."""
    some = n_graphs * CHUNK_BYTES // max(n_bytes, 1)
    if n_graphs <= 1 or some >= n_graphs:
        return None
    some = max(some, 1)
    return [slice(start, min(start + some, n_graphs)) for start in range(0, n_graphs, some)]
