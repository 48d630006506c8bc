"""Programs: what an executor is handed. A program can be transposed, and that is its own gradient."""

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from bellnet.plan.fold import Fold
from bellnet.plan.level import Level


@dataclass(frozen=True, eq=False)
class Program:
    """The levels of a plan with the node set of every source and target slot, by number.

    `mean` says where sums become means: dividing by the number of terms belongs to the reads, and so to the writes
    of the transposed program. None divides nowhere.
    """

    source: tuple[int, ...]
    target: tuple[int, ...]
    levels: tuple[Level, ...]
    mean: Literal["reads", "writes"] | None

    @cached_property
    def transposed(self) -> "Program":
        """The program of the transposed map, which takes gradients at the target to gradients at the source."""
        mean: Literal["reads", "writes"] | None = None
        if self.mean is not None:
            mean = "writes" if self.mean == "reads" else "reads"
        return Program(self.target, self.source, tuple(level.transposed() for level in self.levels), mean)

    @cached_property
    def writes(self) -> tuple[Fold, ...]:
        """Every fold of the target on the way from a level's writes to the whole tensor, lowest rank first."""
        found: dict[Fold, None] = {Fold.identity(self.target): None}
        for level in self.levels:
            for fold in level.writes:
                while fold not in found:
                    found[fold] = None
                    if fold.step is not None:
                        fold = fold.step.parent
        return tuple(sorted(found, key=lambda fold: fold.rank))
