"""A layout in one file: dense tensors again, every move of which is the oracle's matrix of zeros and ones.

It shows that plans, trees and the executor need nothing else. It is slow: each operation multiplies by
a matrix with a row for every tuple.
"""

from math import prod

import torch

from bellnet.backends.reference import indicator
from bellnet.backends.torch_backend import Means


class Explicit:
    """Tensors (batch, *axes, channels) over the nodes of every set, axes grouped by node set."""

    has_axes = True

    def __init__(self, lengths):
        self.lengths = lengths

    def key(self, values):
        return None

    def restrict(self, plan):
        return None

    def kernels(self, restricted, channels, values, *, mean):
        return None

    def primitives(self, plan, values, *, mean, in_place):
        if not mean:
            return ExplicitPrimitives(plan, self.lengths), Means()
        return ExplicitPrimitives(plan, self.lengths), Means(None, tuple(map(self._factors, plan.source.stacks)))

    def _factors(self, stack):
        terms = [prod(max(self.lengths[one], 1) for one in summed) for summed in stack.dropped_sets]
        return (1 / torch.tensor(terms, dtype=torch.float64)).reshape(*[1] * (len(stack.axis_sets) + 1), -1, 1)


class ExplicitPrimitives:
    def __init__(self, plan, lengths):
        self.plan, self.lengths, self.trees = plan, lengths, (plan.source, plan.target)

    def _matrix(self, tree, step):
        """(parent axes, child axes): one where a tuple of the child is what the step leaves of one of the parent."""
        parent = tree.stacks[step.parent].axis_sets
        gone = step.axes[-1]
        blocks = list(range(len(parent)))
        if step.kind == "diagonal":
            blocks[gone] = blocks[step.axes[0]]
        child = [block for axis, block in enumerate(blocks) if axis != gone]
        numbers = list(dict.fromkeys(blocks))
        partition = tuple(numbers.index(block) for block in [*blocks, *child])
        sets = (*parent, *[node_set for axis, node_set in enumerate(parent) if axis != gone])
        lengths = tuple(self.lengths[node_set] for node_set in sets)
        return indicator(partition, lengths, sets, exact=False)

    def contract(self, side, number, step, parent):
        if step.kind == "copy":
            return parent
        matrix = self._matrix(self.trees[side], step)
        axes = parent.ndim - 2
        return torch.tensordot(matrix, parent, (list(range(axes)), list(range(1, axes + 1)))).movedim(-2, 0)

    def broadcast(self, side, number, step, child, onto):
        term = child if step.kind == "copy" else self._broadcast(side, step, child)
        return term if onto is None else onto + term

    def _broadcast(self, side, step, child):
        matrix = self._matrix(self.trees[side], step)
        axes = child.ndim - 2
        return torch.tensordot(matrix, child, (list(range(axes + 1, 2 * axes + 1)), list(range(1, axes + 1)))).movedim(
            -2, 0
        )

    def permute(self, level, number, rows, *, back):
        """Axis j of the result is axis permutation[j] of the rows."""
        axis_sets, permutation = self.plan.levels[level].axis_sets, self.plan.levels[level].permutations[number]
        if back:
            permutation = tuple(map(permutation.index, range(len(permutation))))
        rank = len(permutation)
        lengths = tuple(self.lengths[node_set] for node_set in axis_sets)
        matrix = indicator((*range(rank), *permutation), lengths * 2, axis_sets * 2, exact=False)
        return torch.tensordot(matrix, rows, (list(range(rank)), list(range(1, rank + 1)))).movedim(-2, 0)

    def zeros(self, side, root, like, width):
        return like.new_zeros(len(like), *[self.lengths[one] for one in self.trees[side].stacks[root].axis_sets], width)

    def clean(self, side, root, tensor):
        return tensor
