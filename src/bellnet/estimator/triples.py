"""The network over triples of nodes: blocks that lead from pairs up to triples and down again, and to labels."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn

from bellnet import ChannelDropout, EntryNorm, EquivariantLinear, InvariantPool, Padded, Pointwise

SLOTS = {"graph": 0, "node": 1, "edge": 2}
UP, DOWN = ("ab->acb", "ab->cba"), ("abc->ab",)
"""The maps that blocks begin with: entries (i, k) and (k, j) come together at (i, j, k), whose mean over k is taken."""
NARROW = 0.1
"""The spread of the biases that triples begin with; entries have a second moment of about one."""
MOMENTUM = 0.3
"""How fast statistics of batches are followed: what is pooled is scaled up, and so is all that they lag behind."""
REMEMBERED = 100
"""Over how many graphs the running mean and variance of pooled values are taken."""


class TripleNet(nn.Module):
    """Blocks from pairs of nodes to triples and back, then what the labels belong to.

    A mean over k of an activation of what (i, k) and (k, j) add up to knows how many common neighbours i and j have, so
    that graphs are told apart which look alike to colour refinement, and so to all networks over pairs. Channels
    are mixed in pairs alone; triples are added up and activated, for a product of each of them would take long.

    Args:
        target: What has labels: "graph", "node" or "edge".
        given: The channels of the input: of pairs, or where nodes have a tensor of their own, of pairs and of nodes.
        channels: The channels of each block, of its triples and of its pairs.
        widths: The widths of the layers after them, the last one that of the output.
        pool: What is taken of the diagonal and of all other pairs where graphs have labels, one or several of "max",
            "mean" and "sum".
        jumping_knowledge: Whether that is taken after every block, and not after the last alone.
        norm: What is normalised of that which comes back from triples, see `EntryNorm`; None for nothing.
        residual: Whether blocks between equal numbers of channels add their input to their output.
        dropout: The probability to drop a channel after the blocks; in them it would hide what is faint.
    """

    def __init__(
        self,
        target: str,
        given: int | tuple[int, int],
        channels: Sequence[int],
        *,
        widths: Sequence[int],
        pool: str | Sequence[str],
        jumping_knowledge: bool,
        norm: str | None,
        residual: bool,
        dropout: float,
    ) -> None:
        super().__init__()
        self.jumping_knowledge = jumping_knowledge and target == "graph"
        self.blocks = nn.ModuleList(
            TripleBlock(before, after, norm=norm, residual=residual)
            for before, after in zip([given, *channels[:-1]], channels, strict=True)
        )
        self.pool = InvariantPool("n n", pool) if target == "graph" else None
        if self.pool is None:
            spec = "n n -> n" if target == "node" else "n n -> n n"
            following: list[nn.Module] = [EquivariantLinear(spec, channels[-1], widths[0])]
        else:
            pooled = self.pool.growth * (sum(channels) if self.jumping_knowledge else channels[-1])
            following = [RunningNorm(pooled), nn.Linear(pooled, widths[0])]
        for before, after in pairwise(widths):
            following += [Pointwise(nn.ReLU()), ChannelDropout(dropout, SLOTS[target])]
            following.append(Pointwise(nn.Linear(before, after)))
        self.head = nn.Sequential(*following)

    def forward(self, x: Any) -> Tensor | Padded:
        """From (*batch, n, n, channels), or that and (*batch, n, channels), to outputs for graphs, nodes or pairs."""
        pooled: list[Tensor] = []
        for place, block in enumerate(self.blocks):
            x = block(x)
            if self.pool is not None and (self.jumping_knowledge or place == len(self.blocks) - 1):
                pooled.append(self.pool(x))
        result: Tensor | Padded = self.head(torch.cat(pooled, -1) if pooled else x)
        return result

    def begin(self, generator: torch.Generator) -> None:
        """Let blocks, whose layers have drawn weights, begin at the product of two matrices.

        Up and down have other maps at zero then: of what all maps give together the product would be a small part.
        """
        for block in self.blocks:
            assert isinstance(block, TripleBlock)
            block.begin(generator)

    def rates(self, learning_rate: float) -> list[dict[str, Any]]:
        """The learning rate of all weights: in blocks it is divided by the number of maps of their layer.

        Adam moves every weight by as much as it does, and a layer with 52 maps would move 52 times as far.
        """
        groups: list[dict[str, Any]] = []
        slow: set[int] = set()
        for layer in self.blocks.modules():
            if isinstance(layer, EquivariantLinear):
                weights = list(layer.parameters())
                groups.append({"params": weights, "lr": learning_rate / layer.plan.n_maps})
                slow.update(map(id, weights))
        others = [weight for weight in self.parameters() if id(weight) not in slow]
        return [*groups, {"params": others, "lr": learning_rate}]


class TripleBlock(nn.Module):
    """From pairs up to triples, an activation, down to pairs, beside a layer from pairs to pairs."""

    def __init__(self, before: int | tuple[int, int], after: int, *, norm: str | None, residual: bool) -> None:
        super().__init__()
        source = "n n, n" if isinstance(before, tuple) else "n n"
        self.across = EquivariantLinear(f"{source} -> n n", before, after)
        self.up = EquivariantLinear(f"{source} -> n n n", before, after)
        self.activation = Pointwise(nn.ReLU())
        self.down = EquivariantLinear("n n n -> n n", after, after)
        self.norm = None if norm is None else EntryNorm("n n", after, over=norm, momentum=MOMENTUM)
        self.adds = residual and before == after

    def begin(self, generator: torch.Generator) -> None:
        """See `TripleNet.begin`."""
        _begin_with(self.up, UP, generator)
        _begin_with(self.down, DOWN, generator)
        biases = getattr(self.up, "bias_0" if len(self.up.plan.pairs) > 1 else "bias")
        nn.init.normal_(biases, std=NARROW, generator=generator)

    def forward(self, x: Any) -> Tensor | Padded:
        """From (*batch, n, n, channels), or that and (*batch, n, channels), to pairs."""
        found = self.down(self.activation(self.up(x)))
        found = self.across(x) + (found if self.norm is None else self.norm(found))
        result: Tensor | Padded = x + found if self.adds else found
        return result


class RunningNorm(nn.Module):
    """Values of graphs, shifted and scaled by the mean and the variance over the last graphs seen in training.

    In training as in evaluation, so that batches may be of one graph; gradients do not go through the statistics.
    """

    seen: Tensor
    mean: Tensor
    variance: Tensor

    def __init__(self, channels: int, *, eps: float = 1e-5) -> None:
        super().__init__()
        self.eps = eps
        self.register_buffer("seen", torch.zeros(()))
        self.register_buffer("mean", torch.zeros(channels))
        self.register_buffer("variance", torch.ones(channels))

    def reset_parameters(self) -> None:
        """Forget what was seen."""
        nn.init.zeros_(self.seen)
        nn.init.zeros_(self.mean)
        nn.init.ones_(self.variance)

    def forward(self, x: Tensor) -> Tensor:
        """From (graphs, channels) to the same."""
        if self.training:
            self._see(x.detach())
        return (x - self.mean) / (self.variance + self.eps).sqrt()

    def _see(self, x: Tensor) -> None:
        share = len(x) / (len(x) + float(self.seen))
        before = self.mean.clone()
        self.mean.lerp_(x.mean(0), share)
        spread = (x - self.mean) * (x - (self.mean if share == 1 else before))
        self.variance.lerp_(spread.mean(0), share)
        self.seen.add_(len(x)).clamp_(max=REMEMBERED)


def _begin_with(layer: EquivariantLinear, names: Sequence[str], generator: torch.Generator) -> None:
    """Let some maps of pairs have all of the weight, so that an activation keeps the second moment."""
    of_pairs = layer.plan.pairs[0]
    weight: Tensor = getattr(layer, "weight_0_to_0" if len(layer.plan.pairs) > 1 else "weight")
    spread = (2 / weight.shape[1] / len(names)) ** 0.5
    with torch.no_grad():
        for place, diagram in enumerate(layer.plan.diagrams[: of_pairs.n_maps]):
            drawn = torch.randn(weight.shape[1:], generator=generator)
            weight[place] = spread * drawn if diagram.name in names else 0
