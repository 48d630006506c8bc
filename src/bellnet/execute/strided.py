"""The folds of dense tensors, which hold a value for every tuple of nodes.

A bundle is (batch, one axis for each kept block, columns * channels). A sum is a sum over an axis, its transpose a
broadcast; a diagonal is a view, its transpose an addition into that view.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from bellnet.plan import Branch, Tree


class Strided:
    """Reads and writes the folds of a (batch, axes grouped by node set, channels) tensor."""

    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        self.columns = [len(bundle.folds) for bundle in tree.bundles]
        self._bundles = [(bundle.branches, [branch.n_columns for branch in bundle.branches]) for bundle in tree.bundles]
        self._slots = [[tree.axes.index(node_set) for node_set in bundle.axis_sets] for bundle in tree.bundles]

    def read(self, whole: Tensor) -> list[Tensor]:
        """All bundles, the whole tensor first; sums are not divided."""
        columns, width = self.columns, whole.shape[-1]
        # Sums of many half-precision numbers overflow or lose their small terms.
        dtype = torch.float32 if whole.dtype in (torch.float16, torch.bfloat16) else None
        bundles = [whole]
        for branches, _ in self._bundles[1:]:
            parts = []
            for kind, axes, _, parent, start, _, count in branches:
                above = bundles[parent]
                if count != columns[parent]:
                    above = above.narrow(-1, start * width, count * width)
                parts.append(above.sum(axes[0] + 1, dtype=dtype) if kind == "sum" else diagonal(above, axes))
            bundles.append(parts[0] if len(parts) == 1 else torch.cat(parts, -1))
        return bundles

    def write(self, bundles: list[Tensor | None], shape: Sequence[int], into: Tensor | None = None) -> Tensor | None:
        """The transpose of reading: a whole tensor from all bundles but itself.

        Args:
            bundles: What is written; they may be written into. None is nothing.
            shape: Of the whole tensor.
            into: Memory for the result, if there is some.

        Returns:
            A contiguous tensor, or None if nothing is written.
        """
        width = shape[-1]
        arriving: list[list[tuple[Branch, Tensor]]] = [[] for _ in bundles]
        for number in range(len(bundles) - 1, -1, -1):
            total, terms = bundles[number], arriving[number]
            if terms:
                if total is None:
                    lengths = [shape[1 + slot] for slot in self._slots[number]]
                    total = _begin(terms, (shape[0], *lengths, width), None if number else into)
                else:
                    self._add(total, terms, number, width)
            if total is not None and number:
                branches, counts = self._bundles[number]
                parts = (
                    (total,)
                    if len(counts) == 1
                    else torch.split_with_sizes(total, [count * width for count in counts], -1)
                )
                for branch, part in zip(branches, parts, strict=True):
                    arriving[branch.parent].append((branch, part))
        return total

    def _add(self, total: Tensor, terms: list[tuple[Branch, Tensor]], number: int, width: int) -> None:
        for (kind, axes, _, _, start, _, count), part in terms:
            under = total if count == self.columns[number] else total.narrow(-1, start * width, count * width)
            if kind == "sum":
                under.add_(part.unsqueeze(axes[0] + 1))
            else:
                diagonal(under, axes).add_(part)


def _begin(terms: list[tuple[Branch, Tensor]], shape: tuple[int, ...], into: Tensor | None) -> Tensor:
    """The sum of what arrives at one fold."""
    spread = [(branch.axes[0], part) for branch, part in terms if branch.kind == "sum"]
    if len(spread) > 1 and spread[0][0] != spread[1][0]:  # what repeats along different axes has all of them together
        (first, one), (second, other), *rest = spread
        total = torch.add(one.unsqueeze(first + 1), other.unsqueeze(second + 1), out=into)
    else:
        total = terms[0][1].new_empty(shape) if into is None else into
        if spread:
            (axis, part), *rest = spread
            total.copy_(part.unsqueeze(axis + 1))
        else:
            rest = []
            total.zero_()
    for axis, part in rest:
        total.add_(part.unsqueeze(axis + 1))
    for branch, part in terms:
        if branch.kind == "diagonal":
            diagonal(total, branch.axes).add_(part)
    return total


def diagonal(tensor: Tensor, axes: tuple[int, ...]) -> Tensor:
    """Two axes made one, as a view; axes are counted from the one after the batch."""
    first, second = axes
    return tensor.diagonal(0, first + 1, second + 1).movedim(-1, first + 1)
