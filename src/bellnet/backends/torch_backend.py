"""What a layout does to tensors over tuples of nodes: the moves that plans are made of.

Every move has a side: 0 for the source of a plan, 1 for its target. Backwards the two are exchanged, and with them the
way of every swap.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor

from bellnet.backends.level_matrices import Channels, level_matrices
from bellnet.plan import Contraction, ContractionStack, ContractionTree, Permutation, Plan, RestrictedPlan, StackStep


class Primitives(Protocol):
    """The moves of a layout. They may write in place, unless they are to be differentiated and traced."""

    def contraction(self, side: int, number: int, branch: StackStep, parent: Tensor) -> Tensor:
        """The contractions of a branch of a stack, from those of its parent; half precision sums are widened."""

    def spread(self, side: int, number: int, branch: StackStep, child: Tensor, onto: Tensor | None) -> Tensor:
        """The transpose for one contraction: what its parent gets from it, and what that has already, if anything."""

    def permuted(self, level: int, number: int, rows: Tensor, *, back: bool) -> Tensor:
        """What was read on a level, for one of its permutations, where the other side has it."""

    def zeros(self, side: int, root: int, like: Tensor, width: int) -> Tensor:
        """A whole tensor without values."""

    def clean(self, side: int, root: int, whole: Tensor) -> Tensor:
        """A whole tensor with zeros where there is no node."""


class Needs(NamedTuple):
    """Whose gradients are needed."""

    weights: bool
    biases: bool
    values: bool


class Gradients(NamedTuple):
    """Those of all weights, of all biases and of all values; None where they were not needed."""

    weights: Sequence[Tensor] | None
    biases: Sequence[Tensor] | None
    values: Sequence[Tensor] | None


class Means(NamedTuple):
    """By what sums are divided; nothing if neither is given.

    Attributes:
        lengths: For every node set the number of nodes that the weights divide by.
        factors: For every stack of the source (..., columns, 1) what it is multiplied by, None for one everywhere; for
            columns of different widths (..., width).
    """

    lengths: tuple[int, ...] | None = None
    factors: tuple[Tensor | None, ...] | None = None

    def over_columns(self, tree: ContractionTree, channels: Sequence[int]) -> "Means":
        """The same for the channels of several tensors, which need not be equal."""
        if self.factors is None or len(set(channels)) == 1:
            return self
        return Means(None, tuple(map(partial(_repeated, channels), tree.stacks, self.factors)))

    def scaled(self, stacks: Sequence[Tensor], dtype: torch.dtype) -> list[Tensor]:
        """Every stack with its columns multiplied by their factors, and of a dtype."""
        if self.factors is not None:
            stacks = [scale(one, factors) for one, factors in zip(stacks, self.factors, strict=True)]
        elif dtype not in (torch.float16, torch.bfloat16):
            return list(stacks)
        return [one if one.dtype == dtype else one.to(dtype) for one in stacks]


NO_MEANS = Means()
"""Sums stay sums."""


def scale(stack: Tensor, factors: Tensor | None) -> Tensor:
    """The columns of a stack multiplied by their factors."""
    if factors is None:
        return stack
    if factors.ndim == stack.ndim:
        return stack * factors
    several = factors.shape[-2]
    apart = stack.reshape(*stack.shape[:-1], several, stack.shape[-1] // several)
    return (apart * factors).flatten(-2)


def _repeated(channels: Sequence[int], stack: ContractionStack, factors: Tensor | None) -> Tensor | None:
    if factors is None:
        return None
    columns = zip(factors.unbind(-2), stack.tensors, strict=True)
    return torch.cat([one.expand(*one.shape[:-1], channels[tensor]) for one, tensor in columns], -1)


def inverse(order: Permutation) -> Permutation:
    """What brings axes back that were brought into an order."""
    return tuple(map(order.index, range(len(order))))


def in_order(tensor: Tensor, order: Permutation) -> Tensor:
    """The axes between batch and channels in another order, as a view."""
    return tensor.permute(0, *[axis + 1 for axis in order], tensor.ndim - 1)


def contract_tree(tree: ContractionTree, side: int, moves: Primitives, wholes: Sequence[Tensor]) -> list[Tensor]:
    """All stacks, the whole tensors first; sums are not divided."""
    widths, stacks = [one.shape[-1] for one in wholes], list(wholes)
    for number, stack in enumerate(tree.stacks[len(wholes) :], len(wholes)):
        parts = []
        for branch in stack.steps:
            above, stop = tree.stacks[branch.parent], branch.parent_start + branch.n_columns
            start, width = above.width(widths, 0, branch.parent_start), above.width(widths, branch.parent_start, stop)
            parts.append(moves.contraction(side, number, branch, stacks[branch.parent].narrow(-1, start, width)))
        stacks.append(parts[0] if len(parts) == 1 else torch.cat(parts, -1))
    return stacks


def broadcast_tree(
    tree: ContractionTree, side: int, moves: Primitives, stacks: dict[int, Tensor], widths: Sequence[int], like: Tensor
) -> list[Tensor]:
    """The whole tensors of such widths, from what levels gave to stacks."""
    contractions: dict[tuple[int, int], Tensor] = {}
    for number, stack in stacks.items():
        columns = [widths[tensor] for tensor in tree.stacks[number].tensors]
        parts = [stack] if len(columns) == 1 else torch.split(stack, columns, -1)
        contractions |= {(number, column): part for column, part in enumerate(parts)}
    for number in range(len(tree.stacks) - 1, len(widths) - 1, -1):
        for branch in tree.stacks[number].steps:
            for offset in range(branch.n_columns):
                child = contractions.get((number, branch.start + offset))
                if child is not None:
                    parent = branch.parent, branch.parent_start + offset
                    contractions[parent] = moves.spread(side, number, branch, child, contractions.get(parent))
    wholes = [contractions.get((root, 0)) for root in range(len(widths))]
    return [
        moves.zeros(side, root, like, width) if whole is None else whole
        for root, (whole, width) in enumerate(zip(wholes, widths, strict=True))
    ]


FEW_NUMBERS = 2**16
"""Matrices of so many numbers, or of no more than the input has, are kept for the gradient; others are made again."""

Matrices = list[list[Tensor]]
"""For every level and swap one."""


class TorchBackend:
    """A plan with so many channels, run by the moves of a layout.

    Args:
        left: The plan, and what of the weights belongs to it.
        channels: Those of every source and of every target.
        moves: What the layout does, in place where it can.
        means: How sums become means.
        device: Where the weights are.
    """

    def __init__(
        self, left: RestrictedPlan, channels: Channels, moves: Primitives, means: Means, device: torch.device
    ) -> None:
        self.plan, self.channels, self.moves = left.plan, channels, moves
        self.means = means.over_columns(left.plan.source, channels[0])
        self.matrices = level_matrices(left, channels, device)

    def takes(self, values: Sequence[Tensor], weights: Sequence[Tensor], biases: Sequence[Tensor] | None) -> bool:
        """Torch's operations see for themselves what they are given."""
        return True

    def takes_back(self, gradients: Sequence[Tensor], kept: Sequence[Any]) -> bool:
        """So they do backwards, but for gradients of other classes, which may mean something else."""
        return all(type(one) is Tensor for one in gradients)

    def forward(
        self, values: Sequence[Tensor], weights: Sequence[Tensor], biases: Sequence[Tensor] | None, *, needed: bool
    ) -> tuple[list[Tensor], list[Tensor | None]]:
        """The results; and what is kept for the gradient: the matrices if they are small, and what was read."""
        plan, moves, like = self.plan, self.moves, values[0]
        gathered = self.matrices.gather(weights, self.means.lengths)
        read = self.means.scaled(contract_tree(plan.source, 0, moves, values), like.dtype)
        written = self._mix(read, self.matrices.apart(gathered), back=False)
        if biases is not None:
            written[plan.target.levels[0]].add_(self.matrices.gather_biases(biases))
        results = broadcast_tree(plan.target, 1, moves, written, self.channels[1], like)
        are_small = gathered.numel() <= max(like.numel(), FEW_NUMBERS)
        kept = [gathered if needed and are_small else None, *read[len(values) :]]
        return [moves.clean(1, root, result) for root, result in enumerate(results)], kept

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
        plan, matrices, lengths, dtype = self.plan, self.matrices, self.means.lengths, values[0].dtype
        gathered, read = kept[0], [*values, *kept[1:]]
        clean = [self.moves.clean(1, root, one) for root, one in enumerate(gradients)]
        pulled = [one.to(dtype) for one in contract_tree(plan.target, 1, self.moves, clean)]
        of_weights = of_biases = of_values = None
        if needs.weights:
            of_weights = matrices.scatter(self._paired(read, pulled), lengths, weights)
        if needs.biases:
            lowest = pulled[plan.target.levels[0]]
            of_biases = matrices.scatter_biases(lowest.reshape(-1, lowest.shape[-1]).sum(0), biases)
        if needs.values:
            gathered = matrices.gather(weights, lengths) if gathered is None else gathered
            transposed = [[matrix.mT for matrix in of_level] for of_level in matrices.apart(gathered)]
            written = self._mix(pulled, transposed, back=True)
            if self.means.factors is not None:
                written = {one: scale(stack, self.means.factors[one]).to(dtype) for one, stack in written.items()}
            of_values = broadcast_tree(plan.source, 0, self.moves, written, self.channels[0], values[0])
        return Gradients(of_weights, of_biases, of_values)

    def _mix(self, read: Sequence[Tensor], matrices: Matrices, *, back: bool) -> dict[int, Tensor]:
        """What levels make of what was read, for every stack of the other side that is on one."""
        found = {}
        ends = self.plan.source.levels, self.plan.target.levels
        for level, (source, target) in enumerate(zip(*(reversed(ends) if back else ends), strict=True)):
            inner, outer = matrices[level][0].shape
            given = read[source] if inner <= outer else read[source].contiguous()
            rows = self.moves.permuted(level, 0, given, back=back)
            # Made in its shape: what autograd is given must not be a view.
            total = found[target] = rows.new_empty((*rows.shape[:-1], outer))
            torch.mm(rows.reshape(-1, inner), matrices[level][0], out=total.view(-1, outer))
            for number, matrix in enumerate(matrices[level][1:], 1):
                if inner <= outer:
                    rows = self.moves.permuted(level, number, given, back=back)
                    total.view(-1, outer).addmm_(rows.reshape(-1, inner), matrix)
                else:  # products are narrower than what they are made of
                    product = (given.view(-1, inner) @ matrix).view(*given.shape[:-1], outer)
                    total.add_(self.moves.permuted(level, number, product, back=back))
        return found

    def _paired(self, read: Sequence[Tensor], pulled: Sequence[Tensor]) -> Tensor:
        """The gradients of all matrices: what was read of the values times what was read of the gradients."""
        gathered = self.matrices.zeros(pulled[0])
        ends = zip(self.plan.source.levels, self.plan.target.levels, strict=True)
        for level, ((source, target), of_level) in enumerate(zip(ends, self.matrices.apart(gathered), strict=True)):
            values, gradients = read[source], pulled[target]
            for number, into in enumerate(of_level):
                # Of the two the narrower one is brought to where the other has its rows.
                if into.shape[0] <= into.shape[1]:
                    left, right = self.moves.permuted(level, number, values, back=False), gradients
                else:
                    left, right = values, self.moves.permuted(level, number, gradients, back=True)
                into.addmm_(left.reshape(-1, into.shape[0]).mT, right.reshape(-1, into.shape[1]))
        return gathered


