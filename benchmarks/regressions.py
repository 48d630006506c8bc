"""Changed ratios: two records of runs, compared by the names of their ratios."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from benchmarks.cases import RATIOS
from benchmarks.report import table

MOST_CHANGE = 0.15
"""Ratios of the same code differ by a few per cent from run to run."""


@dataclass(frozen=True)
class ChangedRatio:
    """A ratio in two records, and its relative change."""

    what: str
    old: float
    new: float

    @property
    def change(self) -> float:
        """0.2 for a ratio that has grown by 20 %."""
        return (self.new - self.old) / self.old


def compared(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[ChangedRatio]:
    """The ratios in both records, in the order of the new one."""
    before = ratios(old)
    return [ChangedRatio(what, before[what], value) for what, value in ratios(new).items() if before.get(what)]


def changed(old: Mapping[str, Any], new: Mapping[str, Any], *, by: float = MOST_CHANGE) -> list[ChangedRatio]:
    """The ratios that changed by more than a fraction."""
    return [one for one in compared(old, new) if abs(one.change) > by]


def ratios(record: Mapping[str, Any]) -> dict[str, float]:
    """Every ratio of a record by its name: single cases, then the summary."""
    found = {}
    for result in record["results"]:
        sizes = ",".join(str(result[name]) for name in ("batch", "n", "in_channels", "out_channels"))
        times = {name: one["median"] for name, one in result["contestants"].items()}
        for above, below in RATIOS[len(result["spec"].split("->")[0].split())]:
            if above in times and below in times:
                name = f"{result['spec']} at {sizes}, {result['pass']}, {above}/{below}"
                found[name] = times[above] / times[below]
    return found | {entry["what"]: entry["value"] for entry in record["summary"]}


def changes_table(old: Mapping[str, Any], new: Mapping[str, Any]) -> str:
    """One row for each changed ratio; or a sentence, if there is none."""
    both, several = compared(old, new), changed(old, new)
    if not several:
        return f"None of {len(both)} ratios in both runs changed by more than {MOST_CHANGE:.0%}."
    rows = [[f"changed by more than {MOST_CHANGE:.0%} since the recorded run", "old", "new", "change"]]
    rows += [[one.what, f"{one.old:.2f}", f"{one.new:.2f}", f"{one.change:+.0%}"] for one in several]
    return table(rows)
