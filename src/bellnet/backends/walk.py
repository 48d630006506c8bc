"""Plans in torch's operations with a gradient of their own: on a GPU, in half precision, or where kernels are missing.

Left to itself, autograd would keep the rows of every product and add up full-size gradients one by one. Forwards the
contractions of the source are read, mixed and written to the target; backwards it is the same loop with both exchanged,
and what was read on both sides is paired for the gradient of the matrices.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from bellnet.backends import loop
from bellnet.backends.layout import Channels, Gradients, Needs
from bellnet.backends.level_matrices import level_matrices
from bellnet.backends.means import Means, scale
from bellnet.backends.moves import Primitives
from bellnet.plan import RestrictedPlan

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
        read = self.means.scaled(loop.read(plan.source, 0, moves, values), like.dtype)
        written = self._mix(read, self.matrices.apart(gathered), back=False)
        if biases is not None:
            written[plan.target.levels[0]].add_(self.matrices.gather_biases(biases))
        results = loop.write(plan.target, 1, moves, written, self.channels[1], like)
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
        pulled = [one.to(dtype) for one in loop.read(plan.target, 1, self.moves, clean)]
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
            of_values = loop.write(plan.source, 0, self.moves, written, self.channels[0], values[0])
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
