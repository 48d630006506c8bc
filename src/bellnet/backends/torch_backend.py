"""The backend of torch operations: on any device and for any dtype, with a gradient of its own, or functional.

Forward, the contractions of the source are computed, mixed and broadcast to the target. Backward, source and target are
exchanged, and the contractions of both are multiplied for the gradient of the matrices. Autograd alone would save the
rows of every product and add up full-size gradients one by one.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor

from bellnet.backends.level_matrices import Channels, Gradients, Tensors, level_matrices
from bellnet.plan import Contraction, ContractionStack, ContractionTree, Permutation, Plan, RestrictedPlan, StackStep

FEW_VALUES = 2**16
"""Matrices of at most this many values, or as many as the input, are saved for backward; others are computed again."""
Matrices = list[list[Tensor]]
"""One for every level and permutation."""


class Primitives(Protocol):
    """The operations of a layout, in place unless they are to be traced and differentiated.

    `side` is 0 for the source of a plan and 1 for its target. Backward the two are exchanged and permutations inverted.
    """

    def contract(self, side: int, number: int, step: StackStep, parent: Tensor) -> Tensor:
        """The columns of a step of stack `number`, from those of its parent; sums in half precision are float32."""

    def broadcast(self, side: int, number: int, step: StackStep, child: Tensor, onto: Tensor | None) -> Tensor:
        """The transpose for one column, added to `onto` unless it is None."""

    def permute(self, level: int, number: int, rows: Tensor, *, back: bool) -> Tensor:
        """The contractions of a level with permuted axes, at the rows of the other side."""

    def zeros(self, side: int, root: int, like: Tensor, width: int) -> Tensor:
        """A source or target of zeros."""

    def clean(self, side: int, root: int, tensor: Tensor) -> Tensor:
        """A source or target with zeros where there is no node."""


class Means(NamedTuple):
    """How sums become means; they do not if neither is given.

    Attributes:
        lengths: For every node set the number of nodes that the weights are divided by.
        factors: For every stack of the source (..., columns, 1) what it is multiplied by, None for nothing; for columns
            of different widths (..., width).
    """

    lengths: tuple[int, ...] | None = None
    factors: tuple[Tensor | None, ...] | None = None

    def over_columns(self, tree: ContractionTree, channels: Sequence[int]) -> "Means":
        """The same for several tensors with different channels."""
        if self.factors is None or len(set(channels)) == 1:
            return self
        return Means(None, tuple(map(partial(_repeat_factors, channels), tree.stacks, self.factors)))

    def scaled(self, stacks: Tensors, dtype: torch.dtype) -> list[Tensor]:
        """Every stack multiplied by its factors, in a dtype."""
        if self.factors is not None:
            stacks = [scale(one, factors) for one, factors in zip(stacks, self.factors, strict=True)]
        return [one if one.dtype == dtype else one.to(dtype) for one in stacks]


def _repeat_factors(channels: Sequence[int], stack: ContractionStack, factors: Tensor | None) -> Tensor | None:
    if factors is None:
        return None
    columns = zip(factors.unbind(-2), stack.tensors, strict=True)
    return torch.cat([one.expand(*one.shape[:-1], channels[tensor]) for one, tensor in columns], -1)


def scale(stack: Tensor, factors: Tensor | None) -> Tensor:
    """The columns of a stack multiplied by their factors."""
    if factors is None:
        return stack
    if factors.ndim == stack.ndim:
        return stack * factors
    n_columns = factors.shape[-2]
    columns = stack.reshape(*stack.shape[:-1], n_columns, stack.shape[-1] // n_columns)
    return (columns * factors).flatten(-2)


def permute_axes(tensor: Tensor, order: Permutation) -> Tensor:
    """A view with the axes between batch and channels in another order."""
    return tensor.permute(0, *[axis + 1 for axis in order], tensor.ndim - 1)


def contract_tree(tree: ContractionTree, side: int, primitives: Primitives, roots: Tensors) -> list[Tensor]:
    """All stacks, roots first; sums are not divided."""
    widths, stacks = [one.shape[-1] for one in roots], list(roots)
    for number, stack in enumerate(tree.stacks[len(roots) :], len(roots)):
        parts = []
        for step in stack.steps:
            above, stop = tree.stacks[step.parent], step.parent_start + step.n_columns
            start, width = above.width(widths, 0, step.parent_start), above.width(widths, step.parent_start, stop)
            parts.append(primitives.contract(side, number, step, stacks[step.parent].narrow(-1, start, width)))
        stacks.append(parts[0] if len(parts) == 1 else torch.cat(parts, -1))
    return stacks


def broadcast_tree(
    tree: ContractionTree,
    side: int,
    primitives: Primitives,
    stacks: dict[int, Tensor],
    widths: Sequence[int],
    like: Tensor,
) -> list[Tensor]:
    """The transpose: the roots of these widths, from the stacks of all levels."""
    columns: dict[tuple[int, int], Tensor] = {}
    for number, stack in stacks.items():
        column_widths = [widths[tensor] for tensor in tree.stacks[number].tensors]
        parts = [stack] if len(column_widths) == 1 else torch.split(stack, column_widths, -1)
        columns |= {(number, column): part for column, part in enumerate(parts)}
    for number in range(len(tree.stacks) - 1, len(widths) - 1, -1):
        for step in tree.stacks[number].steps:
            for offset in range(step.n_columns):
                child = columns.get((number, step.start + offset))
                if child is not None:
                    parent = step.parent, step.parent_start + offset
                    columns[parent] = primitives.broadcast(side, number, step, child, columns.get(parent))
    return [
        primitives.zeros(side, root, like, width) if (found := columns.get((root, 0))) is None else found
        for root, width in enumerate(widths)
    ]


class TorchBackend:
    """A plan with given channels, run by the primitives of a layout.

    Args:
        restricted: The plan, and which weights belong to it.
        channels: Those of every source and of every target.
        primitives: The operations of the layout, in place.
        means: How sums become means.
        device: Of the weights.
    """

    def __init__(
        self, restricted: RestrictedPlan, channels: Channels, primitives: Primitives, means: Means, device: torch.device
    ) -> None:
        self.plan, self.channels, self.primitives = restricted.plan, channels, primitives
        self.means = means.over_columns(restricted.plan.source, channels[0])
        self.matrices = level_matrices(restricted, channels, device)

    def accepts(self, values: Tensors, weights: Tensors, biases: Tensors | None) -> bool:
        """Always: torch operations validate their inputs."""
        return True

    def accepts_gradients(self, gradients: Tensors, saved: Sequence[Any]) -> bool:
        """Not for gradients of other classes, which may have another meaning."""
        return all(type(one) is Tensor for one in gradients)

    def forward(
        self, values: Tensors, weights: Tensors, biases: Tensors | None, *, needs_values: bool
    ) -> tuple[list[Tensor], list[Tensor | None]]:
        """The results, and what is saved for backward: the matrices if they are small, and the contractions."""
        plan, primitives, like = self.plan, self.primitives, values[0]
        gathered = self.matrices.gather(weights, self.means.lengths)
        stacks = self.means.scaled(contract_tree(plan.source, 0, primitives, values), like.dtype)
        mixed = self._mix(stacks, self.matrices.views(gathered), back=False)
        if biases is not None:
            mixed[plan.target.levels[0]].add_(self.matrices.gather_biases(biases))
        results = broadcast_tree(plan.target, 1, primitives, mixed, self.channels[1], like)
        is_saved = needs_values and gathered.numel() <= max(like.numel(), FEW_VALUES)
        results = [primitives.clean(1, root, result) for root, result in enumerate(results)]
        return results, [gathered if is_saved else None, *stacks[len(values) :]]

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
        plan, matrices, lengths, dtype = self.plan, self.matrices, self.means.lengths, values[0].dtype
        gathered, stacks = saved[0], [*values, *saved[1:]]
        # Contiguous, or every product would copy them.
        gradients = [self.primitives.clean(1, root, one).contiguous() for root, one in enumerate(gradients)]
        grad_stacks = [one.to(dtype) for one in contract_tree(plan.target, 1, self.primitives, gradients)]
        grad_weights = grad_biases = grad_values = None
        if needs[0]:
            grad_weights = matrices.scatter(self._grad_matrices(stacks, grad_stacks), lengths, weights)
        if needs[1]:
            lowest = grad_stacks[plan.target.levels[0]]
            grad_biases = matrices.scatter_biases(lowest.reshape(-1, lowest.shape[-1]).sum(0), biases)
        if needs[2]:
            gathered = matrices.gather(weights, lengths) if gathered is None else gathered
            transposed = [[matrix.mT for matrix in of_level] for of_level in matrices.views(gathered)]
            mixed = self._mix(grad_stacks, transposed, back=True)
            if self.means.factors is not None:
                mixed = {one: scale(stack, self.means.factors[one]).to(dtype) for one, stack in mixed.items()}
            grad_values = broadcast_tree(plan.source, 0, self.primitives, mixed, self.channels[0], values[0])
        return grad_weights, grad_biases, grad_values

    def _mix(self, stacks: Tensors, matrices: Matrices, *, back: bool) -> dict[int, Tensor]:
        """The products of all levels, for the stacks of the other side."""
        found = {}
        ends = self.plan.source.levels, self.plan.target.levels
        for level, (source, target) in enumerate(zip(*(reversed(ends) if back else ends), strict=True)):
            inner, outer = matrices[level][0].shape
            given = stacks[source] if inner <= outer else stacks[source].contiguous()
            rows = self.primitives.permute(level, 0, given, back=back)
            # Made in its shape: autograd must not be given a view.
            total = found[target] = rows.new_empty((*rows.shape[:-1], outer))
            torch.mm(rows.reshape(-1, inner), matrices[level][0], out=total.view(-1, outer))
            for number, matrix in enumerate(matrices[level][1:], 1):
                if inner <= outer:
                    rows = self.primitives.permute(level, number, given, back=back)
                    total.view(-1, outer).addmm_(rows.reshape(-1, inner), matrix)
                else:  # the products are narrower and are permuted instead
                    product = (given.view(-1, inner) @ matrix).view(*given.shape[:-1], outer)
                    total.add_(self.primitives.permute(level, number, product, back=back))
        return found

    def _grad_matrices(self, stacks: Tensors, grad_stacks: Tensors) -> Tensor:
        """The gradients of all matrices: contractions of the values times contractions of the gradients."""
        gathered = self.matrices.zeros(grad_stacks[0])
        ends = zip(self.plan.source.levels, self.plan.target.levels, strict=True)
        for level, ((source, target), of_level) in enumerate(zip(ends, self.matrices.views(gathered), strict=True)):
            values, gradients = stacks[source], grad_stacks[target]
            for number, into in enumerate(of_level):
                left, right = values, gradients
                if into.shape[0] <= into.shape[1]:  # the narrower one is permuted
                    left = self.primitives.permute(level, number, values, back=False)
                else:
                    right = self.primitives.permute(level, number, gradients, back=True)
                into.addmm_(left.reshape(-1, into.shape[0]).mT, right.reshape(-1, into.shape[1]))
        return gathered


def run_functional(
    plan: Plan, primitives: Primitives, values: Tensors, *, weights: Tensors, biases: Tensors | None, means: Means
) -> list[Tensor]:
    """Run a plan in operations that can be traced, transformed and differentiated; `means` has no lengths."""
    stacks = means.scaled(contract_tree(plan.source, 0, primitives, values), values[0].dtype)
    if plan.has_gaps:  # permutations that a symmetry makes equal are missing for some contractions of a level
        weights = [torch.cat([weight, torch.zeros_like(weight[:1])]) for weight in weights]
    widths = [weight.shape[-1] for weight in weights[: len(plan.target.roots)]]
    mixed: dict[int, Tensor] = {}
    for level, (source, target) in enumerate(zip(plan.source.levels, plan.target.levels, strict=True)):
        for number in range(len(plan.levels[level].permutations)):
            rows = primitives.permute(level, number, stacks[source], back=False)
            product = rows @ _functional_matrix(plan, level, number, weights)
            mixed[target] = mixed[target] + product if target in mixed else product
        if level == 0 and biases is not None:
            mixed[target] = mixed[target] + torch.cat([bias.reshape(-1) for bias in biases])
    results = broadcast_tree(plan.target, 1, primitives, mixed, widths, values[0])
    return [primitives.clean(1, root, result) for root, result in enumerate(results)]


def _functional_matrix(plan: Plan, level: int, number: int, weights: Tensors) -> Tensor:
    """The matrix of a level and permutation, from a block for every pair of a source and a target."""
    sources, targets = _ranges(plan.levels[level].contractions), _ranges(plan.levels[level].broadcasts)
    plane, n_targets = plan.levels[level].index[number], len(plan.target.roots)
    rows = []
    for source, (start, stop) in sources.items():
        blocks = []
        for target, (first, last) in targets.items():
            pair = source * n_targets + target
            weight, before = weights[pair], plan.pairs[pair].start
            numbers = [one for row in plane[start:stop] for one in row[first:last]]
            maps = [len(weight) - 1 if one is None else one - before for one in numbers]
            block = weight.index_select(0, torch.tensor(maps, device=weight.device))
            block = block.reshape(stop - start, last - first, *weight.shape[1:]).transpose(1, 2)
            blocks.append(block.reshape((stop - start) * weight.shape[1], -1))
        rows.append(blocks[0] if len(blocks) == 1 else torch.cat(blocks, 1))
    return rows[0] if len(rows) == 1 else torch.cat(rows)


def _ranges(contractions: Sequence[Contraction]) -> dict[int, tuple[int, int]]:
    """For every tensor with some of these contractions the first of them and the end."""
    ranges: dict[int, tuple[int, int]] = {}
    for position, contraction in enumerate(contractions):
        ranges[contraction.tensor] = ranges.get(contraction.tensor, (position, position))[0], position + 1
    return ranges
