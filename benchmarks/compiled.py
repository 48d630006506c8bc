"""`torch.compile(fullgraph=True)` of the layer, compared with the eager layer."""

from functools import partial

import torch

from benchmarks.cases import CASES, OURS, QUICK_CASES, Case
from benchmarks.contestants import Contestant, contestants
from benchmarks.goals import Verdict
from benchmarks.measure import geometric_mean
from benchmarks.races import Effort, Raced, Section, raced

BACKEND = "inductor"
COMPILED, EAGER = "compiled", "eager"
LEGEND = """\
compiled torch.compile(fullgraph=True) of the layer n n -> n n, compiled before the measurement; eager: not compiled"""


def measure_compiled(effort: Effort) -> Section:
    """One race for every case of order two, on two threads."""
    cases = [case for case in (QUICK_CASES[:1] if effort.quick else CASES) if case.order == 2]
    races = [_race(case, effort.rounds) for case in cases]
    ratios = [race.ratio(COMPILED, EAGER) for race in races]
    values = [ratio.value for ratio in ratios]
    summary = (
        Verdict("compiled/eager, cases at most 1", sum(value <= 1 for value in values)),
        Verdict("compiled/eager", geometric_mean(values)),
    )
    return Section(tuple(races), (*ratios, *summary))


def _race(case: Case, rounds: int) -> Raced:
    eager = contestants(case)[OURS]
    torch.compiler.reset()  # otherwise the second case would compile for dynamic sizes
    module = torch.compile(eager.module, fullgraph=True, backend=BACKEND)
    found = {COMPILED: Contestant(module, eager.x, eager.upstream), EAGER: eager}
    calls = {name: partial(one.run, "forward+backward") for name, one in found.items()}
    sizes = str(case).partition(":")[2]
    return raced(f"{case.spec} at {sizes}, forward+backward", calls, threads=2, rounds=rounds)
