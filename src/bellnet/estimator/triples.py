"""The network over triples of nodes: a layer from pairs to triples, layers between triples, what leads to labels."""

from collections.abc import Sequence
from itertools import pairwise

from torch import Tensor, nn

from bellnet import ChannelDropout, EquivariantLinear, InvariantPool, Padded, Pointwise

LAST = {"node": "n n n -> n", "edge": "n n n -> n n"}


class TripleNet(nn.Module):
    """Equivariant layers over triples with an activation after each, then what the labels belong to.

    Tensors over triples can tell graphs apart that look alike to colour refinement, and so to all networks over pairs:
    the sum over k of an activation of entries (i, j, k) knows how many common neighbours i and j have.

    Args:
        target: What has labels: "graph", "node" or "edge".
        channels: The channels of the input, over pairs, and after each equivariant layer, over triples.
        widths: The widths of the layers after them, the last one that of the output.
        pool: What is taken of each of the five orbits of triples where graphs have labels: "max", "mean" or "sum", or
            several of them.
        dropout: The probability to drop a channel.
    """

    def __init__(
        self,
        target: str,
        channels: Sequence[int],
        *,
        widths: Sequence[int],
        pool: str | Sequence[str],
        dropout: float,
    ) -> None:
        super().__init__()
        modules: list[nn.Module] = []
        for place, (before, after) in enumerate(pairwise(channels)):
            spec = "n n n -> n n n" if place else "n n -> n n n"
            modules += [EquivariantLinear(spec, before, after), Pointwise(nn.ReLU()), ChannelDropout(dropout, 3)]
        self.layers = nn.Sequential(*modules)
        if target == "graph":
            pooled = InvariantPool("n n n", pool)
            self.last: nn.Module = nn.Sequential(pooled, nn.Linear(pooled.growth * channels[-1], widths[0]))
        else:
            self.last = EquivariantLinear(LAST[target], channels[-1], widths[0])
        slots = {"graph": 0, "node": 1, "edge": 2}[target]
        following: list[nn.Module] = []
        for before, after in pairwise(widths):
            following += [Pointwise(nn.ReLU()), ChannelDropout(dropout, slots), Pointwise(nn.Linear(before, after))]
        self.head = nn.Sequential(*following)

    def forward(self, x: Tensor | Padded) -> Tensor | Padded:
        """From (*batch, n, n, channels[0]) to a row of outputs for each graph, node or pair of nodes."""
        result: Tensor | Padded = self.head(self.last(self.layers(x)))
        return result
