"""The result of one case and pass."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from benchmarks.cases import Case, Pass
from benchmarks.contestants import check_agreement, contestants
from benchmarks.measure import Timing, race
from benchmarks.memory import peak_extra_bytes


@dataclass(frozen=True)
class Result:
    """Time and memory of every contestant.

    Attributes:
        which: The pass that was run.
        timings: For every contestant, seconds for one call.
        peak_bytes: For every contestant, its peak extra memory.
        is_steady: Whether the machine seemed idle otherwise.
    """

    case: Case
    which: Pass
    timings: Mapping[str, Timing]
    peak_bytes: Mapping[str, int]
    is_steady: bool

    def time_ratio(self, above: str, below: str) -> float:
        """The median time of one contestant over that of another."""
        return self.timings[above].median / self.timings[below].median

    def memory_ratio(self, above: str, below: str) -> float:
        """The peak memory of one contestant over that of another."""
        return self.peak_bytes[above] / self.peak_bytes[below]


def measure(case: Case, *, rounds: int) -> list[Result]:
    """Measure all passes of a case: memory first, then time."""
    found = contestants(case)
    check_agreement(found)
    results = []
    for which in case.passes:
        calls: dict[str, Callable[[], object]] = {
            name: partial(contestant.run, which) for name, contestant in found.items()
        }
        peaks = {name: peak_extra_bytes(call) for name, call in calls.items()}
        outcome = race(calls, rounds=rounds)
        results.append(Result(case, which, outcome.timings, peaks, outcome.is_steady))
    return results
