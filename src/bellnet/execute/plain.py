"""A plan in plain, functional operations: for whoever traces, transforms or differentiates what is done.

Nothing is written in place, and nothing is put side by side but what is mixed. A layout has three moves for it.
"""

from collections.abc import Sequence
from typing import Protocol

import torch
from torch import Tensor

from bellnet.execute.means import Means
from bellnet.plan import Branch, Fold, Plan, Tree


class Moves(Protocol):
    """What a layout does to one fold, in operations that can be differentiated and traced."""

    def fold(self, number: int, column: int, branch: Branch, parent: Tensor) -> Tensor:
        """The fold in a column of a bundle of the source, from its parent."""

    def spread(self, number: int, column: int, branch: Branch, child: Tensor) -> Tensor:
        """The transpose, for the target: what the parent of such a fold gets from it."""

    def swapped(self, level: int, number: int, read: Tensor) -> Tensor:
        """What was read on a level, for one of its swaps, where the target has it."""

    def zeros(self, target: int, like: Tensor, width: int) -> Tensor:
        """A result without values, for one of the targets."""

    def clean(self, target: int, result: Tensor) -> Tensor:
        """A result with zeros where there is no node."""


def run_plain(
    plan: Plan,
    moves: Moves,
    values: Sequence[Tensor],
    *,
    weights: Sequence[Tensor],
    biases: Sequence[Tensor] | None,
    means: Means,
) -> list[Tensor]:
    """Run a plan; means by lengths are not taken, since the weights are used as they are.

    Args:
        plan: The plan.
        moves: What a layout does.
        values: For every source.
        weights: For every pair of a source and a target (n_maps, in, out).
        biases: For every target (n_biases, out).
        means: What makes means of sums.

    Returns:
        For every target.
    """
    read = means.scaled(_read(plan.source, moves, values), values[0].dtype)
    if plan.has_gaps:  # swaps that a symmetry makes equal are missing from some reads of a level
        weights = [torch.cat([weight, torch.zeros_like(weight[:1])]) for weight in weights]
    widths = [weight.shape[-1] for weight in weights[: len(plan.target.roots)]]
    folds: dict[tuple[int, int], Tensor] = {}
    for level, (source, target) in enumerate(zip(plan.source.levels, plan.target.levels, strict=True)):
        mixed = _mix(plan, level, moves, read[source], weights)
        if level == 0 and biases is not None:
            mixed = mixed + torch.cat([bias.reshape(-1) for bias in biases])
        columns = [widths[tensor] for tensor in plan.target.bundles[target].tensors]
        for column, part in enumerate(torch.split(mixed, columns, -1)):
            folds[target, column] = part
    for number in range(len(plan.target.bundles) - 1, len(widths) - 1, -1):
        for branch in plan.target.bundles[number].branches:
            for column in range(branch.n_columns):
                child = folds.get((number, branch.start + column))
                if child is not None:
                    parent = branch.parent, branch.parent_start + column
                    term = moves.spread(number, branch.start + column, branch, child)
                    folds[parent] = folds[parent] + term if parent in folds else term
    wholes = [folds.get((target, 0)) for target in range(len(widths))]
    return [
        moves.clean(target, moves.zeros(target, values[0], widths[target]) if whole is None else whole)
        for target, whole in enumerate(wholes)
    ]


def _read(tree: Tree, moves: Moves, values: Sequence[Tensor]) -> list[Tensor]:
    """All bundles; half-precision sums of many numbers would overflow or lose their small terms."""
    widths = [one.shape[-1] for one in values]
    bundles = [one.to(torch.promote_types(one.dtype, torch.float32)) for one in values]
    for number, bundle in enumerate(tree.bundles[len(values) :], len(values)):
        columns = []
        for branch in bundle.branches:
            above = tree.bundles[branch.parent]
            for column in range(branch.parent_start, branch.parent_start + branch.n_columns):
                start, width = above.width(widths, 0, column), widths[above.tensors[column]]
                parent = bundles[branch.parent].narrow(-1, start, width)
                columns.append(moves.fold(number, branch.start + column - branch.parent_start, branch, parent))
        bundles.append(torch.cat(columns, -1))
    return bundles


def _mix(plan: Plan, level: int, moves: Moves, read: Tensor, weights: Sequence[Tensor]) -> Tensor:
    """One product for each swap."""
    total: Tensor | None = None
    for number in range(len(plan.levels[level].swaps)):
        product = moves.swapped(level, number, read) @ _matrix(plan, level, number, weights)
        total = product if total is None else total + product
    assert total is not None
    return total


def _matrix(plan: Plan, level: int, number: int, weights: Sequence[Tensor]) -> Tensor:
    """The matrix of a level and swap, put together from a block for every pair of a source and a target."""
    reads, writes = _runs(plan.levels[level].reads), _runs(plan.levels[level].writes)
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


def _runs(folds: Sequence[Fold]) -> dict[int, tuple[int, int]]:
    """For every tensor that has some of these folds the first of them and the end."""
    runs: dict[int, tuple[int, int]] = {}
    for place, fold in enumerate(folds):
        runs[fold.tensor] = runs.get(fold.tensor, (place, place))[0], place + 1
    return runs
