"""Goals for the figures of the benchmarks, and whether they are reached."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from benchmarks.cases import BARE, OURS, RATIOS
from benchmarks.imports import MODULES
from benchmarks.measure import Timing, geometric_mean
from benchmarks.results import Result


@dataclass(frozen=True)
class Goal:
    """A bound on a figure."""

    sense: Literal["at least", "at most"]
    bound: float

    def __str__(self) -> str:
        return f"{self.sense} {self.bound:g}"

    def is_reached_by(self, value: float) -> bool:
        """Whether the value is within the bound."""
        return value >= self.bound if self.sense == "at least" else value <= self.bound


PAPER_BASELINE = 3.2
"""The ratio of the paper's network at commit 19049dd (3.3 and 3.1 in two runs); `--only paper` can measure it again."""

GOALS = {
    "n n -> n n, forward, ours/bare": Goal("at most", 1.2),
    "n n -> n n, forward, ours/bare, largest": Goal("at most", 2),
    "n n -> n n, forward, stacked/ours": Goal("at least", 9),
    "n n -> n n, forward+backward, ours/bare": Goal("at most", 1.2),
    "n n -> n n, forward+backward, ours/bare, largest": Goal("at most", 2),
    "n n -> n n, forward+backward, stacked/ours": Goal("at least", 9),
    "n n n -> n n n, forward+backward, einsums/ours": Goal("at least", 6),
    "n n n -> n n n, forward+backward, ours/bare": Goal("at most", 3),
    "n n n n -> n n n n, forward+backward, ours/bare": Goal("at most", 3),
    "import bellnet / import torch": Goal("at most", 1.15),
    "tiny layer, forward, ours/linear": Goal("at most", 12),
    "tiny layer, forward+backward, ours/linear": Goal("at most", 5),
    "small layer, forward+backward, ours/bare": Goal("at most", 1.9),
    "paper's network, training step, stacked/ours": Goal("at least", 1.3 * PAPER_BASELINE),
    "EquivariantNet, forward+backward, padded/tensor": Goal("at most", 1.15),
    "InvariantNet, forward+backward, padded/tensor": Goal("at most", 1.15),
    "classifier, 0.7 stored, padded/sparse": Goal("at least", 1),
    "n n, n -> n n, n, forward+backward, pairs/together": Goal("at least", 2),
    "n n, n -> n n, n, forward+backward, together/first": Goal("at most", 1.15),
    "a b, b, b c, c -> a b, b, b c, c, forward+backward, pairs/together": Goal("at least", 3),
    "products, forward+backward, product/bmm": Goal("at most", 1.3),
    "product at stored entries, forward, first/scipy": Goal("at most", 3),
    "product at stored entries, forward, later/scipy": Goal("at most", 3),
    "seconds to make n n n n -> n n n n": Goal("at most", 1),
    "compiled/eager, cases at most 1": Goal("at least", 5),
    "time, sparse/gine": Goal("at most", 1),
    "time, dense/sparse": Goal("at least", 5),
    "growing: time per stored entry, largest/smallest": Goal("at most", 1.5),
    "growing, memory retained: time per stored entry, largest/smallest": Goal("at most", 1.5),
    "growing: memory per stored entry, largest/smallest": Goal("at most", 1.5),
    "new support, forward+backward, first/later": Goal("at most", 2.5),
}
"""The goal of each figure of the summary, by its name; other figures have no goal."""


@dataclass(frozen=True)
class Verdict:
    """A figure of the summary, usually a ratio, and its goal if it has one."""

    what: str
    value: float

    @property
    def goal(self) -> Goal | None:
        """The goal, or None."""
        return GOALS.get(self.what)

    @property
    def reached(self) -> bool | None:
        """Whether the goal is reached; None without a goal."""
        return None if self.goal is None else self.goal.is_reached_by(self.value)


def verdicts(results: Sequence[Result], imports: dict[str, Timing]) -> list[Verdict]:
    """Geometric means over the cases for every ratio and pass, the largest ratio to the bare product, the import."""
    found = []
    for order, pairs in RATIOS.items():
        for which in dict.fromkeys(result.which for result in results if result.case.order == order):
            matching = [result for result in results if result.case.order == order and result.which == which]
            for above, below in pairs:
                what = f"{matching[0].case.spec}, {which}, {above}/{below}"
                ratios = [result.time_ratio(above, below) for result in matching]
                found.append(Verdict(what, geometric_mean(ratios)))
                if (above, below) == (OURS, BARE) and len(ratios) > 1:
                    found.append(Verdict(f"{what}, largest", max(ratios)))
                mean = geometric_mean(result.memory_ratio(above, below) for result in matching)
                found.append(Verdict(f"{what}, peak memory", mean))
    if imports:
        plain, ours = (imports[name].median for name in MODULES)
        found.append(Verdict("import bellnet / import torch", ours / plain))
    return found
