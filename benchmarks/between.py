"""What stands between layers on listed tuples: normalise, rectify, drop and add, at once and operation by operation.

Whoever looks at a part with a hook is shown the operations, so a hook that does nothing makes the other contestant.
"""

from collections.abc import Callable
from functools import partial

import torch
from torch import nn

from bellnet import InvariantNet, Sparse
from benchmarks.races import Effort, Section, raced

AT_ONCE, APART = "at once", "separate"
CHANNELS, N_GRAPHS, N, QUICK_N, SHARE = 48, 32, 70, 6, 0.9
LEGEND = """\
between  a layer n n -> n n of 48 channels with batch normalisation, ReLU, dropout and a residual, on 32 graphs of 70
         nodes with 0.9 of all pairs listed, one thread, forward and backward; at once: what follows the layer is done
         by kernels together; apart: operation by operation"""


def measure_between(effort: Effort) -> Section:
    """One race of blocks."""
    torch.manual_seed(0)
    n = QUICK_N if effort.quick else N
    listed = [(torch.rand(n, n) < SHARE).nonzero().T for _ in range(N_GRAPHS)]
    graphs = Sparse.pack(Sparse(index, torch.randn(index.shape[1], CHANNELS), n) for index in listed)
    contestants: dict[str, Callable[[], None]] = {}
    for who in (AT_ONCE, APART):
        torch.manual_seed(1)
        options = {"norm": "batch", "dropout": 0.1, "residual": True, "normalize": "stored"}
        block = InvariantNet("n n", [CHANNELS, CHANNELS], 2, **options).blocks[0]
        if who == APART:
            block.norm.register_forward_hook(_look)
        contestants[who] = partial(_run, block, graphs)
    race = raced("block on listed tuples, forward+backward", contestants, threads=1, rounds=effort.rounds)
    return Section((race,), (race.ratio(APART, AT_ONCE),))


def _look(*_: object) -> None:
    pass


def _run(block: nn.Module, graphs: Sparse) -> None:
    values = graphs.values.detach().requires_grad_()
    found = block(graphs.with_values(values)).values
    found.backward(torch.ones_like(found))