def run_plain(
    plan: Plan,
    moves: Primitives,
    values: Sequence[Tensor],
    *,
    weights: Sequence[Tensor],
    biases: Sequence[Tensor] | None,
    means: Means,
) -> list[Tensor]:
    """Run a plan; means by lengths are not taken, since the weights are used as they are.

    Args:
        plan: The plan.
        moves: What a layout does, nothing of it in place.
        values: For every source.
        weights: For every pair of a source and a target (n_maps, in, out).
        biases: For every target (n_biases, out).
        means: What makes means of sums.

    Returns:
        For every target.
    """
    read = means.scaled(contract_tree(plan.source, 0, moves, values), values[0].dtype)
    if plan.has_gaps:  # permutations that a symmetry makes equal are missing from some reads of a level
        weights = [torch.cat([weight, torch.zeros_like(weight[:1])]) for weight in weights]
    widths = [weight.shape[-1] for weight in weights[: len(plan.target.roots)]]
    written: dict[int, Tensor] = {}
    for level, (source, target) in enumerate(zip(plan.source.levels, plan.target.levels, strict=True)):
        written[target] = _mix(plan, level, moves, read[source], weights)
        if level == 0 and biases is not None:
            written[target] = written[target] + torch.cat([bias.reshape(-1) for bias in biases])
    wholes = broadcast_tree(plan.target, 1, moves, written, widths, values[0])
    return [moves.clean(1, root, whole) for root, whole in enumerate(wholes)]


