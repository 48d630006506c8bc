"""The moves of dense tensors: a sum is a sum over an axis, its transpose a broadcast."""

import torch
from torch import Tensor

from bellnet.backends.nodes import Nodes
from bellnet.backends.orders import in_order, inverse
from bellnet.plan import Plan, StackStep


class DensePrimitives:
    """For tensors over so many nodes whose axes are grouped by node set.

    Args:
        plan: The plan.
        nodes: How many nodes there are.
        takes_means: Whether contractions are means already, not sums: a tracer may not know the number of nodes, but
            torch can take means over it.
        in_place: Whether to write in place.
    """

    def __init__(self, plan: Plan, nodes: Nodes, *, takes_means: bool = False, in_place: bool = False) -> None:
        self.plan, self.nodes = plan, nodes
        self.trees = plan.source, plan.target
        self.takes_means, self.in_place = takes_means, in_place

    def contraction(self, side: int, number: int, branch: StackStep, parent: Tensor) -> Tensor:
        """The contractions of a branch of a stack, from those of its parent."""
        if branch.kind == "copy":
            return parent
        if branch.kind == "diagonal":
            first, second = (axis + 1 for axis in branch.axes)
            return parent.diagonal(0, first, second).movedim(-1, first)
        axis, wide = branch.axes[0] + 1, torch.promote_types(parent.dtype, torch.float32)
        if self.takes_means and self.nodes.lengths[branch.node_set] > 0:
            return parent.mean(axis, dtype=wide)
        return parent.sum(axis, dtype=wide)

    def spread(self, side: int, number: int, branch: StackStep, child: Tensor, onto: Tensor | None) -> Tensor:
        """What the parent of a contraction gets from it, and what that has already."""
        if onto is not None and self.in_place:
            if branch.kind == "copy":
                return onto.add_(child)
            if branch.kind == "sum":
                return onto.add_(child.unsqueeze(branch.axes[0] + 1))
            first, second = (axis + 1 for axis in branch.axes)
            onto.diagonal(0, first, second).movedim(-1, first).add_(child)
            return onto
        term = self._spread(side, branch, child)
        if onto is not None:
            return onto + term
        is_new = branch.kind == "diagonal" or not self.in_place
        return term if is_new else term.clone(memory_format=torch.contiguous_format)

    def _spread(self, side: int, branch: StackStep, child: Tensor) -> Tensor:
        if branch.kind == "copy":
            return child
        if branch.kind == "sum":
            sets = self.trees[side].stacks[branch.parent].axis_sets
            lengths = [self.nodes.lengths[node_set] for node_set in sets]
            return child.unsqueeze(branch.axes[0] + 1).expand(child.shape[0], *lengths, child.shape[-1])
        first, second = (axis + 1 for axis in branch.axes)
        return torch.diag_embed(child.movedim(first, -1), 0, first, second)

    def permuted(self, level: int, number: int, rows: Tensor, *, back: bool) -> Tensor:
        """What was read on a level, for one of its permutations."""
        permutation = self.plan.levels[level].permutations[number]
        return in_order(rows, inverse(permutation) if back else permutation) if number else rows

    def zeros(self, side: int, root: int, like: Tensor, width: int) -> Tensor:
        """A whole tensor without values."""
        axes = self.trees[side].roots[root].axes
        return like.new_zeros(len(like), *[self.nodes.lengths[one] for one in axes], width)

    def clean(self, side: int, root: int, whole: Tensor) -> Tensor:
        """A whole tensor with zeros where there is no node."""
        return self.nodes.clean(whole, self.trees[side].roots[root].axes)
