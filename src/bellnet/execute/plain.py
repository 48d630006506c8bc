"""A plan in plain, functional operations: for whoever traces, transforms or differentiates what is done.

Nothing is written in place, and nothing is put side by side but what is mixed. A layout has three moves for it.
"""

from typing import Protocol

import torch
from torch import Tensor

from bellnet.execute.means import Means
from bellnet.plan import Branch, Plan, Tree


class Moves(Protocol):
    """What a layout does to one fold, in operations that can be differentiated and traced."""

    def fold(self, number: int, column: int, branch: Branch, parent: Tensor) -> Tensor:
        """The fold in a column of a bundle of the source, from its parent."""

    def spread(self, number: int, column: int, branch: Branch, child: Tensor) -> Tensor:
        """The transpose, for the target: what the parent of such a fold gets from it."""

    def swapped(self, level: int, number: int, read: Tensor) -> Tensor:
        """What was read on a level, for one of its swaps, where the target has it."""

    def zeros(self, like: Tensor, width: int) -> Tensor:
        """A result without values."""

    def clean(self, result: Tensor) -> Tensor:
        """A result with zeros where there is no node."""


def run_plain(plan: Plan, moves: Moves, values: Tensor, *, weight: Tensor, bias: Tensor | None, means: Means) -> Tensor:
    """Run a plan; means by lengths are not taken, since the weights are used as they are."""
    read = means.scaled(_read(plan.source, moves, values), values.dtype)
    if plan.has_gaps:  # swaps that a symmetry makes equal are missing from some reads of a level
        weight = torch.cat([weight, torch.zeros_like(weight[:1])])
    folds: dict[tuple[int, int], Tensor] = {}
    for level, (source, target) in enumerate(zip(plan.source.levels, plan.target.levels, strict=True)):
        mixed = _mix(plan, level, moves, read[source], weight)
        if level == 0 and bias is not None:
            mixed = mixed + bias.reshape(-1)
        for column, part in enumerate(torch.split(mixed, weight.shape[-1], -1)):
            folds[target, column] = part
    for number in range(len(plan.target.bundles) - 1, 0, -1):
        for branch in plan.target.bundles[number].branches:
            for column in range(branch.n_columns):
                child = folds.get((number, branch.start + column))
                if child is not None:
                    parent = branch.parent, branch.parent_start + column
                    term = moves.spread(number, branch.start + column, branch, child)
                    folds[parent] = folds[parent] + term if parent in folds else term
    whole = folds.get((0, 0))
    return moves.zeros(values, weight.shape[-1]) if whole is None else whole


def _read(tree: Tree, moves: Moves, values: Tensor) -> list[Tensor]:
    """All bundles; half-precision sums of many numbers would overflow or lose their small terms."""
    width = values.shape[-1]
    bundles = [values.to(torch.promote_types(values.dtype, torch.float32))]
    for number, bundle in enumerate(tree.bundles[1:], 1):
        columns = []
        for branch in bundle.branches:
            for column in range(branch.n_columns):
                parent = bundles[branch.parent].narrow(-1, (branch.parent_start + column) * width, width)
                columns.append(moves.fold(number, branch.start + column, branch, parent))
        bundles.append(torch.cat(columns, -1))
    return bundles


def _mix(plan: Plan, level: int, moves: Moves, read: Tensor, weight: Tensor) -> Tensor:
    """One product for each swap."""
    inside, outside = weight.shape[1:]
    reads, writes = len(plan.levels[level].reads), len(plan.levels[level].writes)
    total: Tensor | None = None
    for number, plane in enumerate(plan.levels[level].index):
        maps = [len(weight) - 1 if one is None else one for row in plane for one in row]
        matrices = weight.index_select(0, torch.tensor(maps, device=weight.device))
        matrix = matrices.reshape(reads, writes, inside, outside).transpose(1, 2)
        product = moves.swapped(level, number, read) @ matrix.reshape(reads * inside, writes * outside)
        total = product if total is None else total + product
    assert total is not None
    return total