def _mix(plan: Plan, level: int, moves: Primitives, read: Tensor, weights: Sequence[Tensor]) -> Tensor:
    """One product for each swap."""
    total: Tensor | None = None
    for number in range(len(plan.levels[level].permutations)):
        product = moves.permuted(level, number, read, back=False) @ _matrix(plan, level, number, weights)
        total = product if total is None else total + product
    assert total is not None
    return total


def _matrix(plan: Plan, level: int, number: int, weights: Sequence[Tensor]) -> Tensor:
    """The matrix of a level and swap, put together from a block for every pair of a source and a target."""
    reads, writes = _runs(plan.levels[level].contractions), _runs(plan.levels[level].broadcasts)
    plane, n_targets = plan.levels[level].index[number], len(plan.target.roots)
    rows = []
    for source, (start, stop) in reads.items():
        blocks = []
        for target, (first, last) in writes.items():
            place = source * n_targets + target
            weight, before = weights[place], plan.pairs[place].start
            numbers = [one for row in plane[start:stop] for one in row[first:last]]
            maps = [len(weight) - 1 if one is None else one - before for one in numbers]
            block = weight.index_select(0, torch.tensor(maps, device=weight.device))
            block = block.reshape(stop - start, last - first, *weight.shape[1:]).transpose(1, 2)
            blocks.append(block.reshape((stop - start) * weight.shape[1], -1))
        rows.append(blocks[0] if len(blocks) == 1 else torch.cat(blocks, 1))
    return rows[0] if len(rows) == 1 else torch.cat(rows)


def _runs(contractions: Sequence[Contraction]) -> dict[int, tuple[int, int]]:
    """For every tensor that has some of these contractions the first of them and the end."""
    runs: dict[int, tuple[int, int]] = {}
    for place, contraction in enumerate(contractions):
        runs[contraction.tensor] = runs.get(contraction.tensor, (place, place))[0], place + 1
    return runs
