"""A plan on dense tensors: some graphs after the others, so many that the cache holds them.

Tensors have their axes grouped by node set.
"""

from collections.abc import Callable, Sequence
from math import ceil, prod
from typing import Any

import torch
from torch import Tensor

from bellnet.execute.calling import are_watched
from bellnet.execute.compiled import CompiledWalk, can_compile
from bellnet.execute.dense_moves import DenseMoves
from bellnet.execute.gathered import GatheredWalk
from bellnet.execute.layout import Channels
from bellnet.execute.level_matrices import LevelMatrices
from bellnet.execute.means import NO_MEANS, Means
from bellnet.execute.nodes import Nodes
from bellnet.execute.program import Program, program
from bellnet.execute.unrolled import unroll
from bellnet.plan import Plan, Present
from bellnet.tensors.keeping import making_constants

CHUNK_BYTES = 3 * 2**21
"""Graphs are taken through all moves a few at a time, about so many bytes of them; a quarter more is one chunk yet."""


class Dense:
    """The layout of tensors that hold a value for every tuple of nodes."""

    has_axes = True

    def __init__(self, nodes: Nodes) -> None:
        self.nodes = nodes

    def key(self, values: Sequence[Tensor]) -> object:
        """What is prepared depends on lengths and values of a kind; on the sizes of padded graphs as well."""
        nodes, first = self.nodes, values[0]
        if nodes.counts is not None:
            return None
        return nodes.lengths, first.shape, first.dtype, first.device, are_watched(values)

    def present(self, plan: Plan) -> None:
        """All maps have something to do."""

    def walk(
        self,
        left: Present,
        channels: Channels,
        values: Sequence[Tensor],
        *,
        mean: bool,
        matrices: Callable[[], LevelMatrices],
    ) -> CompiledWalk | GatheredWalk:
        """What runs a plan with so many channels on these values."""
        if can_compile(left.plan, values):
            return self._compiled(left, channels, values[0], mean=mean)
        walk = DenseWalk(left.plan, channels, self.nodes)
        return GatheredWalk(walk, matrices(), walk.means(values) if mean else NO_MEANS)

    def _compiled(self, left: Present, channels: Channels, like: Tensor, *, mean: bool) -> CompiledWalk:
        nodes, words, roots = self.nodes, program(left, channels, self.nodes.lengths), left.plan.target.roots
        shapes = [
            (len(like), *[nodes.lengths[node_set] for node_set in root.axes], width)
            for root, width in zip(roots, channels[1], strict=True)
        ]
        # Where all graphs are of one size the weights are divided, elsewhere what was read.
        counts = None if nodes.counts is None else nodes.counts.to(torch.int64).contiguous()
        factors = _factors(words, left.plan, nodes, like) if mean and counts is not None else None
        return CompiledWalk(
            words,
            left,
            channels,
            like,
            shapes,
            mean=mean and counts is None,
            n_graphs=len(like),
            counts=counts,
            factors=factors,
        )

    def moves(self, plan: Plan, values: Sequence[Tensor], *, mean: bool) -> tuple[DenseMoves, Means]:
        """The moves in plain operations, and how the sums of these values become means if they are wanted."""
        by_counts = mean and self.nodes.counts is not None
        means = self.nodes.factors(plan, values[0]) if by_counts else NO_MEANS
        return DenseMoves(plan, self.nodes, folds_means=mean and not by_counts), means


