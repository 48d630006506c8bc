"""Seconds to construct a large layer in a fresh interpreter, without a cached plan."""

import torch

from benchmarks.calls import python_output
from benchmarks.goals import Verdict
from benchmarks.measure import Timing
from benchmarks.races import Effort, Raced, Section

SPEC, QUICK_SPEC = "n n n n -> n n n n", "n n -> n n"
CODE = """\
from time import perf_counter
from bellnet import EquivariantLinear
start = perf_counter()
EquivariantLinear({!r}, 4, 4)
print(perf_counter() - start)
"""
MOST_ROUNDS = 5
LEGEND = """\
making   EquivariantLinear("n n n n -> n n n n", 4, 4), 4140 maps, in a fresh interpreter; seconds, not a ratio"""


def measure_construction(effort: Effort) -> Section:
    """Seconds of the constructor, each time in a fresh interpreter."""
    spec = QUICK_SPEC if effort.quick else SPEC
    timing = Timing(tuple(_make_once(spec) for _ in range(min(effort.rounds, MOST_ROUNDS))), 1)
    race = Raced(f"making {spec}", torch.get_num_threads(), {"ours": timing}, is_steady=True)
    return Section((race,), (Verdict(f"seconds to make {spec}", timing.median),))


def _make_once(spec: str) -> float:
    return float(python_output(CODE.format(spec)))
