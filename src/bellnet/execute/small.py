"""A plan on small dense tensors, in as few operations as there can be.

Small graphs cost mostly what happens between the operations. A fold is a sum of rows of its tensor, so all folds of a
side, and those of every swap, are sums that `embedding_bag` takes in one call; and what is mixed on all levels is
written by one call as well, which adds up rows the other way round. Between them is one product for every level. The
numbers of the rows depend on plan, lengths and batch alone and are kept. What a mean divides by is a weight of rows.
"""

from collections.abc import Sequence
from functools import lru_cache
from math import prod
from typing import NamedTuple

import torch
from torch import Tensor

from bellnet.execute.level_matrices import LevelMatrices, Place
from bellnet.execute.means import Means
from bellnet.execute.nodes import Nodes
from bellnet.execute.scratch import scratch
from bellnet.execute.zeros import zero_, zeroed
from bellnet.plan import Fold, Plan, Swap, Tree
from bellnet.tensors.keeping import making_constants


class Section(NamedTuple):
    """Where the folds of a level stand: the first row, how many tuples there are, and the rows of each."""

    start: int
    n_tuples: int
    n_swaps: int
    n_columns: int


class Sums(NamedTuple):
    """Rows that are added up: those that `order` names from bounds[i] on, up to bounds[i + 1]."""

    order: Tensor
    bounds: Tensor

    def of(self, rows: Tensor, weights: Tensor | None) -> Tensor:
        """Row i of the result is a sum of rows."""
        return torch.embedding_bag(rows, self.order, self.bounds, False, 0, False, weights, True)[0]


class Side:
    """All folds of the tensors on one side of a plan, for so many graphs with so many nodes, one below the other.

    Attributes:
        sections: For every level where its folds are.
        n_rows: How many rows they have together.
        shape: Of the whole tensor, without channels.
    """

    def __init__(
        self, tree: Tree, swaps: Sequence[Sequence[Swap]], lengths: tuple[int, ...], n_graphs: int, device: torch.device
    ) -> None:
        self._tree = tree
        self.shape = (n_graphs, *[lengths[one] for one in tree.axes])
        whole = torch.arange(prod(self.shape), device=device).view(self.shape).unsqueeze(-1)
        known = {Fold.identity(tree.sets): whole}
        orders, counts, self.sections, self.n_rows = [], [], [], 0
        for number, several in zip(tree.levels, swaps, strict=True):
            folds = [_rows_of(fold, known) for fold in tree.bundles[number].folds]
            columns = [
                fold.permute(0, *[axis + 1 for axis in swap], -1).flatten(0, -2) for swap in several for fold in folds
            ]
            orders.append(torch.cat(columns, 1).flatten())
            counts.append(torch.tensor([one.shape[1] for one in columns], device=device).repeat(len(columns[0])))
            self.sections.append(Section(self.n_rows, len(columns[0]), len(several), len(folds)))
            self.n_rows += len(counts[-1])
        order, self._counts = torch.cat(orders), torch.cat(counts)
        ascending, places = order.sort(stable=True)
        of_rows = torch.repeat_interleave(torch.arange(self.n_rows, device=device), self._counts)[places]
        self._sorted = places
        self._down = Sums(order.int(), _bounds(self._counts))
        self._up = Sums(of_rows.int(), _bounds(torch.bincount(ascending, minlength=whole.numel())))
        self._places_of: dict[int, list[Place]] = {}
        self._means: dict[torch.dtype, tuple[Tensor, ...]] = {}

    def read(self, whole: Tensor, weights: Tensor | None) -> Tensor:
        """(rows, channels): all folds of (graphs, *axes, channels)."""
        return self._down.of(whole.reshape(-1, whole.shape[-1]), weights)

    def write(self, rows: Tensor, weights: Tensor | None) -> Tensor:
        """The transpose."""
        # Not a view, which autograd would guard: it is of that length already.
        return self._up.of(rows, weights).resize_(*self.shape, rows.shape[1])

    def levels(self, rows: Tensor) -> list[Tensor]:
        """For every level (tuples, swaps * columns * channels), as views."""
        channels = rows.shape[1]
        places = self._places_of.get(channels)
        if places is None:
            widths = [section.n_swaps * section.n_columns * channels for section in self.sections]
            places = self._places_of[channels] = [
                ((section.n_tuples, width), (width, 1), section.start * channels)
                for section, width in zip(self.sections, widths, strict=True)
            ]
        return [rows.as_strided(*place) for place in places]

    def means(self, plan: Plan, nodes: Nodes, like: Tensor) -> tuple[Tensor, ...]:
        """The weights that make means of sums, for reading and for writing."""
        kept = self._means if nodes.counts is None else nodes.kept.setdefault(self, {})
        found = kept.get(like.dtype)
        if found is None:
            with making_constants():
                found = kept[like.dtype] = self._weights(nodes.factors(plan, like).factors or (), like)
        return found

    def _weights(self, factors: Sequence[Tensor | None], like: Tensor) -> tuple[Tensor, ...]:
        rows = []
        for number, (_, n_tuples, n_swaps, n_columns) in zip(self._tree.levels, self.sections, strict=True):
            n_graphs, by_column = self.shape[0], factors[number]
            one = like.new_ones(1) if by_column is None else by_column.reshape(len(by_column), 1, 1, n_columns)
            shape = n_graphs, n_tuples // max(n_graphs, 1), n_swaps, n_columns
            rows.append(one.expand(shape).flatten().to(like.dtype))
        weights = torch.repeat_interleave(torch.cat(rows), self._counts)
        return weights, weights[self._sorted]


