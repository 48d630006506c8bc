"""The kernel program of a plan between supports: that of the plan, and the tables of the rows of stored entries."""

from collections.abc import Sequence
from itertools import accumulate

import torch
from torch import Tensor

from bellnet.backends.incidence import Incidence
from bellnet.backends.layout import Channels
from bellnet.backends.means import Means
from bellnet.backends.program import program
from bellnet.backends.projections import Projections
from bellnet.kernels.calling import pointer, table_pointer
from bellnet.kernels.structs import Bundle
from bellnet.plan import RestrictedPlan
from bellnet.tensors.tracing import no_transforms


class ListedProgram:
    """The kernel program of a plan between supports.

    Args:
        left: The plan, and what of the weights belongs to it.
        channels: Those of every source and of every target.
        sides: Where the tuples of source and target stand.
        found: For every level where the permutations find tuples, back and then there; None for rows that are the same.
        means: What makes means of sums.
        dtype: Of the numbers.

    Attributes:
        head: The struct that kernels take, which points to all others.
        n_read: How many numbers are read but for the source itself.
        n_multiplications: How many there are.
    """

    def __init__(
        self,
        left: RestrictedPlan,
        channels: Channels,
        sides: tuple[Projections, Projections],
        found: Sequence[Incidence | None],
        means: Means,
        dtype: torch.dtype,
    ) -> None:
        plan = left.plan
        lengths = means.lengths or (1,) * len(plan.spec.node_sets)
        self._program = program(left, channels, lengths).copied()
        self.head = self._program.head
        self._tables: list[object] = []  # the structs have their addresses
        self.head.is_listed = 1
        self.n_read = self._lay_out(0, sides[0], channels[0])
        self._lay_out(1, sides[1], channels[1])
        for number, side in enumerate(sides):
            self._enter_moves(number, side)
        for incidence, permutation in zip(found, self._program.permutations, strict=True):
            if incidence is not None:
                permutation.found = self._address(incidence.table, incidence.n_parts, incidence.n_wholes)
        for number, factors in enumerate(means.over_columns(plan.source, channels[0]).factors or ()):
            if factors is not None:
                width = plan.source.stacks[number].width(channels[0])
                self._enter_factors(self._program.sides[0][0][number], factors, width, dtype)
        self.n_multiplications = sum(
            sides[1].stacks[target].n_rows
            * len(level.permutations)
            * plan.source.stacks[source].width(channels[0])
            * plan.target.stacks[target].width(channels[1])
            for source, target, level in zip(plan.source.levels, plan.target.levels, plan.levels, strict=True)
        )

    def _lay_out(self, number: int, side: Projections, channels: Sequence[int]) -> int:
        """How many rows stacks have, and where they begin; how many values all have but the whole tensors."""
        rows, n_roots = [projection.n_rows for projection in side.stacks], len(side.tree.roots)
        sizes = [
            0 if one < n_roots else rows[one] * stack.width(channels) for one, stack in enumerate(side.tree.stacks)
        ]
        *places, memory = accumulate(sizes, initial=0)
        for one, stack in enumerate(self._program.sides[number][0]):
            stack.rows = rows[one]
            if one >= n_roots:
                stack.place = places[one]
        self.head.side[number].memory = memory
        return memory

    def _enter_moves(self, number: int, side: Projections) -> None:
        """The tables of all branches, in the order of their parents."""
        branches = [(child, one) for child, stack in enumerate(side.tree.stacks) for one in stack.steps]
        ordered = sorted(branches, key=lambda pair: pair[1].parent)
        for entry, (child, branch) in zip(self._program.sides[number][1], ordered, strict=True):
            incidence = side.moves[child, branch.start]
            if incidence.is_same:
                continue
            order, bounds = incidence.in_order
            n_ordered = incidence.n_parts if order is None else len(order)
            entry.whole = self._address(incidence.table, incidence.n_parts, incidence.n_wholes)
            entry.order = None if order is None else self._address(order, n_ordered, incidence.n_parts)
            entry.bounds = self._address(bounds, incidence.n_wholes + 1, n_ordered + 1)

    def _enter_factors(self, stack: Bundle, factors: Tensor, width: int, dtype: torch.dtype) -> None:
        """What the rows of a stack are multiplied by, (rows, columns, 1), or (rows, width) for columns that differ."""
        with no_transforms():
            table = factors.flatten(1).to(dtype).contiguous()
        stack.row_factors = pointer("the factors of means", table, (stack.rows, table.shape[1]), dtype, self._tables)
        stack.n_row_factors, stack.factor_width = table.shape[1], width // table.shape[1]

    def _address(self, table: Tensor, length: int, limit: int) -> int | None:
        return table_pointer("a table of a support", table, length, limit, self._tables)
