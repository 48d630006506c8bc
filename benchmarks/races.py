"""Races other than those of the dense cases: who took part, how long each took, and what is made of it."""

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
    """How much is measured: how many rounds, and small sizes or those that the goals are set for."""

    rounds: int
    quick: bool


@dataclass(frozen=True)
class Raced:
    """What was measured in one race.

    Attributes:
        what: The work that all of them do.
        threads: How many torch had.
        timings: For every contestant, seconds for one call.
        is_steady: Whether the machine seemed to do nothing else.
    """

    what: str
    threads: int
    timings: Mapping[str, Timing]
    is_steady: bool

    def ratio(self, above: str, below: str) -> Verdict:
        """How many times as long the first takes as the second."""
        value = self.timings[above].median / self.timings[below].median
        return Verdict(f"{self.what}, {above}/{below}", value)


@dataclass(frozen=True)
class Section:
    """The races of one question, and the figures that answer it."""

    races: tuple[Raced, ...]
    verdicts: tuple[Verdict, ...]


def raced(what: str, contestants: Mapping[str, Callable[[], object]], *, threads: int, rounds: int) -> Raced:
    """Race on so many threads, whatever their number is elsewhere."""
    with on_threads(threads):
        outcome = race(contestants, rounds=rounds)
    return Raced(what, threads, outcome.timings, outcome.is_steady)


@contextmanager
def on_threads(threads: int) -> Iterator[None]:
    """So many threads for torch, and afterwards as many as before."""
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def race_table(races: list[Raced]) -> str:
    """One row for everyone in every race."""
    rows = [["race", "threads", "who", "ms"]]
    for one in races:
        rows += [
            [one.what, str(one.threads), name, f"{1e3 * timing.median:.3f}"] for name, timing in one.timings.items()
        ]
    return table(rows)


def race_record(races: list[Raced]) -> list[dict[str, Any]]:
    """Everything, as JSON takes it."""
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
    """A race that `race_record` has written."""
    timings = {name: Timing(tuple(one["samples"]), one["repetitions"]) for name, one in found["contestants"].items()}
    return Raced(found["race"], found["threads"], timings, found["is_steady"])
