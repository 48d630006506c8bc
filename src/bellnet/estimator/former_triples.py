"""The network over triples of nodes in files up to version 6: layers between triples, and not pairs, throughout.

It is read and never trained again.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn

from bellnet import ChannelDropout, EntryNorm, EquivariantLinear, InvariantPool, Padded, Pointwise

LAST = {"node": "n n n -> n", "edge": "n n n -> n n"}
SLOTS = {"graph": 0, "node": 1, "edge": 2}


class FormerTripleNet(nn.Module):
    """Equivariant layers over triples with an activation after each, then what the labels belong to.

    Tensors over triples can tell graphs apart that look alike to colour refinement, and so to all networks over pairs:
    the sum over k of an activation of entries (i, j, k) knows how many common neighbours i and j have.

    Args:
        target: What has labels: "graph", "node" or "edge".
        given: The channels of the input: of pairs, or where nodes have a tensor of their own, of pairs and of nodes.
        channels: The channels after each equivariant layer, over triples.
        widths: The widths of the layers after them, the last one that of the output.
        pool: What is taken of each of the five orbits of triples where graphs have labels, one or several of "max",
            "mean" and "sum".
        jump: Whether that is taken after every layer, and not after the last alone.
        norm: What is normalised before every activation, see `EntryNorm`; None for nothing.
        residual: Whether layers between equal numbers of channels of triples add their input to their output.
        dropout: The probability to drop a channel.
    """

    def __init__(
        self,
        target: str,
        given: int | tuple[int, int],
        channels: Sequence[int],
        *,
        widths: Sequence[int],
        pool: str | Sequence[str],
        jump: bool,
        norm: str | None,
        residual: bool,
        dropout: float,
    ) -> None:
        super().__init__()
        self.jump = jump and target == "graph"
        self.layers = nn.ModuleList()
        self.adds: list[bool] = []
        first = "n n, n -> n n n" if isinstance(given, tuple) else "n n -> n n n"
        for place, (before, after) in enumerate(pairwise([given, *channels])):
            modules: list[nn.Module] = [EquivariantLinear("n n n -> n n n" if place else first, before, after)]
            modules += [] if norm is None else [EntryNorm("n n n", after, over=norm)]
            self.layers.append(nn.Sequential(*modules, Pointwise(nn.ReLU()), ChannelDropout(dropout, 3)))
            self.adds.append(residual and place > 0 and before == after)
        self.pool = InvariantPool("n n n", pool) if target == "graph" else None
        pooled = sum(channels) if self.jump else channels[-1]
        self.last: nn.Module = (
            EquivariantLinear(LAST[target], channels[-1], widths[0])
            if self.pool is None
            else nn.Linear(self.pool.growth * pooled, widths[0])
        )
        following: list[nn.Module] = []
        for before, after in pairwise(widths):
            following += [Pointwise(nn.ReLU()), ChannelDropout(dropout, SLOTS[target])]
            following.append(Pointwise(nn.Linear(before, after)))
        self.head = nn.Sequential(*following)

    def forward(self, x: Any) -> Tensor | Padded:
        """From (*batch, n, n, channels), or that and (*batch, n, channels), to outputs for graphs, nodes or pairs."""
        pooled: list[Tensor] = []
        for place, (layer, adds) in enumerate(zip(self.layers, self.adds, strict=True)):
            x = x + layer(x) if adds else layer(x)
            if self.pool is not None and (self.jump or place == len(self.layers) - 1):
                pooled.append(self.pool(x))
        result: Tensor | Padded = self.head(self.last(torch.cat(pooled, -1) if pooled else x))
        return result
