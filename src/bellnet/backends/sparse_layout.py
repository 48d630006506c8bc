"""The layout of sparse tensors, which hold values for listed tuples of nodes.

Which tuples are listed depends on the supports alone; where everything stands is found once for a pair of them. A swap
looks every tuple up in another order, and what is not listed is zero.
"""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from bellnet.backends.incidence import Incidence
from bellnet.backends.kernel_backend import KernelBackend, can_compile
from bellnet.backends.kernel_program import ListedProgram
from bellnet.backends.level_matrices import Channels
from bellnet.backends.projections import Projections
from bellnet.backends.torch_backend import NO_MEANS, Means, inverse
from bellnet.combinatorics import Partition, blocks_of
from bellnet.plan import Plan, RestrictedPlan, StackStep, restrict
from bellnet.tensors import Support
from bellnet.tensors.tracing import no_transforms


def what_is_left(plan: Plan, sources: Sequence[Support], targets: Sequence[Support]) -> RestrictedPlan:
    """The maps of a plan that have something to do between these supports."""
    absent_source, absent_target = (
        tuple(absent(support, patterns) for support, patterns in zip(supports, known, strict=True))
        for supports, known in ((sources, plan.source_patterns), (targets, plan.bias_patterns))
    )
    return restrict(plan, absent_source, absent_target)


def absent(support: Support, patterns: tuple[Partition, ...]) -> frozenset[Partition]:
    """Which of these equality patterns no listed tuple has; none where nothing at all is listed."""

    def find() -> frozenset[Partition]:
        if not support.nnz:
            return frozenset()
        return frozenset(pattern for pattern in patterns if not _is_met(support.nodes, pattern))

    return support.cached(("absent", patterns), find)


def _is_met(nodes: Tensor, pattern: Partition) -> bool:
    """Whether the nodes of some tuple agree at least as the pattern says."""
    agree = torch.ones(nodes.shape[1], dtype=torch.bool, device=nodes.device)
    for first, *others in blocks_of(pattern):
        for slot in others:
            agree &= nodes[first] == nodes[slot]
    return bool(agree.any())


class Lookup(Protocol):
    """Where the tuples of one side are found on the other."""

    def __call__(self, level: int, number: int, *, back: bool) -> Incidence | None:
        """For a permutation of a level; None if the rows are the same."""


class SparsePrimitives:
    """For values of listed tuples.

    Args:
        sides: Where the tuples of source and target stand.
        lookup: Where they are found on the other side.
        in_place: Whether to write in place, and to add up in ways that cannot be differentiated.
    """

    def __init__(self, sides: tuple[Projections, Projections], lookup: Lookup, *, in_place: bool = False) -> None:
        self.sides, self.lookup, self.in_place = sides, lookup, in_place

    def contraction(self, side: int, number: int, branch: StackStep, parent: Tensor) -> Tensor:
        """The contractions of a branch of a stack, from those of its parent."""
        incidence = self.sides[side].moves[number, branch.start]
        wide = parent.to(torch.promote_types(parent.dtype, torch.float32))
        return incidence.add_up(wide) if self.in_place else incidence.add_up_plainly(wide)

    def spread(self, side: int, number: int, branch: StackStep, child: Tensor, onto: Tensor | None) -> Tensor:
        """What the parent of a contraction gets from it, and what that has already."""
        incidence = self.sides[side].moves[number, branch.start]
        if onto is None:
            return child.clone() if incidence.is_same and self.in_place else incidence.hand_out(child)
        if not self.in_place:
            return onto + incidence.hand_out(child)
        incidence.add_to_parts(child, onto)
        return onto

    def permuted(self, level: int, number: int, rows: Tensor, *, back: bool) -> Tensor:
        """What was read on a level, for one of its permutations, at the tuples of the other side."""
        found = self.lookup(level, number, back=back)
        return rows if found is None else found.hand_out(rows)

    def zeros(self, side: int, root: int, like: Tensor, width: int) -> Tensor:
        """A whole tensor without values."""
        return like.new_zeros(self.sides[side].stacks[root].n_rows, width)

    def clean(self, side: int, root: int, whole: Tensor) -> Tensor:
        """The tensor as it is: nothing is listed that is no tuple of nodes."""
        return whole


