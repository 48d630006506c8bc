"""Batch normalization, ReLU, dropout and residual after a sparse layer: as one fused kernel and as separate operations.

A forward hook makes the block fall back to separate operations, so an empty hook makes the other contestant.
"""

from collections.abc import Callable
from functools import partial

import torch
from torch import nn

from bellnet import InvariantNet, Sparse
from benchmarks.races import Effort, Section, raced

FUSED, SEPARATE = "fused", "separate"
CHANNELS, N_GRAPHS, N, QUICK_N, SHARE = 48, 32, 70, 6, 0.9
LEGEND = """\
fused    a layer n n -> n n of 48 channels with batch normalization, ReLU, dropout and a residual, on 32 graphs of 70
         nodes with 0.9 of all pairs stored, one thread, forward and backward; what follows the layer as one kernel;
         separate: as single operations"""


def measure_fused_norm(effort: Effort) -> Section:
    """One race of blocks."""
    torch.manual_seed(0)
    n = QUICK_N if effort.quick else N
    supports = [(torch.rand(n, n) < SHARE).nonzero().T for _ in range(N_GRAPHS)]
    graphs = Sparse.pack(Sparse(index, torch.randn(index.shape[1], CHANNELS), n) for index in supports)
    contestants: dict[str, Callable[[], None]] = {}
    for name in (FUSED, SEPARATE):
        torch.manual_seed(1)
        options = {"norm": "batch", "dropout": 0.1, "residual": True, "normalize": "stored"}
        block = InvariantNet("n n", [CHANNELS, CHANNELS], 2, **options).blocks[0]
        if name == SEPARATE:
            block.norm.register_forward_hook(_empty_hook)
        contestants[name] = partial(_run, block, graphs)
    race = raced("block on stored entries, forward+backward", contestants, threads=1, rounds=effort.rounds)
    return Section((race,), (race.ratio(SEPARATE, FUSED),))


def _empty_hook(*_: object) -> None:
    pass


def _run(block: nn.Module, graphs: Sparse) -> None:
    values = graphs.values.detach().requires_grad_()
    found = block(graphs.with_values(values)).values
    found.backward(torch.ones_like(found))
