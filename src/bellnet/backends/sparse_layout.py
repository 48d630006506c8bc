"""The layout of sparse tensors, which have values for their stored entries; all others are zero.

Which entries are stored depends on the supports alone, so all tables are computed once for each pair. A permutation
looks up the entries with permuted slots.
"""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from bellnet.backends.kernel_backend import KernelBackend, can_run
from bellnet.backends.kernel_program import SparseKernelProgram
from bellnet.backends.level_matrices import Channels, Tensors
from bellnet.backends.projections import Incidence, Projections
from bellnet.backends.torch_backend import Means
from bellnet.combinatorics import Partition
from bellnet.plan import Plan, RestrictedPlan, StackStep, inverse, restrict
from bellnet.tensors import Support
from bellnet.tensors.tracing import Cached


def restrict_to_stored(plan: Plan, sources: Sequence[Support], targets: Sequence[Support]) -> RestrictedPlan:
    """The maps of a plan that read and write some stored entries; the gradients of the others are zero.

    Most graphs have no entries on the diagonal.
    """
    absent_source, absent_target = (
        tuple(absent_patterns(support, patterns) for support, patterns in zip(supports, known, strict=True))
        for supports, known in ((sources, plan.source_patterns), (targets, plan.bias_patterns))
    )
    return restrict(plan, absent_source, absent_target)


def absent_patterns(support: Support, patterns: tuple[Partition, ...]) -> frozenset[Partition]:
    """The equality patterns among these that no stored entry has; none for an empty support."""

    def find() -> frozenset[Partition]:
        if not support.nnz:
            return frozenset()
        return frozenset(pattern for pattern in patterns if not _has_pattern(support.nodes, pattern))

    return support.cached(("absent", patterns), find)


def _has_pattern(nodes: Tensor, pattern: Partition) -> bool:
    """Whether some tuple has at least the equalities of a pattern."""
    equal = torch.ones(nodes.shape[1], dtype=torch.bool, device=nodes.device)
    for slot, block in enumerate(pattern):
        if (first := pattern.index(block)) < slot:
            equal &= nodes[first] == nodes[slot]
    return bool(equal.any())


class Lookup(Protocol):
    """The permuted rows of a level."""

    def __call__(self, level: int, number: int, *, back: bool) -> Incidence | None:
        """For one permutation; None if the rows are the same."""


class SparsePrimitives:
    """Sums and copies along the tables between projected supports.

    Args:
        sides: The projected supports of source and target.
        lookup: The permuted rows of a level.
        in_place: Whether to write in place, and to sum in ways that cannot be differentiated.
    """

    def __init__(self, sides: tuple[Projections, Projections], lookup: Lookup, *, in_place: bool = False) -> None:
        self.sides, self.lookup, self.in_place = sides, lookup, in_place

    def contract(self, side: int, number: int, step: StackStep, parent: Tensor) -> Tensor:
        """The columns of a step of a stack, from those of its parent."""
        incidence = self.sides[side].incidences[number, step.start]
        wide = parent.to(torch.promote_types(parent.dtype, torch.float32))
        return incidence.segment_sum(wide) if self.in_place else incidence.segment_sum_functional(wide)

    def broadcast(self, side: int, number: int, step: StackStep, child: Tensor, onto: Tensor | None) -> Tensor:
        """The transpose for one column, added to `onto` unless it is None."""
        incidence = self.sides[side].incidences[number, step.start]
        if onto is None:
            return child.clone() if incidence.is_identity and self.in_place else incidence.gather(child)
        if not self.in_place:
            return onto + incidence.gather(child)
        incidence.add_gathered_(child, onto)
        return onto

    def permute(self, level: int, number: int, rows: Tensor, *, back: bool) -> Tensor:
        """The contractions of a level with permuted axes, at the rows of the other side."""
        found = self.lookup(level, number, back=back)
        return rows if found is None else found.gather(rows)

    def zeros(self, side: int, root: int, like: Tensor, width: int) -> Tensor:
        """A source or target of zeros."""
        return like.new_zeros(self.sides[side].stacks[root].n_rows, width)

    def clean(self, side: int, root: int, tensor: Tensor) -> Tensor:
        """The tensor itself: only tuples of nodes are stored."""
        return tensor