class SparseLayout(NamedTuple):
    """The layout of listed tuples: those of inputs, those that results are to list, and by what means divide.

    Attributes:
        sources: For every source.
        targets: For every target.
        lengths: The number of nodes of every node set, if all graphs have the same; else None.
        stored: Whether a mean divides by the number of listed tuples, or by that of all tuples of nodes.
    """

    sources: tuple[Support, ...]
    targets: tuple[Support, ...]
    lengths: tuple[int, ...] | None
    stored: bool
    has_axes: bool = False

    def key(self, values: Sequence[Tensor]) -> None:
        """What is prepared is kept with the supports."""

    def present(self, plan: Plan) -> RestrictedPlan:
        """The maps that have something to do."""
        return what_is_left(plan, self.sources, self.targets)

    def compiled(
        self, left: RestrictedPlan, channels: Channels, values: Sequence[Tensor], *, mean: bool
    ) -> KernelBackend | None:
        """What runs a plan with so many channels by kernels; None if there are none for such values."""
        if not can_compile(left.plan, values):
            return None
        return Listed.on(left.plan, self).compiled(left, channels, values[0], mean=mean)

    def moves(
        self, plan: Plan, values: Sequence[Tensor], *, mean: bool, in_place: bool
    ) -> tuple[SparsePrimitives, Means]:
        """The moves, perhaps in place, and how the sums of these values become means if they are wanted."""
        listed = Listed.on(plan, self)
        means = (listed.means if in_place else listed.factors)(values[0]) if mean else NO_MEANS
        return SparsePrimitives(listed.sides, listed.lookup, in_place=in_place), means


class Listed:
    """A plan between supports: where everything stands."""

    def __init__(self, plan: Plan, supports: SparseLayout) -> None:
        self.plan, self.listed = plan, supports.stored
        self.lengths = None if supports.stored else supports.lengths
        self.sides = Projections.on(plan.source, supports.sources), Projections.on(plan.target, supports.targets)
        self._walks: dict[tuple[Channels, torch.dtype, bool], KernelBackend] = {}

    @classmethod
    def on(cls, plan: Plan, supports: SparseLayout) -> "Listed":
        """The one for these supports, kept with the first as long as the others are there."""
        first, *others = *supports.sources, *supports.targets
        return first.cached_with(others, ("listed", plan, supports.stored), lambda: cls(plan, supports))

    def lookup(self, level: int, number: int, *, back: bool) -> Incidence | None:
        """Where the tuples of one side are found on the other, swapped; None if the rows are the same."""
        source, target = (side.stacks[side.tree.levels[level]] for side in self.sides)
        permutation = self.plan.levels[level].permutations[number]
        with no_transforms():
            return target.lookup(inverse(permutation), source) if back else source.lookup(permutation, target)

    def factors(self, like: Tensor) -> Means:
        """What turns sums of such values into means."""
        dtype = torch.promote_types(like.dtype, torch.float32)
        return Means(None, self.sides[0].factors(dtype, listed=self.listed))

    def means(self, like: Tensor) -> Means:
        """The same; the weights see to it, if they can."""
        if self.lengths is not None and like.dtype in (torch.float32, torch.float64):
            return Means(self.lengths)
        return self.factors(like)

    def compiled(self, left: RestrictedPlan, channels: Channels, like: Tensor, *, mean: bool) -> KernelBackend:
        """What runs the plan with so many channels by kernels, made once."""
        key = channels, like.dtype, mean
        if key not in self._walks:
            self._walks[key] = self._compiled(left, channels, like, self.means(like) if mean else NO_MEANS)
        return self._walks[key]

    def _compiled(self, left: RestrictedPlan, channels: Channels, like: Tensor, means: Means) -> KernelBackend:
        found = [
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
            ListedProgram(left, channels, self.sides, found, means, like.dtype),
            left,
            channels,
            like,
            sources,
            targets,
            mean=means.lengths is not None,
            memory=(self.sides[0].memory(), self.sides[1].memory()),
        )
