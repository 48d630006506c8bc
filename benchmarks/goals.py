"""What we set out to reach, and whether we did."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from benchmarks.cases import BARE, OURS, PER_DIAGRAM, RATIOS, STACKED
from benchmarks.imports import MODULES
from benchmarks.measure import Timing, geometric_mean
from benchmarks.results import Result


@dataclass(frozen=True)
class Goal:
    """A bound on a ratio."""

    sense: Literal["at least", "at most"]
    bound: float

    def __str__(self) -> str:
        return f"{self.sense} {self.bound:g}"

    def is_reached_by(self, value: float) -> bool:
        """Whether the value keeps the bound."""
        return value >= self.bound if self.sense == "at least" else value <= self.bound


GOALS = {
    (STACKED, OURS): Goal("at least", 5),
    (OURS, BARE): Goal("at most", 2),
    (PER_DIAGRAM, OURS): Goal("at least", 6),
}
"""For the geometric mean over all cases, in time."""

IMPORT_GOAL = Goal("at most", 1.15)


@dataclass(frozen=True)
class Verdict:
    """A ratio, summed up over everything that was measured, and its goal if it has one."""

    what: str
    value: float
    goal: Goal | None

    @property
    def reached(self) -> bool | None:
        """Whether the goal is reached; None without a goal."""
        return None if self.goal is None else self.goal.is_reached_by(self.value)


def verdicts(results: Sequence[Result], imports: dict[str, Timing]) -> list[Verdict]:
    """Geometric means over the cases for every ratio and pass, then the cost of importing."""
    found = []
    for order, pairs in RATIOS.items():
        for which in dict.fromkeys(result.which for result in results if result.case.order == order):
            matching = [result for result in results if result.case.order == order and result.which == which]
            for above, below in pairs:
                what = f"{matching[0].case.spec}, {which}, {above}/{below}"
                mean = geometric_mean(result.time_ratio(above, below) for result in matching)
                found.append(Verdict(what, mean, GOALS.get((above, below))))
                mean = geometric_mean(result.memory_ratio(above, below) for result in matching)
                found.append(Verdict(f"{what}, peak memory", mean, None))
    if imports:
        plain, ours = (imports[name].median for name in MODULES)
        found.append(Verdict("import bellnet / import torch", ours / plain, IMPORT_GOAL))
    return found
