"""The overhead of `Padded` without padding: networks on graphs of one size, as a `Padded` and as a tensor."""

from collections.abc import Mapping
from functools import partial

import torch
from torch import Tensor, nn

from bellnet import EquivariantNet, InvariantNet, Padded
from benchmarks.calls import run_once
from benchmarks.races import Effort, Section, raced

BATCH, N, QUICK_N, WIDTH = 32, 30, 5, 8
PADDED, TENSOR = "padded", "tensor"
LEGEND = """\
padded   three layers, 32 graphs of 30 nodes, as a Padded that is constructed in every call; tensor: the values"""


def networks() -> Mapping[str, nn.Module]:
    """The networks that are raced."""
    return {
        "EquivariantNet": EquivariantNet("n n -> n n", [WIDTH, 16, 16, WIDTH]),
        "InvariantNet": InvariantNet("n n", [WIDTH, 16, 16, 16], WIDTH, hidden=[32]),
    }


def measure_padded(effort: Effort) -> Section:
    """One race for each network."""
    races, ratios = [], []
    n = QUICK_N if effort.quick else N
    for name, net in networks().items():
        x = torch.randn(BATCH, n, n, WIDTH, requires_grad=True)
        sizes = torch.full((BATCH,), n)
        upstream = torch.randn(on_tensor(net, x).shape)
        forwards = {PADDED: partial(on_padded, net, x, sizes), TENSOR: partial(on_tensor, net, x)}
        calls = {
            which: partial(run_once, forward, upstream, [x, *net.parameters()]) for which, forward in forwards.items()
        }
        races.append(raced(f"{name}, forward+backward", calls, threads=2, rounds=effort.rounds))
        ratios.append(races[-1].ratio(PADDED, TENSOR))
    return Section(tuple(races), tuple(ratios))


def on_tensor(net: nn.Module, x: Tensor) -> Tensor:
    """The output of a network for a tensor."""
    result: Tensor = net(x)
    return result


def on_padded(net: nn.Module, x: Tensor, sizes: Tensor) -> Tensor:
    """The output values for a new `Padded`, as in a training step."""
    result: Padded | Tensor = net(Padded(x, sizes))
    return result.values if isinstance(result, Padded) else result
