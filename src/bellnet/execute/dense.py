"""The dense executor: folds of tensors that hold a value for every tuple of nodes.

A folded tensor is (batch, one axis for each kept block, channels). A sum is a sum over an axis, its transpose a
broadcast; a diagonal is a view, its transpose an addition into that view.
"""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from bellnet.execute.column import Column
from bellnet.execute.executor import Place
from bellnet.execute.nodes import Nodes
from bellnet.execute.transforms import may_write_in_place
from bellnet.plan import ReadStep, Swap, WriteStep


class Dense:
    """The moves of the dense executor, for one set of nodes."""

    def __init__(self, nodes: Nodes) -> None:
        self.nodes = nodes

    @property
    def transposed(self) -> "Dense":
        """The executor of the transposed program: the same."""
        return self

    def read(self, step: ReadStep, parent: Column, *, mean: bool) -> Tensor:
        """Fold the parent once more."""
        whole = parent.tensor
        if step.kind == "diagonal":
            return _diagonal(whole, step.axes)
        axis, dtype = step.axes[0] + 1, _summing_dtype(whole.dtype)
        if not mean:
            return whole.sum(axis, dtype=dtype)
        if self.nodes.counts is None and self.nodes.lengths[step.node_set] > 0:
            return whole.mean(axis, dtype=dtype)
        return self.nodes.divide(whole.sum(axis, dtype=dtype), step.node_set)

    def side_by_side(self, reads: Sequence[Tensor]) -> tuple[Tensor, list[Column]]:
        """Folds in one tensor; they go on being read from where they are, which is faster."""
        together = reads[0] if len(reads) == 1 else torch.cat(list(reads), -1)
        return together, [Column(fold) for fold in reads]

    def write(self, step: WriteStep, child: Column, *, mean: bool) -> Tensor:
        """The transpose of reading by a sum: a tensor that broadcasts to the parent."""
        folded = child.tensor
        return (self.nodes.divide(folded, step.node_set) if mean else folded).unsqueeze(step.axes[0] + 1)

    def write_diagonal(self, step: WriteStep, child: Column, parent: Column) -> Column:
        """The transpose of reading a diagonal: add the child into the diagonal of the parent."""
        whole = parent.tensor
        if may_write_in_place():
            _diagonal(whole, step.axes).add_(child.tensor)
            return parent
        first, second = (axis + 1 for axis in step.axes)
        diagonal = whole.diagonal(0, first, second) + child.tensor.movedim(first, -1)
        return Column(whole.diagonal_scatter(diagonal, 0, first, second))

    def gather(self, sets: tuple[int, ...], terms: Sequence[Tensor]) -> Callable[[Place], Tensor]:
        """A function that gives the sum of tensors that broadcast to axes over these node sets."""

        def everywhere(place: Place) -> Tensor:
            total = terms[0] if len(terms) == 1 else terms[0] + terms[1]
            shape = [total.shape[0], *(self.nodes.lengths[node_set] for node_set in sets), total.shape[-1]]
            if len(terms) == 1 or list(total.shape) != shape:
                total = total.expand(shape).clone(memory_format=torch.contiguous_format)
            total = total.contiguous()
            for term in terms[2:]:
                total = total.add_(term) if may_write_in_place() else total + term
            return total

        return everywhere

    def add(self, total: Column, terms: Sequence[Tensor]) -> Column:
        """The total and tensors that broadcast to it."""
        return Column(sum(terms, total.tensor)) if terms else total

    def divide(self, level: int, tensor: Tensor) -> Tensor:
        """The tensor as it is: sums were divided when they were read, or will be when they are written."""
        return tensor

    def places(self, tensor: Tensor, level: int, width: int) -> Sequence[Place]:
        """All at once: a matrix library knows best how to take a large product apart."""
        return (None,)

    def rows(self, tensor: Tensor, level: int, swap: Swap, place: Place = None, spare: Tensor | None = None) -> Tensor:
        """The reads of a level, axes swapped, as the rows of a matrix; a copy unless nothing is swapped."""
        swapped = self.swap(tensor, level, swap)
        if spare is None or swapped is tensor:
            return swapped.reshape(-1, tensor.shape[-1])
        spare.view(swapped.shape).copy_(swapped)
        return spare

    def spare(self, tensor: Tensor) -> Tensor | None:
        """Memory for copies of the reads of a level."""
        return tensor.new_empty(tensor.shape[:-1].numel(), tensor.shape[-1])

    def memory(self, tensor: Tensor, level: int, width: int) -> Tensor | None:
        """None: nothing here outlives a call and could keep it."""
        return None

    def swap(self, tensor: Tensor, level: int, swap: Swap, place: Place = None) -> Tensor:
        """Reorder the axes between batch and channels, as a view."""
        return self.in_order(tensor, swap)

    def shape(self, tensor: Tensor, level: int) -> tuple[int, ...]:
        """The shape, without channels, of what a level mixes from this tensor."""
        return tensor.shape[:-1]

    def in_order(self, tensor: Tensor, order: Swap) -> Tensor:
        """The axes between batch and channels in this order, as a view."""
        if order == tuple(range(len(order))):
            return tensor
        return tensor.permute(0, *[axis + 1 for axis in order], tensor.ndim - 1)

    def clean(self, tensor: Tensor, sets: tuple[int, ...]) -> Tensor:
        """Zero what lies outside the nodes."""
        return self.nodes.clean(tensor, sets)


def _diagonal(tensor: Tensor, axes: tuple[int, ...]) -> Tensor:
    first, second = axes
    return tensor.diagonal(0, first + 1, second + 1).movedim(-1, first + 1)


def _summing_dtype(dtype: torch.dtype) -> torch.dtype:
    # Sums of many half-precision numbers overflow or lose their small terms; they are rounded once, when mixed.
    return torch.float32 if dtype in (torch.float16, torch.bfloat16) else dtype
