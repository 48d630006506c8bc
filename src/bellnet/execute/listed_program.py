"""The program of a plan between supports: that of the plan, and the tables by which listed rows find each other."""

from collections.abc import Sequence
from itertools import accumulate

import torch
from torch import Tensor

from bellnet.execute.incidence import Incidence
from bellnet.execute.layout import Channels
from bellnet.execute.means import Means
from bellnet.execute.program import BRANCH, BUNDLE, MOST_AXES, SWAP, program
from bellnet.execute.shadows import Shadows
from bellnet.plan import Present
from bellnet.tensors.keeping import making_constants

MEMORY, IS_LISTED = (2, 7), 15
"""Where a program says how much memory the bundles of either side take, and that rows are listed."""
ROWS, PLACE = 2, 3
ROW_FACTORS = BUNDLE - 3
"""Where a bundle says how many rows it has, where they begin, and what they are multiplied by."""
WHOLE = BRANCH - 3
"""Where a branch has its tables."""


class ListedProgram:
    """The words of a plan between supports.

    Args:
        left: The plan, and what of the weights belongs to it.
        channels: Those of every source and of every target.
        sides: Where the tuples of source and target stand.
        found: For every level where the swaps find tuples, back and then there; None for rows that are the same.
        means: What makes means of sums.
        dtype: Of the numbers.

    Attributes:
        words: All of them, where kernels can find them.
        n_read: How many numbers are read but for the source itself.
        n_multiplications: How many there are.
    """

    def __init__(
        self,
        left: Present,
        channels: Channels,
        sides: tuple[Shadows, Shadows],
        found: Sequence[Incidence | None],
        means: Means,
        dtype: torch.dtype,
    ) -> None:
        plan = left.plan
        lengths = means.lengths or (1,) * len(plan.spec.node_sets)
        usual = program(left, channels, lengths)
        self.words = type(usual.words).from_buffer_copy(usual.words)
        self._tables: list[Tensor] = []  # the words have their addresses
        self.words[IS_LISTED] = 1
        self.n_read = self._lay_out(0, sides[0], channels[0], usual.bundles[0])
        self._lay_out(1, sides[1], channels[1], usual.bundles[1])
        for side, first in zip(sides, usual.branches, strict=True):
            self._enter_moves(side, first)
        for number, incidence in enumerate(found):
            if incidence is not None:
                self.words[usual.swaps + number * SWAP + MOST_AXES] = self._address(incidence.table)
        for number, factors in enumerate(means.over_columns(plan.source, channels[0]).factors or ()):
            if factors is not None:
                width = plan.source.bundles[number].width(channels[0])
                self._enter_factors(usual.bundles[0] + number * BUNDLE, factors, width, dtype)
        self.n_multiplications = sum(
            sides[1].bundles[target].n_rows
            * len(level.swaps)
            * plan.source.bundles[source].width(channels[0])
            * plan.target.bundles[target].width(channels[1])
            for source, target, level in zip(plan.source.levels, plan.target.levels, plan.levels, strict=True)
        )

    def _lay_out(self, number: int, side: Shadows, channels: Sequence[int], first: int) -> int:
        """How many rows bundles have, and where they begin; how many numbers all have but the whole tensors."""
        rows, n_roots = [shadow.n_rows for shadow in side.bundles], len(side.tree.roots)
        sizes = [
            0 if one < n_roots else rows[one] * bundle.width(channels) for one, bundle in enumerate(side.tree.bundles)
        ]
        *places, memory = accumulate(sizes, initial=0)
        for one in range(len(rows)):
            self.words[first + one * BUNDLE + ROWS] = rows[one]
            if one >= n_roots:
                self.words[first + one * BUNDLE + PLACE] = places[one]
        self.words[MEMORY[number]] = memory
        return memory

    def _enter_moves(self, side: Shadows, first: int) -> None:
        """The tables of all branches, in the order of their parents."""
        branches = [(child, one) for child, bundle in enumerate(side.tree.bundles) for one in bundle.branches]
        for place, (child, branch) in enumerate(sorted(branches, key=lambda pair: pair[1].parent)):
            incidence = side.moves[child, branch.start]
            if not incidence.is_same:
                tables = incidence.table, *incidence.in_order
                at = first + place * BRANCH + WHOLE
                self.words[at : at + 3] = [0 if table is None else self._address(table) for table in tables]

    def _enter_factors(self, place: int, factors: Tensor, width: int, dtype: torch.dtype) -> None:
        """What the rows of a bundle are multiplied by, (rows, columns, 1), or (rows, width) for columns that differ."""
        with making_constants():
            table = factors.flatten(1).to(dtype).contiguous()
        n_factors = table.shape[1]
        self.words[place + ROW_FACTORS : place + BUNDLE] = [self._address(table), n_factors, width // n_factors]

    def _address(self, table: Tensor) -> int:
        self._tables.append(table)
        return table.data_ptr()
