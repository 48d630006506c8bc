"""The moves of dense tensors in plain operations: a sum is a sum over an axis, its transpose a broadcast."""

import torch
from torch import Tensor

from bellnet.execute.nodes import Nodes
from bellnet.execute.orders import in_order
from bellnet.plan import Branch, Plan


class DenseMoves:
    """For tensors over so many nodes whose axes are grouped by node set.

    With `folds_means` folds are means already, not sums: a tracer may not know the number of nodes, but torch can take
    means over it.
    """

    def __init__(self, plan: Plan, nodes: Nodes, *, folds_means: bool) -> None:
        self.plan, self.nodes = plan, nodes
        self.folds_means = folds_means

    def fold(self, number: int, column: int, branch: Branch, parent: Tensor) -> Tensor:
        """The fold in a column of a bundle of the source, from its parent."""
        if branch.kind == "copy":
            return parent
        if branch.kind == "diagonal":
            first, second = (axis + 1 for axis in branch.axes)
            return parent.diagonal(0, first, second).movedim(-1, first)
        axis = branch.axes[0] + 1
        return parent.mean(axis) if self.folds_means and self.nodes.lengths[branch.node_set] > 0 else parent.sum(axis)

    def spread(self, number: int, column: int, branch: Branch, child: Tensor) -> Tensor:
        """The transpose, for the target: what the parent of such a fold gets from it."""
        if branch.kind == "copy":
            return child
        if branch.kind == "sum":
            sets = self.plan.target.bundles[branch.parent].axis_sets
            lengths = [self.nodes.lengths[node_set] for node_set in sets]
            return child.unsqueeze(branch.axes[0] + 1).expand(child.shape[0], *lengths, child.shape[-1])
        first, second = (axis + 1 for axis in branch.axes)
        return torch.diag_embed(child.movedim(first, -1), 0, first, second)

    def swapped(self, level: int, number: int, read: Tensor) -> Tensor:
        """What was read on a level, for one of its swaps."""
        return in_order(read, self.plan.levels[level].swaps[number]) if number else read

    def zeros(self, target: int, like: Tensor, width: int) -> Tensor:
        """A result without values."""
        axes = self.plan.target.roots[target].axes
        return like.new_zeros(len(like), *[self.nodes.lengths[one] for one in axes], width)

    def clean(self, target: int, result: Tensor) -> Tensor:
        """A result with zeros where there is no node."""
        return self.nodes.clean(result, self.plan.target.roots[target].axes)
