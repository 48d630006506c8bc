"""The loop that runs every layout: contract the inputs, mix the levels, broadcast to the outputs."""

from collections.abc import Sequence

import torch
from torch import Tensor

from bellnet.backends.moves import Primitives
from bellnet.plan import ContractionTree


def read(tree: ContractionTree, side: int, moves: Primitives, wholes: Sequence[Tensor]) -> list[Tensor]:
    """All stacks, the whole tensors first; sums are not divided."""
    widths, stacks = [one.shape[-1] for one in wholes], list(wholes)
    for number, stack in enumerate(tree.stacks[len(wholes) :], len(wholes)):
        parts = []
        for branch in stack.steps:
            above, stop = tree.stacks[branch.parent], branch.parent_start + branch.n_columns
            start, width = above.width(widths, 0, branch.parent_start), above.width(widths, branch.parent_start, stop)
            parts.append(moves.contraction(side, number, branch, stacks[branch.parent].narrow(-1, start, width)))
        stacks.append(parts[0] if len(parts) == 1 else torch.cat(parts, -1))
    return stacks


def write(
    tree: ContractionTree, side: int, moves: Primitives, stacks: dict[int, Tensor], widths: Sequence[int], like: Tensor
) -> list[Tensor]:
    """The whole tensors of such widths, from what levels gave to stacks."""
    contractions: dict[tuple[int, int], Tensor] = {}
    for number, stack in stacks.items():
        columns = [widths[tensor] for tensor in tree.stacks[number].tensors]
        parts = [stack] if len(columns) == 1 else torch.split(stack, columns, -1)
        contractions |= {(number, column): part for column, part in enumerate(parts)}
    for number in range(len(tree.stacks) - 1, len(widths) - 1, -1):
        for branch in tree.stacks[number].steps:
            for offset in range(branch.n_columns):
                child = contractions.get((number, branch.start + offset))
                if child is not None:
                    parent = branch.parent, branch.parent_start + offset
                    contractions[parent] = moves.spread(side, number, branch, child, contractions.get(parent))
    wholes = [contractions.get((root, 0)) for root in range(len(widths))]
    return [
        moves.zeros(side, root, like, width) if whole is None else whole
        for root, (whole, width) in enumerate(zip(wholes, widths, strict=True))
    ]
