"""The dense executor: folds of tensors that hold a value for every tuple of nodes.

A folded tensor is (batch, one axis for each kept block, channels). A sum is a sum over an axis, its transpose a
broadcast; a diagonal is a view, its transpose an addition into that view.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from bellnet.execute.nodes import Nodes
from bellnet.plan import Fold, Step, Swap


@dataclass(frozen=True)
class Dense:
    """The moves of the dense executor for one set of nodes."""

    nodes: Nodes

    def arrange(self, tensor: Tensor, sets: tuple[int, ...]) -> Tensor:
        """Put the axes of a whole tensor in the order of the identity fold."""
        return self.swap(tensor, Fold.identity(sets).kept)

    def restore(self, tensor: Tensor, sets: tuple[int, ...]) -> Tensor:
        """Undo `arrange`."""
        order = Fold.identity(sets).kept
        return self.swap(tensor, tuple(order.index(slot) for slot in range(len(order))))

    def read(self, step: Step, parent: Tensor, *, mean: bool) -> Tensor:
        """Fold the parent once more."""
        if step.kind == "diagonal":
            return _diagonal(parent, step)
        folded = parent.sum(step.axes[0] + 1, dtype=_summing_dtype(parent.dtype))
        return self.nodes.divide(folded, _summed_set(step)) if mean else folded

    def write(self, step: Step, child: Tensor, *, mean: bool) -> Tensor:
        """The transpose of reading by a sum: a tensor that broadcasts to the parent."""
        return (self.nodes.divide(child, _summed_set(step)) if mean else child).unsqueeze(step.axes[0] + 1)

    def write_diagonal(self, step: Step, child: Tensor, parent: Tensor) -> None:
        """The transpose of reading a diagonal: add the child into the diagonal of the parent, in place."""
        _diagonal(parent, step).add_(child)

    def gather(self, fold: Fold, terms: Sequence[Tensor]) -> Tensor:
        """The sum of tensors that broadcast to the fold, as a new tensor of that shape."""
        shape = (terms[0].shape[0], *self.nodes.shape(fold.axis_sets), terms[0].shape[-1])
        first, *rest = terms
        if not rest:
            return first.expand(shape).clone(memory_format=torch.contiguous_format)
        total = first + rest[0]
        if total.shape != shape:
            total = total.expand(shape).clone(memory_format=torch.contiguous_format)
        for term in rest[1:]:
            total.add_(term)
        return total

    def swap(self, tensor: Tensor, swap: Swap) -> Tensor:
        """Reorder the axes between batch and channels, as a view."""
        if all(axis == place for place, axis in enumerate(swap)):
            return tensor
        return tensor.permute(0, *(axis + 1 for axis in swap), tensor.ndim - 1)

    def clean(self, tensor: Tensor, sets: tuple[int, ...]) -> Tensor:
        """Zero what lies outside the nodes."""
        return self.nodes.clean(tensor, sets)


def _diagonal(tensor: Tensor, step: Step) -> Tensor:
    first, second = (axis + 1 for axis in step.axes)
    return tensor.diagonal(0, first, second).movedim(-1, first)


def _summed_set(step: Step) -> int:
    return step.parent.axis_sets[step.axes[0]]


def _summing_dtype(dtype: torch.dtype) -> torch.dtype:
    # Sums of many half-precision numbers overflow or lose their small terms; they are rounded once, when mixed.
    return torch.float32 if dtype in (torch.float16, torch.bfloat16) else dtype
