"""The one loop behind every layer: at each rank read, mix the channels there, swap, and write once.

Reads share their beginnings and writes their ends: a fold is one step away from a fold of higher rank, so a row sum
or a diagonal is computed once, and what is written at low rank is added up before it is broadcast further. The
gradient is the same loop on the transposed program.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from bellnet.execute.dense import Dense
from bellnet.execute.transforms import is_transformed, may_write_in_place
from bellnet.plan import Program


class Reader:
    """A (batch, *axes, channels) tensor seen through the folds of a program's source, each computed once.

    Its axes are grouped by node set. `levels` are the reads of each level, side by side in the channels.
    """

    def __init__(self, program: Program, backend: Dense, levels: list[Tensor]) -> None:
        self.program = program
        self.backend = backend
        self.levels = levels

    @classmethod
    def of(cls, program: Program, backend: Dense, tensor: Tensor) -> "Reader":
        """Read a tensor."""
        folded = [tensor]
        for step in program.read_steps:
            folded.append(backend.read(step, folded[step.parent], mean=program.mean == "reads"))
        levels = [_side_by_side([folded[number] for number in reads], tensor) for reads in program.level_reads]
        return cls(program, backend, levels)

    def rows(self, level: int, swap: int, spare: Tensor | None = None) -> Tensor:
        """All reads of a level, its axes swapped, as the rows of a matrix; a copy unless nothing is swapped.

        The copy is written into `spare` if that is given. It is not kept: r! copies of a tensor of full order would be
        held at once.
        """
        swapped = self.backend.swap(self.levels[level], self.program.level_swaps[level][swap])
        if spare is None:
            return swapped.reshape(-1, swapped.shape[-1])
        spare.view(swapped.shape).copy_(swapped)
        return spare


def apply(
    reader: Reader, weights: Sequence[Tensor], bias: Tensor | None, witness: "WeightGradient | None" = None
) -> Tensor:
    """Run the reader's program on what it sees.

    Args:
        reader: The input.
        weights: For every level the matrix of every swap, (swaps, reads * in_channels, writes * out_channels).
        bias: (writes of rank 0 * out_channels), or None.
        witness: Sees the swapped copies of what is read.

    Returns:
        (batch, *axes grouped by node set, out_channels), a tensor of its own and not a view.
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
                level = _mix(reader, step.level, weights[step.level], bias, None, witness)
                mixed[step.level] = level
            width = level.shape[-1] // len(program.levels[step.level].writes)
            total = level.narrow(-1, step.column * width, width)
            for term in terms:
                total = total + term
        else:
            total = backend.gather(step.sets, terms) if terms else None
            if step.level >= 0:
                total = _mix(reader, step.level, weights[step.level], bias, total, witness)
            assert total is not None
        for child, tensor in on_diagonal[number]:
            backend.write_diagonal(program.write_steps[child], tensor, total)
        if step.kind == "diagonal":
            on_diagonal[step.parent].append((number, total))
        elif step.kind == "sum":
            arriving[step.parent].append(backend.write(step, total, mean=program.mean == "writes"))
    assert total is not None
    return backend.clean(total, program.target_axes)


class WeightGradient:
    """The gradient of `apply` for its weights: for each swap, reads of the input times reads of the gradient.

    Handed to `apply` on the gradient, it uses the swapped copies that are made there; the rest is computed at the end.
    """

    def __init__(self, reader: Reader, gradient: Reader) -> None:
        self.reader = reader
        self.gradient = gradient
        self._products: dict[tuple[int, int], Tensor] = {}

    def see(self, level: int, swap: int, rows: Tensor) -> None:
        """Use a swapped copy of the gradient while it is there."""
        self._products[level, swap] = self.reader.rows(level, 0).mT @ rows

    def levels(self) -> list[Tensor]:
        """For every level (swaps, reads * in_channels, writes * out_channels)."""
        swaps = [range(len(orders)) for orders in self.reader.program.level_swaps]
        found = [[self._product(level, swap) for swap in some] for level, some in enumerate(swaps)]
        return [torch.stack(products) if len(products) > 1 else products[0].unsqueeze(0) for products in found]

    def _product(self, level: int, swap: int) -> Tensor:
        if (level, swap) in self._products:
            return self._products[level, swap]
        # Of the two sides the narrower one is copied into the swapped order. The first swap is the identity.
        if self.reader.levels[level].shape[-1] <= self.gradient.levels[level].shape[-1]:
            return self.reader.rows(level, swap).mT @ self.gradient.rows(level, 0)
        return self.reader.rows(level, 0).mT @ self.gradient.rows(level, swap)


def _mix(
    reader: Reader,
    level: int,
    weight: Tensor,
    bias: Tensor | None,
    total: Tensor | None,
    witness: "WeightGradient | None",
) -> Tensor:
    """Multiply the reads of a level by the matrix of every swap and add up, into `total` if there is one.

    The bias belongs to level 0.
    """
    shape = (*reader.levels[level].shape[:-1], weight.shape[-1])
    if total is None:
        rows = reader.rows(level, 0)
        product = rows @ weight[0] if bias is None or level > 0 else torch.addmm(bias, rows, weight[0])
        total = product if product.shape == shape else product.reshape(shape)
    else:
        total = _add_product(total, reader.rows(level, 0), weight[0])
    swap_input = reader.levels[level].shape[-1] <= weight.shape[-1]
    # Fresh memory costs more than the copy into it, so where nobody is watching one piece of memory serves all swaps.
    reuse = len(weight) > 2 and swap_input and not torch.is_grad_enabled() and not is_transformed()
    spare = torch.empty_like(reader.rows(level, 0), memory_format=torch.contiguous_format) if reuse else None
    for swap, order in enumerate(reader.program.level_swaps[level][1:], 1):
        if swap_input:
            rows = reader.rows(level, swap, spare)
            total = _add_product(total, rows, weight[swap])
            if witness is not None:
                witness.see(level, swap, rows)
            del rows  # two copies of a tensor of full order need not be held at once
        else:
            total.add_(reader.backend.swap((reader.rows(level, 0) @ weight[swap]).reshape(shape), order))
    return total


def _add_product(total: Tensor, rows: Tensor, matrix: Tensor) -> Tensor:
    if may_write_in_place():
        total.view(-1, total.shape[-1]).addmm_(rows, matrix)
        return total
    return total + (rows @ matrix).reshape(total.shape)


def _side_by_side(tensors: list[Tensor], like: Tensor) -> Tensor:
    tensors = [tensor if tensor.dtype == like.dtype else tensor.to(like.dtype) for tensor in tensors]
    return tensors[0] if len(tensors) == 1 else torch.cat(tensors, -1)
