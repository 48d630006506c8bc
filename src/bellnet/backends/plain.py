"""A plan in plain, functional operations: for whoever traces, transforms or differentiates what is done."""

from collections.abc import Sequence

import torch
from torch import Tensor

from bellnet.backends import loop
from bellnet.backends.means import Means
from bellnet.backends.moves import Primitives
from bellnet.plan import Contraction, Plan


def run_plain(
    plan: Plan,
    moves: Primitives,
    values: Sequence[Tensor],
    *,
    weights: Sequence[Tensor],
    biases: Sequence[Tensor] | None,
    means: Means,
) -> list[Tensor]:
    """Run a plan; means by lengths are not taken, since the weights are used as they are.

    Args:
        plan: The plan.
        moves: What a layout does, nothing of it in place.
        values: For every source.
        weights: For every pair of a source and a target (n_maps, in, out).
        biases: For every target (n_biases, out).
        means: What makes means of sums.

    Returns:
        For every target.
    """
    read = means.scaled(loop.read(plan.source, 0, moves, values), values[0].dtype)
    if plan.has_gaps:  # permutations that a symmetry makes equal are missing from some reads of a level
        weights = [torch.cat([weight, torch.zeros_like(weight[:1])]) for weight in weights]
    widths = [weight.shape[-1] for weight in weights[: len(plan.target.roots)]]
    written: dict[int, Tensor] = {}
    for level, (source, target) in enumerate(zip(plan.source.levels, plan.target.levels, strict=True)):
        written[target] = _mix(plan, level, moves, read[source], weights)
        if level == 0 and biases is not None:
            written[target] = written[target] + torch.cat([bias.reshape(-1) for bias in biases])
    wholes = loop.write(plan.target, 1, moves, written, widths, values[0])
    return [moves.clean(1, root, whole) for root, whole in enumerate(wholes)]


def _mix(plan: Plan, level: int, moves: Primitives, read: Tensor, weights: Sequence[Tensor]) -> Tensor:
    """One product for each swap."""
    total: Tensor | None = None
    for number in range(len(plan.levels[level].permutations)):
        product = moves.permuted(level, number, read, back=False) @ _matrix(plan, level, number, weights)
        total = product if total is None else total + product
    assert total is not None
    return total


def _matrix(plan: Plan, level: int, number: int, weights: Sequence[Tensor]) -> Tensor:
    """The matrix of a level and swap, put together from a block for every pair of a source and a target."""
    reads, writes = _runs(plan.levels[level].contractions), _runs(plan.levels[level].broadcasts)
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


def _runs(contractions: Sequence[Contraction]) -> dict[int, tuple[int, int]]:
    """For every tensor that has some of these contractions the first of them and the end."""
    runs: dict[int, tuple[int, int]] = {}
    for place, contraction in enumerate(contractions):
        runs[contraction.tensor] = runs.get(contraction.tensor, (place, place))[0], place + 1
    return runs