class DenseWalk:
    """A plan with so many channels, for dense tensors over so many nodes, in torch's operations."""

    def __init__(self, plan: Plan, channels: Channels, nodes: Nodes) -> None:
        self.plan, self.nodes = plan, nodes
        self._code = unroll(plan, channels)
        self._inside, self._outside = channels

    def means(self, values: Sequence[Tensor]) -> Means:
        """How the sums of these values become means; the weights see to it, if they can."""
        if self.nodes.counts is None and values[0].dtype in (torch.float32, torch.float64):
            return Means(self.nodes.lengths)
        return self.nodes.factors(self.plan, values[0]).over_columns(self.plan.source, self._inside)

    def views(self, matrices: LevelMatrices, gathered: Tensor) -> Any:
        """The matrices as they are used."""
        return matrices.apart(gathered)

    def forward(
        self, values: Sequence[Tensor], matrices: Any, *, bias: Tensor | None, means: Means
    ) -> tuple[Sequence[Tensor], list[Tensor]]:
        """The results; and what was read but the values themselves, chunk after chunk of graphs."""
        run, lengths, roots = self._code.forward, self.nodes.lengths, self.plan.target.roots
        n_graphs, like = len(values[0]), values[0]
        inside = self._inside_of(like)
        shapes = [
            (n_graphs, *[lengths[node_set] for node_set in root.axes], width)
            for root, width in zip(roots, self._outside, strict=True)
        ]
        n_numbers = sum(one.numel() for one in values) + sum(map(prod, shapes))
        chunks = _chunks(n_graphs, n_numbers * like.element_size())
        if chunks is None:
            results, reads = run(values, lengths, matrices, bias, means, inside, [None] * len(roots))
            return results, reads
        results, reads = [like.new_empty(shape) for shape in shapes], []
        for graphs in chunks:
            into = [one[graphs] for one in results]
            some, masks = [one[graphs] for one in values], _some(inside, graphs)
            reads += run(some, lengths, matrices, bias, means.some(graphs), masks, into)[1]
        return results, reads

    def backward(
        self,
        gradients: Sequence[Tensor],
        values: Sequence[Tensor],
        read: list[Tensor],
        *,
        matrices: Any,
        of_matrices: Any,
        of_bias: Tensor | None,
        means: Means,
    ) -> Sequence[Tensor] | None:
        """The gradients of the values, if matrices are given; those of matrices and bias are added in place."""
        run = self._code.backward_to_weights if matrices is None else self._code.backward
        lengths, inside = self.nodes.lengths, self._inside_of(values[0])
        of = of_matrices, of_bias
        each, n_graphs = self._code.n_kept, len(values[0])
        if len(read) == each:
            nowhere = [None] * len(values)
            results: Sequence[Tensor] | None
            results = run(gradients, [*values, *read], lengths, matrices, means, inside, nowhere, *of)
            return results
        contiguous = torch.contiguous_format
        results = None if matrices is None else [torch.empty_like(one, memory_format=contiguous) for one in values]
        size = len(read[0])
        for number, start in enumerate(range(0, n_graphs, size)):
            graphs = slice(start, min(start + size, n_graphs))
            into = [None] * len(values) if results is None else [one[graphs] for one in results]
            there = [*(one[graphs] for one in values), *read[number * each : (number + 1) * each]]
            some, masks = [one[graphs] for one in gradients], _some(inside, graphs)
            run(some, there, lengths, matrices, means.some(graphs), masks, into, *of)
        return results

    def _inside_of(self, like: Tensor) -> list[Tensor | None]:
        """For every target the bits that its numbers keep."""
        return [self.nodes.bits(root.axes, like.dtype) for root in self.plan.target.roots]


def _factors(words: Program, plan: Plan, nodes: Nodes, like: Tensor) -> Tensor:
    """(graphs, numbers): what every number of a row of the bundles that are means is multiplied by."""
    key = words, like.dtype
    if key not in nodes.kept:
        with making_constants():
            by_bundle, parts = nodes.factors(plan, like).factors or (), [like.new_zeros(len(like), 0)]
            for number, widths in words.factored:
                found = by_bundle[number]
                assert found is not None
                columns = found.reshape(len(like), len(widths))
                parts.append(columns.repeat_interleave(torch.tensor(widths, device="cpu"), 1).to(like.dtype))
            nodes.kept[key] = torch.cat(parts, 1)
    kept: Tensor = nodes.kept[key]
    return kept


def _some(masks: Sequence[Tensor | None], graphs: slice) -> list[Tensor | None]:
    return [None if one is None else one[graphs] for one in masks]


def _chunks(n_graphs: int, n_bytes: int) -> list[slice] | None:
    """Some graphs after the others; None for all at once."""
    if n_graphs <= 1 or 4 * n_bytes <= 5 * CHUNK_BYTES:
        return None
    n_chunks = ceil(n_graphs / max(n_graphs * CHUNK_BYTES // n_bytes, 1))
    some = ceil(n_graphs / n_chunks)
    return [slice(start, min(start + some, n_graphs)) for start in range(0, n_graphs, some)]
