"""Races of sections: contestants of the same work that are timed in turns, and the ratios of their times."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch

from benchmarks.goals import Verdict
from benchmarks.measure import Timing, race
from benchmarks.report import table


@dataclass(frozen=True)
class Effort:
    """Number of rounds, and whether sizes are small (quick) or those of the goals."""

    rounds: int
    quick: bool


@dataclass(frozen=True)
class Raced:
    """The result of one race.

    Attributes:
        what: The work of all contestants.
        threads: Number of threads of torch.
        timings: For every contestant, seconds for one call.
        is_steady: Whether the machine seemed idle otherwise.
    """

    what: str
    threads: int
    timings: Mapping[str, Timing]
    is_steady: bool

    def ratio(self, above: str, below: str) -> Verdict:
        """The median time of one contestant over that of another."""
        value = self.timings[above].median / self.timings[below].median
        return Verdict(f"{self.what}, {above}/{below}", value)


@dataclass(frozen=True)
class Section:
    """The races of a section, and their summary figures."""

    races: tuple[Raced, ...]
    verdicts: tuple[Verdict, ...]


def raced(what: str, contestants: Mapping[str, Callable[[], object]], *, threads: int, rounds: int) -> Raced:
    """Run a race with the given number of threads."""
    with on_threads(threads):
        outcome = race(contestants, rounds=rounds)
    return Raced(what, threads, outcome.timings, outcome.is_steady)


@contextmanager
def on_threads(threads: int) -> Iterator[None]:
    """Set the number of threads of torch, and restore it afterwards."""
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def race_table(races: list[Raced]) -> str:
    """One row for each contestant of each race."""
    rows = [["race", "threads", "contestant", "ms"]]
    for one in races:
        rows += [
            [one.what, str(one.threads), name, f"{1e3 * timing.median:.3f}"] for name, timing in one.timings.items()
        ]
    return table(rows)


def race_record(races: list[Raced]) -> list[dict[str, Any]]:
    """The races as JSON-compatible objects."""
    return [
        {
            "race": one.what,
            "threads": one.threads,
            "is_steady": one.is_steady,
            "contestants": {name: timing.record() for name, timing in one.timings.items()},
        }
        for one in races
    ]


def from_record(found: Mapping[str, Any]) -> Raced:
    """The race that `race_record` serialized."""
    timings = {name: Timing(tuple(one["samples"]), one["repetitions"]) for name, one in found["contestants"].items()}
    return Raced(found["race"], found["threads"], timings, found["is_steady"])
