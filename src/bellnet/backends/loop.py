"""The loop by which every layout is run: the folds of one side are read, and what levels make of them is written."""

from collections.abc import Sequence

import torch
from torch import Tensor

from bellnet.backends.moves import Primitives
from bellnet.plan import Tree


def read(tree: Tree, side: int, moves: Primitives, wholes: Sequence[Tensor]) -> list[Tensor]:
    """All bundles, the whole tensors first; sums are not divided."""
    widths, bundles = [one.shape[-1] for one in wholes], list(wholes)
    for number, bundle in enumerate(tree.bundles[len(wholes) :], len(wholes)):
        parts = []
        for branch in bundle.branches:
            above, stop = tree.bundles[branch.parent], branch.parent_start + branch.n_columns
            start, width = above.width(widths, 0, branch.parent_start), above.width(widths, branch.parent_start, stop)
            parts.append(moves.contraction(side, number, branch, bundles[branch.parent].narrow(-1, start, width)))
        bundles.append(parts[0] if len(parts) == 1 else torch.cat(parts, -1))
    return bundles


def write(
    tree: Tree, side: int, moves: Primitives, bundles: dict[int, Tensor], widths: Sequence[int], like: Tensor
) -> list[Tensor]:
    """The whole tensors of such widths, from what levels gave to bundles."""
    contractions: dict[tuple[int, int], Tensor] = {}
    for number, bundle in bundles.items():
        columns = [widths[tensor] for tensor in tree.bundles[number].tensors]
        parts = [bundle] if len(columns) == 1 else torch.split(bundle, columns, -1)
        contractions |= {(number, column): part for column, part in enumerate(parts)}
    for number in range(len(tree.bundles) - 1, len(widths) - 1, -1):
        for branch in tree.bundles[number].branches:
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
