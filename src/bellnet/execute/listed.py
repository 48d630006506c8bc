"""A plan on sparse tensors: read, mix, write; and the same backwards.

Which tuples are listed depends on the supports alone; where everything stands is found once for a pair of them. A swap
looks every tuple up in another order, and what is not listed is zero. Large rows are finished piece by piece, while the
processor's cache holds them, and their memory is used again.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from bellnet.execute.absent import what_is_left
from bellnet.execute.compiled import CompiledWalk, can_compile
from bellnet.execute.gathered import GatheredWalk
from bellnet.execute.incidence import Incidence
from bellnet.execute.layout import Channels
from bellnet.execute.level_matrices import LevelMatrices
from bellnet.execute.listed_program import ListedProgram
from bellnet.execute.listed_side import ListedSide
from bellnet.execute.means import NO_MEANS, Means, scale
from bellnet.execute.narrow import TILE, add_columns_by_columns, add_product, product, widen
from bellnet.plan import Branch, Plan, Present, Swap
from bellnet.tensors import Support
from bellnet.tensors.keeping import making_constants

Matrices = list[list[Tensor]]
"""For every level and swap one."""

PIECE_BYTES, FEWEST_ROWS = 2**21, 1024
"""All that is added to rows is added up for so many of them at once."""


class Supports(NamedTuple):
    """The layout of listed tuples: those of inputs, those that results are to list, and by what means divide.

    Attributes:
        sources: For every source.
        targets: For every target.
        lengths: The number of nodes of every node set, if all graphs have the same; else None.
        listed: Whether a mean divides by the number of listed tuples, or by that of all tuples of nodes.
    """

    sources: tuple[Support, ...]
    targets: tuple[Support, ...]
    lengths: tuple[int, ...] | None
    listed: bool
    has_axes: bool = False

    def key(self, values: Sequence[Tensor]) -> None:
        """What is prepared is kept with the supports."""

    def present(self, plan: Plan) -> Present:
        """The maps that have something to do."""
        return what_is_left(plan, self.sources, self.targets)

    def walk(
        self,
        left: Present,
        channels: Channels,
        values: Sequence[Tensor],
        *,
        mean: bool,
        matrices: Callable[[], LevelMatrices],
    ) -> CompiledWalk | GatheredWalk:
        """What runs a plan with so many channels."""
        listed = Listed.on(left.plan, self)
        if can_compile(left.plan, values):
            return listed.compiled(left, channels, values[0], mean=mean)
        walk = ListedWalk(listed, channels)
        return GatheredWalk(walk, matrices(), walk.means(values) if mean else NO_MEANS)

    def moves(self, plan: Plan, values: Sequence[Tensor], *, mean: bool) -> tuple["Listed", Means]:
        """The moves in plain operations, and how the sums of these values become means if they are wanted."""
        listed = Listed.on(plan, self)
        return listed, listed.factors(values[0]) if mean else NO_MEANS


class Passage:
    """From the bundles of one side to those of another: where tuples are found again.

    Args:
        source: Where they are looked up.
        target: Whose tuples are looked up.
        levels: For every level the bundle of the source, that of the target, and the swaps between them.
    """

    def __init__(
        self, source: ListedSide, target: ListedSide, levels: Sequence[tuple[int, int, tuple[Swap, ...]]]
    ) -> None:
        self.source, self.target, self.levels = source, target, levels
        self._lookups: dict[tuple[int, int], Incidence | None] = {}

    def lookup(self, level: int, number: int) -> Incidence | None:
        """Where the tuples of the target are found in the source, swapped; None if the rows are the same."""
        key = level, number
        if key not in self._lookups:
            source, target, swaps = self.levels[level]
            with making_constants():
                found = self.source.shadow(source).lookup(swaps[number], self.target.shadow(target))
            self._lookups[key] = found
        return self._lookups[key]

    def rows(self, level: int, number: int, read: Tensor, piece: slice | None) -> Tensor | None:
        """What was read, where the target has its tuples, or some of them; None if all is zero."""
        lookup = self.lookup(level, number)
        if lookup is None:
            return read if piece is None else read[piece]
        return lookup.find(read, piece)

    def n_rows(self, level: int) -> int:
        """How many tuples the target has."""
        return self.target.shadow(self.levels[level][1]).n_rows

    def accumulate(
        self,
        level: int,
        read: Tensor,
        matrices: Sequence[Tensor],
        *,
        begun: Callable[[slice | None], Tensor] | None,
        bias: Tensor | None,
        totals: Tensor,
        witness: "Witness | None" = None,
    ) -> Tensor:
        """Add what was read, times the matrix of every swap, to what was begun.

        Args:
            level: Which level.
            read: (tuples of the source, in).
            matrices: For every swap (in, out).
            begun: What is there already, for some of the tuples of the target; None for nothing.
            bias: (out), if nothing was begun.
            totals: The sums of all rows of every graph, which are finite only if all rows are.
            witness: Sees the looked-up rows of every swap.
        """
        inner, outer = matrices[0].shape
        n_rows = self.n_rows(level)
        by_rows = inner <= outer or n_rows != len(read)
        wide = widen(matrices, n_rows, totals)
        chosen = wide if by_rows else wide[:1]
        pieces = _pieces(n_rows, max(inner, outer), read)
        total = self.target.shadow(self.levels[level][1]).memory.empty(n_rows, outer, read)
        is_begun = begun is not None and total is None and len(pieces) == 1
        if total is None:
            total = begun(None) if begun is not None and is_begun else read.new_empty(n_rows, outer)
        for piece in pieces:
            into = total if piece is None else total[piece]
            part = into if is_begun else None if begun is None else begun(piece)
            for number, matrix in enumerate(chosen):
                rows = self.rows(level, number, read, piece)
                if rows is None:
                    continue
                if witness is not None:
                    witness.see(level, number, piece, rows)
                if part is not None:
                    add_product(part, rows, matrix)
                elif bias is None:
                    part = into
                    product(rows, matrix, into)
                else:
                    part = torch.addmm(bias, rows, matrices[0], out=into)
            if part is None:
                into.copy_(read.new_zeros(()) if bias is None else bias)
            elif part is not into:
                into.copy_(part)
        for number in range(len(chosen), len(wide)):
            mixed = product(read, wide[number]).view(len(read), outer)
            for piece in pieces:
                rows = self.rows(level, number, mixed, piece)
                if rows is not None:
                    (total if piece is None else total[piece]).add_(rows)
        return total


class Witness:
    """The gradient of the matrices, from what is read of the gradient and looked up where the input was read."""

    def __init__(self, reads: Sequence[Tensor], of_matrices: Sequence[Sequence[Tensor]]) -> None:
        self.reads, self.of_matrices = reads, of_matrices
        self.seen: set[tuple[int, int]] = set()

    def see(self, level: int, number: int, piece: slice | None, rows: Tensor) -> None:
        """Use the rows of a swap while they are there."""
        self.seen.add((level, number))
        read = self.reads[level]
        add_columns_by_columns(self.of_matrices[level][number], read if piece is None else read[piece], rows)


class ListedWalk:
    """A plan between supports, with so many channels."""

    def __init__(self, listed: "Listed", channels: Channels) -> None:
        self._listed, self.plan = listed, listed.plan
        self._inside, self._outside = channels

    def means(self, values: Sequence[Tensor]) -> Means:
        """How the sums of these values become means; the weights see to it, if they can."""
        lengths = self._listed.lengths
        if lengths is not None and values[0].dtype in (torch.float32, torch.float64):
            return Means(lengths)
        return self._listed.factors(values[0]).over_columns(self.plan.source, self._inside)

    def views(self, matrices: LevelMatrices, gathered: Tensor) -> Matrices:
        """The matrices as they are used."""
        return matrices.apart(gathered)

    def forward(
        self, values: Sequence[Tensor], matrices: Matrices, *, bias: Tensor | None, means: Means
    ) -> tuple[list[Tensor], list[Tensor]]:
        """The results, and what was read but the values themselves."""
        listed = self._listed
        read = means.scaled(listed.source.read(values), values[0].dtype)
        return _walk(listed.there, self._outside, read, matrices, bias), read[len(values) :]

    def backward(
        self,
        gradients: Sequence[Tensor],
        values: Sequence[Tensor],
        read: list[Tensor],
        *,
        matrices: Matrices | None,
        of_matrices: Matrices,
        of_bias: Tensor | None,
        means: Means,
    ) -> list[Tensor] | None:
        """The gradients of the values, if matrices are given; those of matrices and bias are added in place."""
        listed, plan, dtype = self._listed, self.plan, values[0].dtype
        read = [*values, *read]
        pulled = [one if one.dtype == dtype else one.to(dtype) for one in listed.target.read(gradients)]
        if of_bias is not None:
            of_bias.add_(pulled[plan.target.levels[0]].sum(0))
        reads = [read[number] for number in plan.source.levels]
        witness = Witness(reads, of_matrices)
        results = None
        if matrices is not None:
            transposed = [[matrix.mT for matrix in of_level] for of_level in matrices]
            results = _walk(listed.back, self._inside, pulled, transposed, None, means, witness)
        for level, of_level in enumerate(of_matrices):
            for number, into in enumerate(of_level):
                if (level, number) not in witness.seen:
                    self._pair(level, number, reads[level], pulled[plan.target.levels[level]], into)
        return results

    def _pair(self, level: int, number: int, read: Tensor, pulled: Tensor, into: Tensor) -> None:
        """Add the gradient of one matrix: of the two sides the narrower one is looked up."""
        if into.shape[0] <= into.shape[1]:
            for piece in _pieces(len(pulled), into.shape[1], pulled):
                rows = self._listed.there.rows(level, number, read, piece)
                if rows is not None:
                    add_columns_by_columns(into, rows, pulled if piece is None else pulled[piece])
        else:
            for piece in _pieces(len(read), into.shape[0], read):
                rows = self._listed.back.rows(level, number, pulled, piece)
                if rows is not None:
                    add_columns_by_columns(into, read if piece is None else read[piece], rows)


class Listed:
    """A plan between supports: where everything stands, and its moves in plain operations."""

    def __init__(self, plan: Plan, supports: Supports) -> None:
        self.plan, self.listed = plan, supports.listed
        self.lengths = None if supports.listed else supports.lengths
        source, target = ListedSide.on(plan.source, supports.sources), ListedSide.on(plan.target, supports.targets)
        self.source, self.target = source, target
        levels = list(zip(plan.source.levels, plan.target.levels, plan.levels, strict=True))
        self.there = Passage(source, target, [(one, other, level.swaps) for one, other, level in levels])
        self.back = Passage(target, source, [(other, one, _inverses(level.swaps)) for one, other, level in levels])
        self._programs: dict[tuple[Channels, torch.dtype, bool], ListedProgram] = {}

    @classmethod
    def on(cls, plan: Plan, supports: Supports) -> "Listed":
        """The one for these supports, kept with the first as long as the others are there."""
        first, *others = *supports.sources, *supports.targets
        return first.once_with(others, ("listed", plan, supports.listed), lambda: cls(plan, supports))

    def compiled(self, left: Present, channels: Channels, like: Tensor, *, mean: bool) -> CompiledWalk:
        """What runs the plan with so many channels by kernels."""
        key, sides = (channels, like.dtype, mean), (self.source, self.target)
        by_weights = mean and self.lengths is not None
        if key not in self._programs:
            means = Means(self.lengths) if by_weights else self.factors(like) if mean else NO_MEANS
            ways = self.back, self.there
            found = [
                [way.lookup(level, number) for way in ways for number in range(len(one.swaps))]
                for level, one in enumerate(self.plan.levels)
            ]
            self._programs[key] = ListedProgram(left, channels, sides, found, means, like.dtype)
        memory = self.source.memory(), self.target.memory()
        shapes = [(self.target.shadow(root).n_rows, width) for root, width in enumerate(channels[1])]
        return CompiledWalk(self._programs[key], left, channels, like, shapes, mean=by_weights, memory=memory)

    def factors(self, values: Tensor) -> Means:
        """What turns the sums of these values into means."""
        dtype = torch.promote_types(values.dtype, torch.float32)
        return Means(None, self.source.shadows.factors(dtype, listed=self.listed))

    def fold(self, number: int, column: int, branch: Branch, parent: Tensor) -> Tensor:
        """The fold in a column of a bundle of the source, from its parent."""
        return self.source.shadows.moves[number, column].add_up_plainly(parent)

    def spread(self, number: int, column: int, branch: Branch, child: Tensor) -> Tensor:
        """The transpose, for the target: what the parent of such a fold gets from it."""
        return self.target.shadows.moves[number, column].hand_out(child)

    def swapped(self, level: int, number: int, read: Tensor) -> Tensor:
        """What was read on a level, for one of its swaps, at the tuples of the target."""
        lookup = self.there.lookup(level, number)
        return read if lookup is None else lookup.hand_out(read)

    def zeros(self, target: int, like: Tensor, width: int) -> Tensor:
        """A result without values."""
        return like.new_zeros(self.target.shadow(target).n_rows, width)

    def clean(self, target: int, result: Tensor) -> Tensor:
        """The result as it is: nothing is listed that is no tuple of nodes."""
        return result


def _walk(
    passage: Passage,
    channels: tuple[int, ...],
    read: list[Tensor],
    matrices: Matrices,
    bias: Tensor | None,
    means: Means | None = None,
    witness: Witness | None = None,
) -> list[Tensor]:
    """Mix what was read on every level and write it, to tensors with so many channels."""
    side, totals = passage.target, read[passage.levels[0][0]]
    bundles: list[Tensor | None] = [None] * len(side.tree.bundles)
    last: dict[int, int] = {}

    def mixed(level: int, begun: Callable[[slice | None], Tensor] | None) -> Tensor:
        return passage.accumulate(
            level,
            read[passage.levels[level][0]],
            matrices[level],
            begun=begun,
            bias=None if level else bias,
            totals=totals,
            witness=witness,
        )

    for level, (_, target, _) in enumerate(passage.levels):
        if target < side.n_roots:
            last[target] = level
        else:
            bundles[target] = mixed(level, None)
    if means is not None and means.factors is not None:
        pairs = zip(bundles, means.factors, strict=True)
        bundles = [one if one is None else scale(one, factors).to(read[0].dtype) for one, factors in pairs]
    results = []
    for root, begun in enumerate(side.write(bundles, channels)):
        if root in last:
            whole = mixed(last[root], begun.at)
        elif begun.at is not None:
            whole = begun.at(None)
        else:
            whole = read[0].new_zeros(side.shadow(root).n_rows, channels[root])
        results.append(begun.finish(whole))
    return results


def _inverses(swaps: tuple[Swap, ...]) -> tuple[Swap, ...]:
    return tuple(tuple(swap.index(axis) for axis in range(len(swap))) for swap in swaps)


def _pieces(n_rows: int, width: int, like: Tensor) -> Sequence[slice | None]:
    """Some rows after the others, each beginning at a tile; or None, all at once, if they are few."""
    some = PIECE_BYTES // (like.element_size() * max(width, 1))
    some = max(some - some % TILE, FEWEST_ROWS)
    if n_rows <= some or like.device.type != "cpu":
        return (None,)
    return [slice(start, min(start + some, n_rows)) for start in range(0, n_rows, some)]
