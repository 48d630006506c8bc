"""Fair timing: contestants take turns, so that other work of the machine affects all of them alike.

A round is one sample of every contestant, and each round begins with another one. A sample repeats its call often
enough to take `LEAST_SECONDS` (or longer if contestants differ much in size, because their first calls find cold
caches), and counts seconds for one call. The medians over the rounds are compared. The garbage collector is disabled
meanwhile.

A fixed piece of work is timed in every round as well. On an idle machine its time is constant; if it is not,
`Race.is_steady` is False and the timings are unreliable.
"""

import gc
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from math import ceil, exp, log
from statistics import median
from time import perf_counter
from typing import Any

import torch

LEAST_SECONDS = 0.02
MOST_DRIFT = 1.25


@dataclass(frozen=True)
class Timing:
    """Seconds for one call, sampled once in every round.

    Attributes:
        samples: One for each round.
        repetitions: How many calls make a sample.
    """

    samples: tuple[float, ...]
    repetitions: int

    @property
    def median(self) -> float:
        """The middle sample."""
        return median(self.samples)

    def record(self) -> dict[str, Any]:
        """The timing as a JSON-compatible object."""
        return {"median": self.median, "samples": list(self.samples), "repetitions": self.repetitions}


@dataclass(frozen=True)
class Race:
    """The timing of every contestant, and of the fixed work between them."""

    timings: Mapping[str, Timing]
    fixed_work: tuple[float, ...]

    @property
    def is_steady(self) -> bool:
        """Whether the fixed work took about equally long in most rounds."""
        return median(self.fixed_work) <= MOST_DRIFT * min(self.fixed_work)


def race(
    contestants: Mapping[str, Callable[[], object]],
    *,
    rounds: int,
    warm_up: int = 2,
    least_seconds: float = LEAST_SECONDS,
) -> Race:
    """Time every contestant once in every round."""
    names = list(contestants)
    repetitions = {name: _repetitions(contestants[name], warm_up, least_seconds) for name in names}
    samples: dict[str, list[float]] = {name: [] for name in names}
    fixed_work = []
    time_fixed_work()
    with _no_collection():
        for number in range(rounds):
            fixed_work.append(time_fixed_work())
            start = number % len(names)
            for name in names[start:] + names[:start]:
                samples[name].append(_sample(contestants[name], repetitions[name]))
    timings = {name: Timing(tuple(samples[name]), repetitions[name]) for name in names}
    return Race(timings, tuple(fixed_work))


def geometric_mean(values: Iterable[float]) -> float:
    """The geometric mean: that of 2 and 1/2 is 1."""
    found = list(values)
    if not found:
        raise ValueError("the geometric mean of no values is undefined")
    return exp(sum(map(log, found)) / len(found))


def load_average() -> float | None:
    """The load average of the last minute; None where the system has none."""
    try:
        return os.getloadavg()[0]
    except (AttributeError, OSError):
        return None


def _repetitions(call: Callable[[], object], warm_up: int, least_seconds: float) -> int:
    for _ in range(warm_up):
        call()
    # Grow until a sample is long enough. The shortest of three counts: a single one may have been interrupted.
    repetitions = 1
    while (seconds := repetitions * min(_sample(call, repetitions) for _ in range(3))) < least_seconds:
        repetitions = max(repetitions + 1, min(10 * repetitions, ceil(1.1 * repetitions * least_seconds / seconds)))
    return repetitions


def _sample(call: Callable[[], object], repetitions: int) -> float:
    start = perf_counter()
    for _ in range(repetitions):
        call()
    return (perf_counter() - start) / repetitions


def time_fixed_work() -> float:
    """Seconds for work that is always the same."""
    square = torch.ones(384, 384)
    return _sample(lambda: square @ square, 20)


@contextmanager
def _no_collection() -> Iterator[None]:
    was_enabled = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
