"""The layout of dense tensors, padded or not; their axes are grouped by node set."""

from collections.abc import Sequence

import torch
from torch import Tensor

from bellnet.backends.compiled import KernelBackend, can_compile
from bellnet.backends.dense_moves import DensePrimitives
from bellnet.backends.layout import Channels
from bellnet.backends.means import NO_MEANS, Means
from bellnet.backends.nodes import Nodes
from bellnet.backends.program import Program, program
from bellnet.kernels.calling import needs_torch_operations
from bellnet.plan import Plan, RestrictedPlan
from bellnet.tensors.tracing import no_transforms


class DenseLayout:
    """The layout of tensors that hold a value for every tuple of nodes."""

    has_axes = True

    def __init__(self, nodes: Nodes) -> None:
        self.nodes = nodes

    def key(self, values: Sequence[Tensor]) -> object:
        """What is prepared depends on lengths and values of a kind; on the sizes of padded graphs as well."""
        nodes, first = self.nodes, values[0]
        if nodes.counts is not None:
            return None
        return nodes.lengths, first.shape, first.dtype, first.device, needs_torch_operations(values)

    def present(self, plan: Plan) -> None:
        """All maps have something to do."""

    def compiled(
        self, left: RestrictedPlan, channels: Channels, values: Sequence[Tensor], *, mean: bool
    ) -> KernelBackend | None:
        """What runs a plan with so many channels on these values by kernels; None if there are none for them."""
        if not can_compile(left.plan, values):
            return None
        nodes, like, found = self.nodes, values[0], program(left, channels, self.nodes.lengths)
        sources, targets = (
            [
                (len(like), *[nodes.lengths[node_set] for node_set in root.axes], width)
                for root, width in zip(tree.roots, widths, strict=True)
            ]
            for tree, widths in zip((left.plan.source, left.plan.target), channels, strict=True)
        )
        # Where all graphs are of one size the weights are divided, elsewhere what was read.
        counts = None if nodes.counts is None else nodes.counts.to(torch.int64).contiguous()
        factors = _factors(found, left.plan, nodes, like) if mean and counts is not None else None
        return KernelBackend(
            found,
            left,
            channels,
            like,
            sources,
            targets,
            mean=mean and counts is None,
            n_graphs=len(like),
            counts=counts,
            factors=factors,
        )

    def moves(
        self, plan: Plan, values: Sequence[Tensor], *, mean: bool, in_place: bool
    ) -> tuple[DensePrimitives, Means]:
        """The moves, perhaps in place, and how the sums of these values become means if they are wanted."""
        like, are_equal = values[0], self.nodes.counts is None
        takes_means = mean and are_equal and not in_place
        moves = DensePrimitives(plan, self.nodes, takes_means=takes_means, in_place=in_place)
        if not mean or takes_means:
            return moves, NO_MEANS
        if are_equal and like.dtype in (torch.float32, torch.float64):
            return moves, Means(self.nodes.lengths)
        return moves, self.nodes.factors(plan, like)


def _factors(kernel_program: Program, plan: Plan, nodes: Nodes, like: Tensor) -> Tensor:
    """(graphs, numbers): what every number of a row of the stacks that are means is multiplied by."""
    key = kernel_program, like.dtype
    if key not in nodes.kept:
        with no_transforms():
            by_bundle, parts = nodes.factors(plan, like).factors or (), [like.new_zeros(len(like), 0)]
            for number, widths in kernel_program.factored:
                found = by_bundle[number]
                assert found is not None
                columns = found.reshape(len(like), len(widths))
                parts.append(columns.repeat_interleave(torch.tensor(widths, device="cpu"), 1).to(like.dtype))
            nodes.kept[key] = torch.cat(parts, 1)
    kept: Tensor = nodes.kept[key]
    return kept
