"""The one loop behind every layer: at each rank read, mix the channels there, swap, and write once.

Reads share their beginnings and writes their ends: a fold is one step away from a fold of higher rank, so a row sum
or a diagonal is computed once, and what is written at low rank is added up before it is broadcast further. The
gradient is the same loop on the transposed program.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from bellnet.execute.dense import Dense
from bellnet.plan import Fold, Level, Program, Swap


class Reader:
    """A tensor seen through folds, each computed once."""

    def __init__(self, backend: Dense, tensor: Tensor, sets: tuple[int, ...], *, mean: bool) -> None:
        self.backend = backend
        self.dtype = tensor.dtype
        self.mean = mean
        self._folded: dict[Fold, Tensor] = {Fold.identity(sets): tensor}
        self._levels: dict[tuple[int, ...], Tensor] = {}
        self._rows: dict[tuple[tuple[int, ...], Swap], Tensor] = {}

    def fold(self, fold: Fold) -> Tensor:
        """The tensor, folded."""
        if fold not in self._folded:
            assert fold.step is not None
            self._folded[fold] = self.backend.read(fold.step, self.fold(fold.step.parent), mean=self.mean)
        return self._folded[fold]

    def level(self, level: Level) -> Tensor:
        """All reads of a level, side by side in the channels."""
        if level.rank not in self._levels:
            folded = [self.fold(fold).to(self.dtype) for fold in level.reads]
            self._levels[level.rank] = folded[0] if len(folded) == 1 else torch.cat(folded, -1)
        return self._levels[level.rank]

    def rows(self, level: Level, swap: Swap) -> Tensor:
        """The reads of a level in swapped order, as the rows of a matrix."""
        if (level.rank, swap) not in self._rows:
            swapped = self.backend.swap(self.level(level), swap)
            self._rows[level.rank, swap] = swapped.reshape(-1, swapped.shape[-1])
        return self._rows[level.rank, swap]


def apply(program: Program, backend: Dense, reader: Reader, weights: Sequence[Tensor], bias: Tensor | None) -> Tensor:
    """Run a program on what the reader holds.

    Args:
        program: The levels to run.
        backend: The moves.
        reader: Sees the input through the folds of the program's source.
        weights: For every level the matrix of every swap, (swaps, reads * in_channels, writes * out_channels).
        bias: (writes of rank 0 * out_channels), or None.

    Returns:
        (batch, axes in the order of the identity fold, out_channels).
    """
    level_of = {fold: number for number, level in enumerate(program.levels) for fold in level.writes}
    root = Fold.identity(program.target)
    mixed: dict[int, Tensor] = {}
    arriving: dict[Fold, list[Tensor]] = {}
    on_diagonal: dict[Fold, list[tuple[Fold, Tensor]]] = {}
    for fold in program.writes:
        terms = arriving.pop(fold, [])
        if fold == root:
            total = backend.gather(fold, terms) if terms else None
            if fold in level_of:
                number = level_of[fold]
                total = _mix(backend, reader, program.levels[number], weights[number], bias, total)
            assert total is not None
        elif fold in level_of:
            number = level_of[fold]
            level = program.levels[number]
            if number not in mixed:
                mixed[number] = _mix(backend, reader, level, weights[number], bias if number == 0 else None, None)
            width = mixed[number].shape[-1] // len(level.writes)
            total = mixed[number].narrow(-1, level.writes.index(fold) * width, width)
            for term in terms:
                total = total + term
        else:
            total = backend.gather(fold, terms)
        for child, tensor in on_diagonal.pop(fold, []):
            assert child.step is not None
            backend.write_diagonal(child.step, tensor, total)
        if fold.step is None:
            return total
        if fold.step.kind == "diagonal":
            on_diagonal.setdefault(fold.step.parent, []).append((fold, total))
        else:
            written = backend.write(fold.step, total, mean=program.mean == "writes")
            arriving.setdefault(fold.step.parent, []).append(written)
    raise AssertionError("a program ends with the identity fold")


def pull_weights(program: Program, backend: Dense, reader: Reader, gradient: Reader) -> list[Tensor]:
    """The gradient of `apply` for its weights: for each swap, reads of the input times reads of the gradient."""
    pulled = []
    for level, transposed in zip(program.levels, program.transposed.levels, strict=True):
        straight = tuple(range(len(level.axis_sets)))
        narrow_input = _is_narrower(reader.level(level), gradient.level(transposed))
        products = []
        for swap, undo in zip(level.swaps, transposed.swaps, strict=True):
            if narrow_input:
                left, right = reader.rows(level, swap), gradient.rows(transposed, straight)
            else:
                left, right = reader.rows(level, straight), gradient.rows(transposed, undo)
            products.append(left.mT @ right)
        pulled.append(torch.stack(products) if len(products) > 1 else products[0].unsqueeze(0))
    return pulled


def _mix(
    backend: Dense, reader: Reader, level: Level, weight: Tensor, bias: Tensor | None, total: Tensor | None
) -> Tensor:
    read = reader.level(level)
    shape = (*read.shape[:-1], weight.shape[-1])
    swap_input = read.shape[-1] <= weight.shape[-1]
    straight = tuple(range(len(level.axis_sets)))
    for swap, matrix in zip(level.swaps, weight.unbind(0), strict=True):
        if swap == straight or swap_input:
            rows = reader.rows(level, swap)
            if total is None:
                product = rows @ matrix if bias is None else torch.addmm(bias, rows, matrix)
                total = product.reshape(shape)
            else:
                total.view(-1, shape[-1]).addmm_(rows, matrix)
        else:
            product = (reader.rows(level, straight) @ matrix).reshape(shape)
            assert total is not None
            total.add_(backend.swap(product, swap))
    assert total is not None
    return total


def _is_narrower(one: Tensor, other: Tensor) -> bool:
    return one.shape[-1] <= other.shape[-1]
