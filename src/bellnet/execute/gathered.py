"""Walks in torch's operations: their matrices are gathered from the weights, and gradients go the same way back."""

from collections.abc import Sequence
from typing import Any, Protocol

from torch import Tensor

from bellnet.execute.layout import Gradients, Needs
from bellnet.execute.level_matrices import LevelMatrices
from bellnet.execute.means import Means

FEW_NUMBERS = 2**16
"""Matrices of so many numbers, or of no more than the input has, are kept for the gradient; others are made again."""


class MatrixWalk(Protocol):
    """Runs a plan on numbers, and its gradient, with one matrix for each level and swap."""

    def views(self, matrices: LevelMatrices, gathered: Tensor) -> Any:
        """The matrices as `forward` and `backward` use them."""

    def forward(
        self, values: Sequence[Tensor], matrices: Any, *, bias: Tensor | None, means: Means
    ) -> tuple[Sequence[Tensor], list[Tensor]]:
        """The results, and what was read but the values themselves."""

    def backward(
        self,
        gradients: Sequence[Tensor],
        values: Sequence[Tensor],
        read: list[Tensor],
        *,
        matrices: Any,
        of_matrices: Any,
        of_bias: Tensor | None,
        means: Means,
    ) -> Sequence[Tensor] | None:
        """The gradients of the values, if matrices are given; those of matrices and bias are added in place."""


class GatheredWalk:
    """A walk with its matrices, from weights to their gradients.

    Args:
        walk: What runs.
        matrices: How its matrices come from the weights.
        means: How sums become means.
    """

    def __init__(self, walk: MatrixWalk, matrices: LevelMatrices, means: Means) -> None:
        self.walk, self.matrices, self.means = walk, matrices, means

    def takes(self, weights: Sequence[Tensor], biases: Sequence[Tensor] | None) -> bool:
        """Torch's operations see for themselves what they are given."""
        return True

    def forward(
        self, values: Sequence[Tensor], weights: Sequence[Tensor], biases: Sequence[Tensor] | None, *, needed: bool
    ) -> tuple[Sequence[Tensor], list[Tensor | None]]:
        """The results, and what is kept for the gradient: the matrices if they are small and it needs them."""
        gathered = self.matrices.gather(weights, self.means.lengths)
        bias = None if biases is None else self.matrices.gather_biases(biases)
        matrices = self.walk.views(self.matrices, gathered)
        results, read = self.walk.forward(values, matrices, bias=bias, means=self.means)
        are_small = gathered.numel() <= max(values[0].numel(), FEW_NUMBERS)
        return results, [gathered if needed and are_small else None, *read]

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
        gathered, *read = kept
        walk, matrices, lengths = self.walk, self.matrices, self.means.lengths
        if needs.values and gathered is None:
            gathered = matrices.gather(weights, lengths)
        of_gathered = matrices.zeros(weights[0])
        of_bias = matrices.zeros_of_bias(weights[0]) if needs.biases else None
        of_values = walk.backward(
            gradients,
            values,
            read,
            matrices=walk.views(matrices, gathered) if needs.values else None,
            of_matrices=walk.views(matrices, of_gathered),
            of_bias=of_bias,
            means=self.means,
        )
        of_weights = matrices.scatter(of_gathered, lengths, weights) if needs.weights else None
        return Gradients(of_weights, None if of_bias is None else matrices.scatter_biases(of_bias, biases), of_values)
