"""Layers so small that the overhead of calling torch dominates."""

from functools import partial

import torch
from torch import nn

from bellnet import EquivariantLinear
from benchmarks.calls import run_once
from benchmarks.cases import BARE, OURS, Case
from benchmarks.contestants import contestants
from benchmarks.races import Effort, Raced, Section, raced

TINY = Case(2, batch=1, n=5, in_channels=8, out_channels=8)
SMALL = Case(2, batch=5, n=30, in_channels=16, out_channels=32)
LINEAR = "linear"
LEGEND = """\
tiny     EquivariantLinear at batch,n,in,out = 1,5,8,8 on one thread; linear: nn.Linear(8, 8) on the same tensor
small    the same at 5,30,16,32 on two threads"""


def measure_tiny(effort: Effort) -> Section:
    """The tiny layer against `nn.Linear` on the same tensor, the small one against the bare product."""
    forward, both = _tiny(effort.rounds)
    found = contestants(SMALL)
    calls = {name: partial(found[name].run, "forward+backward") for name in (OURS, BARE)}
    small = raced("small layer, forward+backward", calls, threads=2, rounds=effort.rounds)
    ratios = (forward.ratio(OURS, LINEAR), both.ratio(OURS, LINEAR), small.ratio(OURS, BARE))
    return Section((forward, both, small), ratios)


def _tiny(rounds: int) -> tuple[Raced, Raced]:
    modules: dict[str, nn.Module] = {
        OURS: EquivariantLinear(TINY.spec, TINY.in_channels, TINY.out_channels),
        LINEAR: nn.Linear(TINY.in_channels, TINY.out_channels),
    }
    x = torch.randn(TINY.batch, TINY.n, TINY.n, TINY.in_channels, requires_grad=True)
    upstream = torch.randn(TINY.batch, TINY.n, TINY.n, TINY.out_channels)
    # At this size even disabling gradients would be measurable, so it is done once for all calls.
    with torch.no_grad():
        calls = {name: partial(module, x) for name, module in modules.items()}
        forward = raced("tiny layer, forward", calls, threads=1, rounds=rounds)
    runs = {
        name: partial(run_once, partial(module, x), upstream, [x, *module.parameters()])
        for name, module in modules.items()
    }
    return forward, raced("tiny layer, forward+backward", runs, threads=1, rounds=rounds)
