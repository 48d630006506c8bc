"""The one loop behind every layer: at each rank read, mix the channels there, swap, and write once.

Reads share their beginnings and writes their ends: a fold is one step away from a fold of higher rank, so a row sum
or a diagonal is computed once, and what is written at low rank is added up before it is broadcast further. The
gradient is the same loop on the transposed program.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from bellnet.execute import narrow
from bellnet.execute.column import Column
from bellnet.execute.executor import Executor, Place
from bellnet.execute.transforms import is_watched, may_write_in_place
from bellnet.plan import Program


class Reader:
    """A (batch, *axes, channels) tensor seen through the folds of a program's source, each computed once.

    Its axes are grouped by node set. `levels` are the reads of each level, side by side in the channels.
    """

    def __init__(self, program: Program, backend: Executor, levels: list[Tensor]) -> None:
        self.program = program
        self.backend = backend
        self.levels = levels

    @classmethod
    def of(cls, program: Program, backend: Executor, tensor: Tensor) -> "Reader":
        """Read a tensor."""
        levels = _levels(program, backend, tensor)
        if program.mean == "reads":
            levels = [backend.divide(number, level) for number, level in enumerate(levels)]
        return cls(
            program, backend, [level if level.dtype == tensor.dtype else level.to(tensor.dtype) for level in levels]
        )

    @cached_property
    def is_finite(self) -> bool:
        """Whether no number in the tensor is infinite or not a number: the sums of all of them would show it."""
        return bool(self.levels[0].isfinite().all())

    def own(self, level: int) -> Tensor:
        """All reads of a level as the rows of a matrix, where they were read."""
        return self.levels[level].reshape(-1, self.levels[level].shape[-1])

    def places(self, level: int, width: int) -> Sequence[Place]:
        """Where to mix so many channels from the reads of a level, one place after the other."""
        return self.backend.places(self.levels[level], level, width)

    def rows(self, level: int, swap: int, place: Place, spare: Tensor | None = None) -> Tensor | None:
        """The reads of a level at a place, with the axes swapped, as the rows of a matrix; None if all are zero.

        The first swap is none. A copy is not kept: r! copies of a tensor of full order would be held at once. It may
        be written into `spare` if that is given.
        """
        return self.backend.rows(self.levels[level], level, self.program.level_swaps[level][swap], place, spare)

    def pieces(self, level: int, swap: int) -> Iterator[tuple[Place, Tensor]]:
        """The same place after place, without those that are zero."""
        for place in self.places(level, self.levels[level].shape[-1]):
            rows = self.rows(level, swap, place)
            if rows is not None:
                yield place, rows


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
    arriving: list[list[Any]] = [[] for _ in program.write_steps]
    on_diagonal: list[list[tuple[int, Column]]] = [[] for _ in program.write_steps]
    for number, step in enumerate(program.write_steps):
        terms = arriving[number]
        if step.kind != "done" and step.level >= 0:
            level = mixed[step.level]
            if level is None:
                level = _mix(reader, step.level, weights[step.level], bias, None, witness)
                level = backend.divide(step.level, level) if program.mean == "writes" else level
                mixed[step.level] = level
            fold = backend.add(Column(level, step.column, len(program.levels[step.level].writes)), terms)
        else:
            gather = backend.gather(step.sets, terms) if terms else None
            if step.level >= 0:
                fold = Column(_mix(reader, step.level, weights[step.level], bias, gather, witness))
            else:
                assert gather is not None
                fold = Column(gather(None))
        for child, column in on_diagonal[number]:
            fold = backend.write_diagonal(program.write_steps[child], column, fold)
        if step.kind == "diagonal":
            on_diagonal[step.parent].append((number, fold))
        elif step.kind == "sum":
            arriving[step.parent].append(backend.write(step, fold, mean=program.mean == "writes"))
    return backend.clean(fold.tensor, program.target_axes)


class WeightGradient:
    """The gradient of `apply` for its weights: for each swap, reads of the input times reads of the gradient.

    Handed to `apply` on the gradient, it uses the swapped copies that are made there; the rest is computed at the end.
    """

    def __init__(self, reader: Reader, gradient: Reader) -> None:
        self.reader = reader
        self.gradient = gradient
        self._products: dict[tuple[int, int], Tensor] = {}

    def see(self, level: int, swap: int, place: Place, rows: Tensor) -> None:
        """Use a swapped copy of the gradient, or a piece of it, while it is there."""
        product = narrow.columns_by_columns(_at(self.reader.own(level), place), rows)
        before = self._products.get((level, swap))
        self._products[level, swap] = product if before is None else before + product

    def levels(self) -> list[Tensor]:
        """For every level (swaps, reads * in_channels, writes * out_channels)."""
        swaps = [range(len(orders)) for orders in self.reader.program.level_swaps]
        found = [[self._product(level, swap) for swap in some] for level, some in enumerate(swaps)]
        return [torch.stack(products) if len(products) > 1 else products[0].unsqueeze(0) for products in found]

    def _product(self, level: int, swap: int) -> Tensor:
        if (level, swap) in self._products:
            return self._products[level, swap]
        # Of the two sides the narrower one is copied into the swapped order. The first swap is the identity.
        own, gradient = self.reader.own(level), self.gradient.own(level)
        if own.shape[1] <= gradient.shape[1]:
            pieces = self.reader.pieces(level, swap)
            products = [narrow.columns_by_columns(rows, _at(gradient, place)) for place, rows in pieces]
        else:
            pieces = self.gradient.pieces(level, swap)
            products = [narrow.columns_by_columns(_at(own, place), rows) for place, rows in pieces]
        return sum(products[1:], products[0]) if products else own.new_zeros(own.shape[1], gradient.shape[1])


def _levels(program: Program, backend: Executor, tensor: Tensor) -> list[Tensor]:
    """The reads of every level side by side, and on the way what they are read from."""
    folds = {0: Column(tensor)}
    levels: dict[tuple[int, ...], Tensor] = {(0,): tensor}
    for numbers in program.read_together:
        steps = [program.read_steps[number - 1] for number in numbers]
        reads = [backend.read(step, folds[step.parent], mean=program.mean == "reads") for step in steps]
        levels[numbers], columns = backend.side_by_side(reads)
        folds.update(zip(numbers, columns, strict=True))
    return [levels[numbers] for numbers in program.level_reads]


def _mix(
    reader: Reader,
    level: int,
    weight: Tensor,
    bias: Tensor | None,
    gather: Callable[[Place], Tensor] | None,
    witness: "WeightGradient | None",
) -> Tensor:
    """Multiply the reads of a level by the matrix of every swap and add up, with what is gathered if there is any.

    The bias belongs to level 0.
    """
    backend, read, width = reader.backend, reader.levels[level], weight.shape[-1]
    shape = backend.shape(read, level)
    n_rows = math.prod(shape)
    swap_input = read.shape[-1] <= width or n_rows != read.shape[:-1].numel()
    bias = bias if level == 0 else None
    # Widened matrices multiply neighbouring rows by zeros, and those may belong to another graph.
    if level > 0 and narrow.gains(weight, n_rows) and reader.is_finite:
        weight = narrow.widen(weight, n_rows)
    matrices = weight if swap_input else weight[:1]
    places = reader.places(level, width) if gather is not None or len(matrices) > 1 else (None,)
    # Fresh memory costs more than the copy into it, so where nobody is watching one piece of memory serves all swaps.
    reuse = len(matrices) > 2 and not is_watched()
    spare = backend.spare(read) if reuse else None
    memory = total = backend.memory(read, level, width)
    if gather is not None and memory is None:
        total = gather(None)
    elif memory is None and len(places) > 1:
        total = read.new_empty(*shape, width)
    for place in places:
        into = None if total is None else _at(total, place)
        part = None if gather is None else into if memory is None else gather(place)
        for swap, matrix in enumerate(matrices):
            rows = reader.rows(level, swap, place, spare)
            if rows is None and part is None:
                rows = read.new_zeros(n_rows if place is None else place.stop - place.start, read.shape[-1])
            if rows is not None:
                part = _first_product(rows, matrix, bias, into) if part is None else _add_product(part, rows, matrix)
                # Rows that stay are seen later: small blocks between large ones make the C library give memory back.
                if witness is not None and (swap or place is not None):
                    witness.see(level, swap, place, rows)
            del rows  # two copies of a tensor of full order need not be held at once
        assert part is not None
        if memory is not None and gather is not None:
            _at(memory, place).copy_(part.view(-1, width))
        elif memory is None and place is None:
            total = part if part.shape == (*shape, width) else part.reshape(*shape, width)
    assert total is not None
    for swap in range(len(matrices), len(weight)):
        product = narrow.product(reader.own(level), weight[swap], backend.memory(read, level, width))
        product = product.reshape(*read.shape[:-1], width)
        for place in backend.places(product, level, width):
            swapped = backend.swap(product, level, reader.program.level_swaps[level][swap], place)
            if swapped is not None:
                _at(total, place).add_(swapped)
    return total


def _first_product(rows: Tensor, matrix: Tensor, bias: Tensor | None, into: Tensor | None) -> Tensor:
    return narrow.product(rows, matrix, into) if bias is None else torch.addmm(bias, rows, matrix, out=into)


def _add_product(total: Tensor, rows: Tensor, matrix: Tensor) -> Tensor:
    if may_write_in_place():
        narrow.add_product(total, rows, matrix)
        return total
    return total + narrow.product(rows, matrix).reshape(total.shape)


def _at(rows: Tensor, place: Place) -> Tensor:
    return rows if place is None else rows[place]