class SmallWalk:
    """A plan for small dense tensors over so many nodes."""

    is_small = True

    def __init__(self, plan: Plan, nodes: Nodes, values: Tensor) -> None:
        self.plan, self.nodes = plan, nodes
        self.source, self.target = _sides(plan, nodes.lengths, len(values), values.device)

    def means(self, values: Tensor) -> Means:
        """How the sums of these values become means: weights of rows, for reading and for writing."""
        return Means(None, self.source.means(self.plan, self.nodes, values))

    def views(self, matrices: LevelMatrices, gathered: Tensor) -> list[Tensor]:
        """The matrices as they are used."""
        return matrices.by_level(gathered)

    def forward(
        self, values: Tensor, matrices: list[Tensor], *, bias: Tensor | None, means: Means
    ) -> tuple[Tensor, list[Tensor]]:
        """The result, and what was read."""
        read = self.source.read(values, None if means.factors is None else means.factors[0])
        mixed = values.new_empty(self.target.n_rows, matrices[-1].shape[1] // self.target.sections[-1].n_columns)
        pairs = zip(self.source.levels(read), matrices, self.target.levels(mixed), strict=True)
        for rows, matrix, into in pairs:
            if bias is None:
                torch.mm(rows, matrix, out=into)
            else:
                torch.addmm(bias, rows, matrix, out=into)
                bias = None
        result = self.target.write(mixed, None)
        inside = self.nodes.bits(self.plan.target.axes, values.dtype)
        if inside is not None:
            zero_(result, inside)
        return result, [read]

    def backward(
        self,
        gradient: Tensor,
        values: Tensor,
        read: list[Tensor],
        *,
        matrices: list[Tensor] | None,
        of_matrices: list[Tensor],
        of_bias: Tensor | None,
        means: Means,
    ) -> Tensor | None:
        """The gradient of the values, if matrices are given; those of matrices and bias are added in place."""
        inside = self.nodes.bits(self.plan.target.axes, values.dtype)
        if inside is not None:
            gradient = zeroed(gradient, inside, scratch("gradient", gradient.shape, gradient))
        levels = self.target.levels(self.target.read(gradient, None))
        if of_bias is not None:
            of_bias.add_(levels[0].sum(0))
        for rows, pulled, into in zip(self.source.levels(read[0]), levels, of_matrices, strict=True):
            into.addmm_(rows.mT, pulled)
        if matrices is None:
            return None
        mixed = torch.empty_like(read[0])
        for pulled, matrix, into in zip(levels, matrices, self.source.levels(mixed), strict=True):
            torch.mm(pulled, matrix.mT, out=into)
        return self.source.write(mixed, None if means.factors is None else means.factors[1])


@lru_cache(maxsize=64)
def _sides(plan: Plan, lengths: tuple[int, ...], n_graphs: int, device: torch.device) -> tuple[Side, Side]:
    swaps = [level.swaps for level in plan.levels]
    with making_constants():
        source = Side(plan.source, swaps, lengths, n_graphs, device)
        return source, Side(plan.target, [several[:1] for several in swaps], lengths, n_graphs, device)


def _rows_of(fold: Fold, known: dict[Fold, Tensor]) -> Tensor:
    """(graphs, *axes, terms): the rows of the whole tensor that every entry of a fold is the sum of."""
    if fold not in known:
        step = fold.step
        assert step is not None
        above = _rows_of(step.parent, known)
        axes = [axis + 1 for axis in step.axes]
        if step.kind == "sum":
            known[fold] = above.movedim(axes[0], -1).flatten(-2)
        else:
            known[fold] = above.diagonal(0, *axes).movedim(-1, axes[0])
    return known[fold]


def _bounds(counts: Tensor) -> Tensor:
    return torch.cat([counts.new_zeros(1), counts.cumsum(0)]).int()
