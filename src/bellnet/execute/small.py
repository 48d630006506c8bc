"""A plan on small dense tensors, in as few operations as there can be.

Small graphs cost mostly what happens between the operations. A fold is a sum of rows of its tensor, so all folds of a
side, and those of every swap, are sums that `embedding_bag` takes in one call; and what is mixed on all levels is
written by one call as well, which adds up rows the other way round. Between them is one product for every level. The
numbers of the rows depend on plan, lengths and batch alone and are kept. What a mean divides by is a weight of rows.
"""

from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate, pairwise
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

    Several tensors have the same number of channels, so that their rows, too, stand one below the other.

    Attributes:
        sections: For every level where its folds are.
        n_rows: How many rows they have together.
        shapes: Of the whole tensors, without channels.
    """

    def __init__(
        self, tree: Tree, swaps: Sequence[Sequence[Swap]], lengths: tuple[int, ...], n_graphs: int, device: torch.device
    ) -> None:
        self._tree = tree
        self._n_graphs = n_graphs
        self.shapes = [(n_graphs, *[lengths[one] for one in root.axes]) for root in tree.roots]
        starts = list(accumulate(map(prod, self.shapes), initial=0))
        known = {}
        for tensor, (root, shape) in enumerate(zip(tree.roots, self.shapes, strict=True)):
            rows = torch.arange(starts[tensor], starts[tensor + 1], device=device)
            known[Fold.identity(root.sets, tensor=tensor)] = rows.view(shape).unsqueeze(-1)
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
        self._down = Sums(order.int(), _bounds(self._counts))
        bounds = _bounds(torch.bincount(ascending, minlength=starts[-1]))
        self._up, self._sorted = [], []
        for start, stop in pairwise(starts):
            first, last = int(bounds[start]), int(bounds[stop])
            self._up.append(Sums(of_rows[first:last].int(), bounds[start : stop + 1] - first))
            self._sorted.append(places[first:last])
        self._places_of: dict[int, list[Place]] = {}
        self._means: dict[torch.dtype, tuple[Tensor, ...]] = {}

    def read(self, wholes: Sequence[Tensor], weights: Tensor | None) -> Tensor:
        """(rows, channels): all folds of (graphs, *axes, channels)."""
        below = [whole.reshape(-1, whole.shape[-1]) for whole in wholes]
        return self._down.of(below[0] if len(below) == 1 else torch.cat(below), weights)

    def write(self, rows: Tensor, weights: Sequence[Tensor] | None) -> list[Tensor]:
        """The transpose."""
        several = [None] * len(self._up) if weights is None else weights
        # Not views, which autograd would guard: they are of that length already.
        return [
            up.of(rows, one).resize_(*shape, rows.shape[1])
            for up, one, shape in zip(self._up, several, self.shapes, strict=True)
        ]

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
        """The weights that make means of sums, for reading and for writing to each of the tensors."""
        kept = self._means if nodes.counts is None else nodes.kept.setdefault(self, {})
        found = kept.get(like.dtype)
        if found is None:
            with making_constants():
                found = kept[like.dtype] = self._weights(nodes.factors(plan, like).factors or (), like)
        return found

    def _weights(self, factors: Sequence[Tensor | None], like: Tensor) -> tuple[Tensor, ...]:
        rows = []
        for number, (_, n_tuples, n_swaps, n_columns) in zip(self._tree.levels, self.sections, strict=True):
            n_graphs, by_column = self._n_graphs, factors[number]
            one = like.new_ones(1) if by_column is None else by_column.reshape(len(by_column), 1, 1, n_columns)
            shape = n_graphs, n_tuples // max(n_graphs, 1), n_swaps, n_columns
            rows.append(one.expand(shape).flatten().to(like.dtype))
        weights = torch.repeat_interleave(torch.cat(rows), self._counts)
        return weights, *[weights[places] for places in self._sorted]


class SmallWalk:
    """A plan for small dense tensors over so many nodes."""

    def __init__(self, plan: Plan, nodes: Nodes, values: Sequence[Tensor]) -> None:
        self.plan, self.nodes = plan, nodes
        self.source, self.target = _sides(plan, nodes.lengths, len(values[0]), values[0].device)

    def means(self, values: Sequence[Tensor]) -> Means:
        """How the sums of these values become means: weights of rows, for reading and for writing."""
        return Means(None, self.source.means(self.plan, self.nodes, values[0]))

    def views(self, matrices: LevelMatrices, gathered: Tensor) -> list[Tensor]:
        """The matrices as they are used."""
        return matrices.by_level(gathered)

    def forward(
        self, values: Sequence[Tensor], matrices: list[Tensor], *, bias: Tensor | None, means: Means
    ) -> tuple[list[Tensor], list[Tensor]]:
        """The results, and what was read."""
        read = self.source.read(values, None if means.factors is None else means.factors[0])
        mixed = read.new_empty(self.target.n_rows, matrices[-1].shape[1] // self.target.sections[-1].n_columns)
        pairs = zip(self.source.levels(read), matrices, self.target.levels(mixed), strict=True)
        for rows, matrix, into in pairs:
            if bias is None:
                torch.mm(rows, matrix, out=into)
            else:
                torch.addmm(bias, rows, matrix, out=into)
                bias = None
        results = self.target.write(mixed, None)
        if self.nodes.counts is not None:
            for result, inside in zip(results, self._inside(read.dtype), strict=True):
                if inside is not None:
                    zero_(result, inside)
        return results, [read]

    def _inside(self, dtype: torch.dtype) -> list[Tensor | None]:
        """For every target the bits that its numbers keep."""
        return [self.nodes.bits(root.axes, dtype) for root in self.plan.target.roots]

    def backward(
        self,
        gradients: Sequence[Tensor],
        values: Sequence[Tensor],
        read: list[Tensor],
        *,
        matrices: list[Tensor] | None,
        of_matrices: list[Tensor],
        of_bias: Tensor | None,
        means: Means,
    ) -> list[Tensor] | None:
        """The gradients of the values, if matrices are given; those of matrices and bias are added in place."""
        if self.nodes.counts is not None:
            gradients = [
                one if inside is None else zeroed(one, inside, scratch(f"gradient{number}", one.shape, one))
                for number, (one, inside) in enumerate(zip(gradients, self._inside(read[0].dtype), strict=True))
            ]
        levels = self.target.levels(self.target.read(gradients, None))
        if of_bias is not None:
            of_bias.add_(levels[0].sum(0))
        for rows, pulled, into in zip(self.source.levels(read[0]), levels, of_matrices, strict=True):
            into.addmm_(rows.mT, pulled)
        if matrices is None:
            return None
        mixed = torch.empty_like(read[0])
        for pulled, matrix, into in zip(levels, matrices, self.source.levels(mixed), strict=True):
            torch.mm(pulled, matrix.mT, out=into)
        return self.source.write(mixed, None if means.factors is None else means.factors[1:])  # type: ignore[arg-type]


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