class SparseLayout(NamedTuple):
    """The layout of stored entries: the supports of inputs and results, and what means are divided by.

    Attributes:
        sources: For every source.
        targets: For every target.
        lengths: The number of nodes of every node set, if all graphs have the same; else None.
        stored: Whether a mean is over the stored entries, or over all tuples of nodes.
    """

    sources: tuple[Support, ...]
    targets: tuple[Support, ...]
    lengths: tuple[int, ...] | None
    stored: bool
    has_axes: bool = False

    def key(self, values: Tensors) -> None:
        """Backends are cached by the supports."""

    def restrict(self, plan: Plan) -> RestrictedPlan:
        """The maps that stored entries reach."""
        return restrict_to_stored(plan, self.sources, self.targets)

    def kernels(
        self, restricted: RestrictedPlan, channels: Channels, values: Tensors, *, mean: bool
    ) -> KernelBackend | None:
        """The kernel backend for these values; None if kernels cannot run on them."""
        if not can_run(restricted.plan, values):
            return None
        return SparsePlan.on(restricted.plan, self).kernels(restricted, channels, values[0], mean=mean)

    def primitives(self, plan: Plan, values: Tensors, *, mean: bool, in_place: bool) -> tuple[SparsePrimitives, Means]:
        """The operations, and how their sums become means if requested."""
        prepared = SparsePlan.on(plan, self)
        means = prepared.means(values[0], by_weights=in_place) if mean else Means()
        return SparsePrimitives(prepared.sides, prepared.lookup, in_place=in_place), means


class SparsePlan(Cached):
    """A plan between supports: its tables and its backends."""

    def __init__(self, plan: Plan, layout: SparseLayout) -> None:
        self.plan, self.stored = plan, layout.stored
        self.lengths = None if layout.stored else layout.lengths
        self.sides = Projections.on(plan.source, layout.sources), Projections.on(plan.target, layout.targets)

    @classmethod
    def on(cls, plan: Plan, layout: SparseLayout) -> "SparsePlan":
        """The one for these supports, cached by the first as long as the others exist."""
        first, *others = *layout.sources, *layout.targets
        return first.cached_with(others, ("plan", plan, layout.stored), lambda: cls(plan, layout))

    def lookup(self, level: int, number: int, *, back: bool) -> Incidence | None:
        """Where the permuted tuples of one side are found on the other; None if the rows are the same."""
        source, target = (side.stacks[side.tree.levels[level]] for side in self.sides)
        permutation = self.plan.levels[level].permutations[number]
        return target.lookup(inverse(permutation), source) if back else source.lookup(permutation, target)

    def means(self, like: Tensor, *, by_weights: bool) -> Means:
        """How sums of such values become means: by the weights if this is possible, else by the contractions."""
        if by_weights and self.lengths is not None and like.dtype in (torch.float32, torch.float64):
            return Means(self.lengths)
        dtype = torch.promote_types(like.dtype, torch.float32)
        return Means(None, self.sides[0].factors(dtype, stored=self.stored))

    def kernels(self, restricted: RestrictedPlan, channels: Channels, like: Tensor, *, mean: bool) -> KernelBackend:
        """The kernel backend for such values, cached."""

        def make() -> KernelBackend:
            means = self.means(like, by_weights=True) if mean else Means()
            lookups = [
                self.lookup(level, number, back=back)
                for level, one in enumerate(self.plan.levels)
                for back in (True, False)
                for number in range(len(one.permutations))
            ]
            sources, targets = (
                [(side.stacks[root].n_rows, width) for root, width in enumerate(widths)]
                for side, widths in zip(self.sides, channels, strict=True)
            )
            return KernelBackend(
                SparseKernelProgram(restricted, channels, self.sides, lookups, means, like.dtype),
                restricted,
                channels,
                like,
                (sources, targets),
                mean=means.lengths is not None,
                memory=(self.sides[0].memory(), self.sides[1].memory()),
            )

        return self.cached((channels, like.dtype, mean), make)
