"""A training step of the paper's network for graphs, compared with the same network of stacked layers.

Only public names are used, so that the same race can be run on another checkout of the library:

    PYTHONPATH=../older/src python -m benchmarks --only paper
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from bellnet import InvariantNet
from benchmarks.baselines import StackedNet
from benchmarks.cases import OURS, STACKED
from benchmarks.races import Effort, Section, raced

CHANNELS, HIDDEN, N_CLASSES = (8, 16, 32, 256), (512, 256), 2
BATCH, N, QUICK_N = 5, 30, 6
LEGEND = """\
paper    the paper's network: channels 8, 16, 32, 256, dense layers 512, 256; 5 graphs of 30 nodes, one thread;
         forward, backward and a step of Adam; stacked: the same network of stacked layers"""


def measure_paper(effort: Effort) -> Section:
    """One race of training steps."""
    torch.manual_seed(0)
    net = InvariantNet("n n", CHANNELS, N_CLASSES, hidden=HIDDEN)
    copy = StackedNet.like(net)
    n = QUICK_N if effort.quick else N
    x, labels = torch.randn(BATCH, n, n, CHANNELS[0]), torch.arange(BATCH) % N_CLASSES
    first = x.movedim(-1, 1).contiguous()
    with torch.no_grad():
        if not torch.allclose(net(x), copy(first), rtol=1e-3, atol=1e-3):
            raise ValueError("the outputs of the stacked network and of ours differ, so their times cannot be compared")
    steps = {OURS: training_step(net, x, labels), STACKED: training_step(copy, first, labels)}
    race = raced("paper's network, training step", steps, threads=1, rounds=effort.rounds)
    return Section((race,), (race.ratio(STACKED, OURS),))


def training_step(net: nn.Module, x: Any, labels: Tensor) -> Callable[[], None]:
    """A training step as in the experiments: cross-entropy summed over the batch, Adam in one fused operation.

    The learning rate is zero, so that every step begins with the same weights. Otherwise gradients would vanish, and
    denormal numbers are slow.
    """
    optimizer = torch.optim.Adam(net.parameters(), lr=0.0, fused=True)
    return partial(_step, net, optimizer, x, labels)


def _step(net: nn.Module, optimizer: torch.optim.Optimizer, x: Any, labels: Tensor) -> None:
    optimizer.zero_grad()
    cross_entropy(net(x), labels, reduction="sum").backward()
    optimizer.step()
