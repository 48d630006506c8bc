"""The layout of dense tensors, padded or not; their axes are grouped by node set."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from bellnet.execute.calling import are_watched
from bellnet.execute.compiled import CompiledWalk, can_compile
from bellnet.execute.dense_moves import DenseMoves
from bellnet.execute.layout import Channels
from bellnet.execute.level_matrices import LevelMatrices
from bellnet.execute.means import NO_MEANS, Means
from bellnet.execute.nodes import Nodes
from bellnet.execute.program import Program, program
from bellnet.execute.walk import MovesWalk
from bellnet.plan import Plan, Present
from bellnet.tensors.keeping import making_constants


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
    ) -> CompiledWalk | MovesWalk:
        """What runs a plan with so many channels on these values."""
        if can_compile(left.plan, values):
            return self._compiled(left, channels, values[0], mean=mean)
        moves = DenseMoves(left.plan, self.nodes, in_place=True)
        return MovesWalk(left.plan, channels, moves, matrices(), self._means(left.plan, channels, values[0], mean=mean))

    def _means(self, plan: Plan, channels: Channels, like: Tensor, *, mean: bool) -> Means:
        """How sums become means; the weights see to it, if they can."""
        if not mean:
            return NO_MEANS
        if self.nodes.counts is None and like.dtype in (torch.float32, torch.float64):
            return Means(self.nodes.lengths)
        return self.nodes.factors(plan, like).over_columns(plan.source, channels[0])

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
