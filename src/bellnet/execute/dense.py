"""A plan on dense tensors: read, mix, write; and the same backwards.

The gradient is the same walk with source and target exchanged, and that of the weights is, level by level, what was
read of the input times what is read of the gradient. Tensors have their axes grouped by node set.
"""

from math import prod
from typing import NamedTuple

import torch
from torch import Tensor

from bellnet.execute.means import NO_MEANS, Means
from bellnet.execute.nodes import Nodes
from bellnet.execute.products import accumulate, in_order, pull
from bellnet.execute.strided import Strided, diagonal
from bellnet.plan import Branch, Plan, Swap

CHUNK_BYTES = 2**21
"""Graphs are taken through all moves a few at a time, about so many bytes of them, while the cache holds them."""

Matrices = list[list[Tensor]]
"""For every level and swap one."""


class Crossing(NamedTuple):
    """A level: from which bundle of the source, to which of the target, in which orders."""

    source: int
    target: int
    swaps: tuple[Swap, ...]


class Sides:
    """What a plan needs to run on dense tensors of any number of nodes."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.source, self.target = Strided(plan.source), Strided(plan.target)
        levels = zip(plan.source.levels, plan.target.levels, plan.levels, strict=True)
        self.levels = [Crossing(source, target, level.swaps) for source, target, level in levels]


class Dense:
    """A plan for dense tensors over so many nodes; with `folds_means` plain folds are means already, not sums."""

    def __init__(self, sides: Sides, nodes: Nodes, *, folds_means: bool = False) -> None:
        self.plan, self.sides, self.nodes = sides.plan, sides, nodes
        self.folds_means = folds_means

    def means(self, values: Tensor, *, by_weights: bool) -> Means:
        """How the sums of these values become means; the weights may see to it, if they can."""
        if by_weights and self.nodes.counts is None and values.dtype in (torch.float32, torch.float64):
            return Means(self.nodes.lengths)
        return Means(None, tuple([self.nodes.means(bundle, values) for bundle in self.plan.source.bundles]))

    def forward(
        self, values: Tensor, matrices: Matrices, *, bias: Tensor | None, means: Means
    ) -> tuple[Tensor, list[Tensor]]:
        """The result; and what was read but the values themselves, chunk after chunk of graphs."""
        axes = self.plan.target.axes
        width = matrices[0][0].shape[1] // self.sides.target.columns[self.sides.levels[0].target]
        shape = (values.shape[0], *[self.nodes.lengths[node_set] for node_set in axes], width)
        outside = self.nodes.outside(axes)
        chunks = _chunks(values.shape[0], (values.numel() + prod(shape)) * values.element_size())
        if chunks is None:
            return self._forward(values, matrices, bias, means, outside, shape, None)
        result, reads = values.new_empty(shape), []
        for graphs in chunks:
            part, mask = result[graphs], None if outside is None else outside[graphs]
            _, read = self._forward(values[graphs], matrices, bias, means.some(graphs), mask, part.shape, part)
            reads += read
        return result, reads

    def _forward(
        self,
        values: Tensor,
        matrices: Matrices,
        bias: Tensor | None,
        means: Means,
        outside: Tensor | None,
        shape: tuple[int, ...],
        into: Tensor | None,
    ) -> tuple[Tensor, list[Tensor]]:
        sides = self.sides
        read = means.scaled(sides.source.read(values), values.dtype)
        totals = read[sides.levels[0].source]
        bundles: list[Tensor | None] = [None] * len(sides.target.columns)
        result: Tensor | None = None
        for number, level in enumerate(sides.levels):
            if level.target == 0:  # the highest rank comes last
                result = sides.target.write(bundles, shape, into)
                if result is not None and outside is not None:
                    result.masked_fill_(outside, 0)
                if result is None and into is None and len(shape) > 2:
                    into = values.new_empty(shape)  # a result must not be a view
            mixed = accumulate(
                result,
                read[level.source],
                matrices[number],
                swaps=level.swaps,
                totals=totals,
                bias=None if number else bias,
                into=None if level.target else into,
            )
            if level.target == 0:
                return mixed, read[1:]
            bundles[level.target] = mixed
        result = sides.target.write(bundles, shape, into)
        assert result is not None
        return result if outside is None else result.masked_fill_(outside, 0), read[1:]

    def backward(
        self,
        gradient: Tensor,
        values: Tensor,
        read: list[Tensor],
        *,
        matrices: Matrices | None,
        of_matrices: Matrices,
        of_bias: Tensor | None,
        means: Means,
    ) -> Tensor | None:
        """The gradient of the values, if matrices are given; those of matrices and bias are added in place."""
        outside = self.nodes.outside(self.plan.target.axes)
        each = len(self.sides.source.columns) - 1
        if len(read) == each:
            return self._backward(gradient, [values, *read], matrices, means, outside, of_matrices, of_bias, None)
        result = None if matrices is None else torch.empty_like(values, memory_format=torch.contiguous_format)
        start = 0
        for first in range(0, len(read), each):
            graphs = slice(start, start + read[first].shape[0])
            start = graphs.stop
            self._backward(
                gradient[graphs],
                [values[graphs], *read[first : first + each]],
                matrices,
                means.some(graphs),
                None if outside is None else outside[graphs],
                of_matrices,
                of_bias,
                None if result is None else result[graphs],
            )
        return result

    def _backward(
        self,
        gradient: Tensor,
        read: list[Tensor],
        matrices: Matrices | None,
        means: Means,
        outside: Tensor | None,
        of_matrices: Matrices,
        of_bias: Tensor | None,
        into: Tensor | None,
    ) -> Tensor | None:
        sides, shape = self.sides, read[0].shape
        if outside is not None:
            gradient = gradient.masked_fill(outside, 0)
        pulled = NO_MEANS.scaled(sides.target.read(gradient), gradient.dtype)
        totals = pulled[sides.levels[0].target]
        if of_bias is not None:
            of_bias.add_(totals.sum(0))
        bundles: list[Tensor | None] = [None] * len(sides.source.columns)
        result: Tensor | None = None
        for number, level in enumerate(sides.levels):
            if level.source == 0 and matrices is not None:
                result = sides.source.write(means.scaled_back(bundles, gradient.dtype), shape, into)
            found = pull(
                result,
                pulled[level.target],
                read[level.source],
                matrices=None if matrices is None else matrices[number],
                swaps=level.swaps,
                totals=totals,
                of_matrices=of_matrices[number],
                into=None if level.source else into,
            )
            if level.source == 0:
                return found
            bundles[level.source] = found
        return None if matrices is None else sides.source.write(means.scaled_back(bundles, gradient.dtype), shape, into)

    def fold(self, number: int, column: int, branch: Branch, parent: Tensor) -> Tensor:
        """The fold in a column of a bundle of the source, from its parent."""
        if branch.kind == "diagonal":
            return diagonal(parent, branch.axes)
        axis = branch.axes[0] + 1
        return parent.mean(axis) if self.folds_means and self.nodes.lengths[branch.node_set] > 0 else parent.sum(axis)

    def spread(self, number: int, column: int, branch: Branch, child: Tensor) -> Tensor:
        """The transpose, for the target: what the parent of such a fold gets from it."""
        if branch.kind == "sum":
            sets = self.plan.target.bundles[branch.parent].axis_sets
            lengths = [self.nodes.lengths[node_set] for node_set in sets]
            return child.unsqueeze(branch.axes[0] + 1).expand(child.shape[0], *lengths, child.shape[-1])
        first, second = (axis + 1 for axis in branch.axes)
        return torch.diag_embed(child.movedim(first, -1), 0, first, second)

    def swapped(self, level: int, number: int, read: Tensor) -> Tensor:
        """What was read on a level, for one of its swaps."""
        return in_order(read, self.sides.levels[level].swaps[number]) if number else read

    def zeros(self, like: Tensor, width: int) -> Tensor:
        """A result without values."""
        return like.new_zeros(len(like), *[self.nodes.lengths[one] for one in self.plan.target.axes], width)

    def clean(self, result: Tensor) -> Tensor:
        """A result with zeros where there is no node."""
        return self.nodes.clean(result, self.plan.target.axes)


def _chunks(n_graphs: int, n_bytes: int) -> list[slice] | None:
    """Some graphs after the others; None for all at once."""
    some = n_graphs * CHUNK_BYTES // max(n_bytes, 1)
    if n_graphs <= 1 or some >= n_graphs:
        return None
    some = max(some, 1)
    return [slice(start, min(start + some, n_graphs)) for start in range(0, n_graphs, some)]
