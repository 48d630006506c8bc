"""The one loop behind every layer: at each rank read, mix the channels there, swap, and write once.

Reads share their beginnings and writes their ends: a fold is one step away from a fold of higher rank, so a row sum
or a diagonal is computed once, and what is written at low rank is added up before it is broadcast further. The
gradient is the same loop on the transposed program.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from bellnet.execute.dense import Dense
from bellnet.execute.transforms import may_write_in_place
from bellnet.plan import Program


class Reader:
    """A (batch, *axes, channels) tensor seen through the folds of a program's source, each computed once."""

    def __init__(self, program: Program, backend: Dense, tensor: Tensor) -> None:
        self.program = program
        self.backend = backend
        folded = [backend.swap(tensor, program.source_order)]
        for step in program.read_steps:
            folded.append(backend.read(step, folded[step.parent], mean=program.mean == "reads"))
        self.levels = [_side_by_side([folded[number] for number in reads], tensor) for reads in program.level_reads]

    def rows(self, level: int, swap: int) -> Tensor:
        """All reads of a level, its axes swapped, as the rows of a matrix; a copy unless nothing is swapped."""
        # Not kept: r! copies of a tensor of full order would be held at once.
        swapped = self.backend.swap(self.levels[level], self.program.level_swaps[level][swap])
        return swapped.reshape(-1, swapped.shape[-1])


def apply(reader: Reader, weights: Sequence[Tensor], bias: Tensor | None) -> Tensor:
    """Run the reader's program on what it sees.

    Args:
        reader: The input.
        weights: For every level the matrix of every swap, (swaps, reads * in_channels, writes * out_channels).
        bias: (writes of rank 0 * out_channels), or None.

    Returns:
        (batch, *axes, out_channels).
    """
    program, backend = reader.program, reader.backend
    mixed: list[Tensor | None] = [None] * len(program.levels)
    arriving: list[list[Tensor]] = [[] for _ in program.write_steps]
    on_diagonal: list[list[tuple[int, Tensor]]] = [[] for _ in program.write_steps]
    total: Tensor | None = None
    for number, step in enumerate(program.write_steps):
        terms = arriving[number]
        if step.kind != "done" and step.level >= 0:
            level = mixed[step.level]
            if level is None:
                level = _mix(reader, step.level, weights[step.level], bias, None)
                mixed[step.level] = level
            width = level.shape[-1] // len(program.levels[step.level].writes)
            total = level.narrow(-1, step.column * width, width)
            for term in terms:
                total = total + term
        else:
            total = backend.gather(step.sets, terms) if terms else None
            if step.level >= 0:
                total = _mix(reader, step.level, weights[step.level], bias, total)
            assert total is not None
        for child, tensor in on_diagonal[number]:
            backend.write_diagonal(program.write_steps[child], tensor, total)
        if step.kind == "diagonal":
            on_diagonal[step.parent].append((number, total))
        elif step.kind == "sum":
            arriving[step.parent].append(backend.write(step, total, mean=program.mean == "writes"))
    assert total is not None
    return backend.clean(backend.swap(total, program.target_order), program.target)


def pull_weights(reader: Reader, gradient: Reader) -> list[Tensor]:
    """The gradient of `apply` for its weights: for each swap, reads of the input times reads of the gradient."""
    levels = range(len(reader.levels))
    return [torch.stack(_pull_level(reader, gradient, level)) for level in levels]


def _pull_level(reader: Reader, gradient: Reader, level: int) -> list[Tensor]:
    swaps = range(len(reader.program.level_swaps[level]))
    # Of the two sides the narrower one is copied into the swapped order. The first swap is the identity.
    if reader.levels[level].shape[-1] <= gradient.levels[level].shape[-1]:
        return [reader.rows(level, swap).mT @ gradient.rows(level, 0) for swap in swaps]
    return [reader.rows(level, 0).mT @ gradient.rows(level, swap) for swap in swaps]


def _mix(reader: Reader, level: int, weight: Tensor, bias: Tensor | None, total: Tensor | None) -> Tensor:
    """Multiply the reads of a level by the matrix of every swap and add up, into `total` if there is one.

    The bias belongs to level 0.
    """
    shape = (*reader.levels[level].shape[:-1], weight.shape[-1])
    if total is None:
        rows = reader.rows(level, 0)
        product = rows @ weight[0] if bias is None or level > 0 else torch.addmm(bias, rows, weight[0])
        total = product.reshape(shape)
    else:
        total = _add_product(total, reader.rows(level, 0), weight[0])
    swap_input = reader.levels[level].shape[-1] <= weight.shape[-1]
    for swap, order in enumerate(reader.program.level_swaps[level][1:], 1):
        # Passed on without a name: two copies of a tensor of full order need not be held at once.
        if swap_input:
            total = _add_product(total, reader.rows(level, swap), weight[swap])
        else:
            total.add_(reader.backend.swap((reader.rows(level, 0) @ weight[swap]).reshape(shape), order))
    return total


def _add_product(total: Tensor, rows: Tensor, matrix: Tensor) -> Tensor:
    if may_write_in_place():
        total.view(-1, total.shape[-1]).addmm_(rows, matrix)
        return total
    return total + (rows @ matrix).reshape(total.shape)


def _side_by_side(tensors: list[Tensor], like: Tensor) -> Tensor:
    tensors = [tensor.to(like.dtype) for tensor in tensors]
    return tensors[0] if len(tensors) == 1 else torch.cat(tensors, -1)
