"""The ensemble of an estimator and its networks: from a batch of encoded graphs to a row of outputs for each label.

The members of an ensemble are networks that differ in their initial weights and in the channels that dropout drops. On
few graphs much of what one network learns is due to chance, which differs between networks, so the mean of their
outputs is usually better than most of them.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from bellnet import (
    ChannelDropout,
    EntryNorm,
    EquivariantLinear,
    EquivariantNet,
    InvariantNet,
    InvariantPool,
    Padded,
    Pointwise,
    Sparse,
)
from bellnet.data import Graph, Loader

OverNodes = Tensor | Padded | Sparse
AXES = {"graph": "", "node": "n", "edge": "n n"}
"""The shape of the outputs over nodes, by the target."""
UP, DOWN = ("ab->acb", "ab->cba"), ("abc->ab",)
"""The basis maps that triple blocks start with: entries (i, k) and (k, j) are added at (i, j, k), whose mean over k is
taken."""
BIAS_STD = 0.1
"""The standard deviation of the initial biases of triples; entries have a second moment of about one."""
MOMENTUM = 0.3
"""The momentum of batch statistics in triple blocks, larger than usual, so that they lag less behind the weights."""
WINDOW = 100
"""The number of graphs over which the running mean and variance of pooled values are taken."""


@dataclass(frozen=True, kw_only=True)
class NetConfig:
    """The architecture of a network, and how many networks there are.

    Attributes:
        target: What has labels: "graph", "node" or "edge".
        in_channels: The channels of pairs of nodes; or of pairs and of nodes, if nodes have a tensor of their own.
        channels: The output channels of each equivariant layer, or with order 3 of each block.
        order: 2 for layers over pairs of nodes, 3 for blocks over triples.
        hidden: The widths of the fully connected layers after them.
        out_channels: The number of outputs for a label.
        pool: The reductions over each orbit if graphs have labels: one or several of "max", "mean" and "sum".
        jumping_knowledge: Whether the output of every layer is pooled, instead of that of the last layer.
        norm: The normalisation before every activation, see `EntryNorm`; None for none.
        residual: Whether layers between equal numbers of channels add their input to their output.
        dropout: The probability to drop a channel.
        layout: The layout of a batch, "padded" or "sparse". With "sparse", sums and orbits are over stored entries.
        n_estimators: The number of networks.
    """

    target: str
    in_channels: int | tuple[int, int]
    channels: Sequence[int]
    order: int
    hidden: Sequence[int]
    out_channels: int
    pool: str | Sequence[str]
    jumping_knowledge: bool
    norm: str | None
    residual: bool
    dropout: float
    layout: str
    n_estimators: int

    @property
    def in_channels_by_tensor(self) -> tuple[int, ...]:
        """The channels of each input tensor: of pairs of nodes, and of nodes if they have a tensor of their own."""
        return self.in_channels if isinstance(self.in_channels, tuple) else (self.in_channels,)

    @property
    def source(self) -> str:
        """The source of the spec of the first layer."""
        return "n n, n" if isinstance(self.in_channels, tuple) else "n n"

    @property
    def widths(self) -> list[int]:
        """The channels before and after each layer."""
        return [sum(self.in_channels_by_tensor), *self.channels, *self.hidden, self.out_channels]

    @property
    def pair_channels(self) -> list[int]:
        """The output channels of all layers whose outputs are pairs of nodes."""
        return self.widths[1:] if self.target == "edge" else list(self.channels)

    @property
    def min_weights(self) -> int:
        """A lower bound of the number of weights of all networks: one basis map in each layer."""
        return self.n_estimators * sum(before * after for before, after in pairwise(self.widths))


class LabelNet(nn.Module):
    """A network from a batch of encoded graphs to the outputs for their labels, graph after graph.

    Attributes:
        scale: The factor of every input channel, initially one.
    """

    scale: Tensor

    def __init__(self, config: NetConfig) -> None:
        super().__init__()
        self.target, self.in_channels = config.target, config.in_channels_by_tensor
        self.register_buffer("scale", torch.ones(sum(self.in_channels)))
        if config.order == 3:
            self.net: nn.Module = TripleNet(config)
        else:
            self.net = _graph_net(config) if config.target == "graph" else _node_or_edge_net(config)

    def reset_parameters(self, generator: torch.Generator) -> None:
        """Draw new weights from a generator on the CPU alone, and set the scale to ones."""
        nn.init.ones_(self.scale)
        for module in self.modules():
            if isinstance(module, EquivariantLinear):
                module.reset_parameters(generator)
            elif isinstance(module, EntryNorm | RunningNorm):
                module.reset_parameters()
            elif isinstance(module, nn.Linear):
                nn.init.kaiming_normal_(module.weight, nonlinearity="relu", generator=generator)
                nn.init.zeros_(module.bias)
        for module in self.modules():
            if isinstance(module, TripleBlock):
                module.reset_to_matrix_product(generator)

    def parameter_groups(self, learning_rate: float) -> list[dict[str, Any]]:
        """The parameters in groups with their learning rates, for an optimizer of torch.

        In triple blocks the learning rate is divided by the number of basis maps of the layer. Adam changes all weights
        at the same rate, so a layer with 52 maps would change 52 times as fast.
        """
        groups: list[dict[str, Any]] = []
        for block in filter(lambda module: isinstance(module, TripleBlock), self.modules()):
            for layer in block.modules():
                if isinstance(layer, EquivariantLinear):
                    groups.append({"params": list(layer.parameters()), "lr": learning_rate / layer.plan.n_maps})
        grouped = {id(parameter) for group in groups for parameter in group["params"]}
        others = [parameter for parameter in self.parameters() if id(parameter) not in grouped]
        return [*groups, {"params": others, "lr": learning_rate}]

    def forward(self, batch: OverNodes | tuple[OverNodes, ...], graphs: Sequence[Graph]) -> Tensor:
        """The outputs for the labels of a batch, (labels, outputs).

        Args:
            batch: The encoded graphs: (graphs, n, n, channels), or that and (graphs, n, channels).
            graphs: The same graphs, which have the sizes and the edges with labels.
        """
        tensors = batch if isinstance(batch, tuple) else (batch,)
        scales = torch.split(self.scale, list(self.in_channels))
        is_padded = len({graph.n for graph in graphs}) > 1
        scaled = tuple(_scaled(x, scale, is_padded) for x, scale in zip(tensors, scales, strict=True))
        found: OverNodes = self.net(scaled if len(scaled) > 1 else scaled[0])
        if isinstance(found, Sparse):
            return found.values if self.target == "node" else _of_sparse_edges(found, graphs)
        values = found.values if isinstance(found, Padded) else found
        if self.target == "graph":
            return values
        if self.target == "node":
            return torch.cat([values[index, : graph.n] for index, graph in enumerate(graphs)])
        return torch.cat([_of_edges(values[index], graph) for index, graph in enumerate(graphs)])


def _graph_net(config: NetConfig) -> InvariantNet:
    is_sparse = config.layout == "sparse"
    return InvariantNet(
        config.source,
        [config.in_channels, *config.channels],
        config.out_channels,
        hidden=config.hidden,
        reduce=config.pool,
        pool_over="stored" if is_sparse else "all",
        jumping_knowledge=config.jumping_knowledge,
        normalize="stored" if is_sparse else "mean",
        norm=config.norm,
        residual=config.residual,
        dropout=config.dropout,
    )


def _node_or_edge_net(config: NetConfig) -> nn.Sequential:
    widths = [*config.hidden, config.out_channels]
    equivariant = EquivariantNet(
        f"{config.source} -> {AXES[config.target]}",
        [config.in_channels, *config.channels, widths[0]],
        normalize="stored" if config.layout == "sparse" else "mean",
        norm=config.norm,
        residual=config.residual,
        dropout=config.dropout,
    )
    pointwise = [[Pointwise(nn.ReLU()), Pointwise(nn.Linear(*pair))] for pair in pairwise(widths)]
    return nn.Sequential(equivariant, *(module for pair in pointwise for module in pair))


def _scaled(x: OverNodes, scale: Tensor, is_padded: bool) -> OverNodes:
    if isinstance(x, Sparse):
        return x.map(lambda values: values * scale)
    if isinstance(x, Padded) and is_padded:
        return x.with_values(x.values * scale)
    # Without padding, layers are faster on plain tensors.
    return (x.values if isinstance(x, Padded) else x) * scale


def _of_edges(pairs: Tensor, graph: Graph) -> Tensor:
    """The outputs for the edges of a graph; those of an undirected graph are symmetric."""
    start, end = graph.edge_index.to(pairs.device)
    return pairs[start, end] if graph.directed else (pairs[start, end] + pairs[end, start]) / 2


def _of_sparse_edges(pairs: Sparse, graphs: Sequence[Graph]) -> Tensor:
    """The same for a sparse batch."""
    counts = torch.tensor([graph.n_edges for graph in graphs])
    owner = torch.repeat_interleave(counts)
    undirected = torch.tensor([not graph.directed for graph in graphs])[owner]
    start, end = torch.cat([graph.edge_index for graph in graphs], 1)
    forwards = torch.stack([owner, start, end]).to(pairs.values.device)
    backwards = torch.stack([owner, torch.where(undirected, end, start), torch.where(undirected, start, end)])
    return (pairs.at(forwards) + pairs.at(backwards.to(pairs.values.device))) / 2


class TripleNet(nn.Module):
    """Blocks from pairs of nodes to triples and back, then a head for the labels.

    The mean over k of an activation of the sum of the entries (i, k) and (k, j) depends on how many common neighbours i
    and j have. So the network distinguishes graphs that 1-WL, and with it all networks over pairs, cannot distinguish.
    Channels are mixed in pairs only: a matrix product for each triple would take long.

    Dropout is applied after the blocks only.
    """

    def __init__(self, config: NetConfig) -> None:
        super().__init__()
        target, channels, widths = config.target, config.channels, [*config.hidden, config.out_channels]
        self.jumping_knowledge = config.jumping_knowledge and target == "graph"
        self.blocks = nn.ModuleList(
            TripleBlock(before, after, norm=config.norm, residual=config.residual)
            for before, after in zip([config.in_channels, *channels[:-1]], channels, strict=True)
        )
        self.pool = InvariantPool("n n", config.pool) if target == "graph" else None
        if self.pool is None:
            layers: list[nn.Module] = [EquivariantLinear(f"n n -> {AXES[target]}", channels[-1], widths[0])]
        else:
            pooled = self.pool.growth * (sum(channels) if self.jumping_knowledge else channels[-1])
            layers = [RunningNorm(pooled), nn.Linear(pooled, widths[0])]
        for before, after in pairwise(widths):
            layers += [Pointwise(nn.ReLU()), ChannelDropout(config.dropout, AXES[target])]
            layers.append(Pointwise(nn.Linear(before, after)))
        self.head = nn.Sequential(*layers)

    def forward(self, x: Any) -> Tensor | Padded:
        """From (*batch, n, n, channels), or that and (*batch, n, channels), to outputs for graphs, nodes or pairs."""
        pooled: list[Tensor] = []
        for index, block in enumerate(self.blocks):
            x = block(x)
            if self.pool is not None and (self.jumping_knowledge or index == len(self.blocks) - 1):
                pooled.append(self.pool(x))
        result: Tensor | Padded = self.head(torch.cat(pooled, -1) if pooled else x)
        return result


class TripleBlock(nn.Module):
    """A layer from pairs to triples, an activation and a layer back to pairs, plus a layer from pairs to pairs."""

    def __init__(
        self, in_channels: int | tuple[int, int], out_channels: int, *, norm: str | None, residual: bool
    ) -> None:
        super().__init__()
        source = "n n, n" if isinstance(in_channels, tuple) else "n n"
        self.across = EquivariantLinear(f"{source} -> n n", in_channels, out_channels)
        self.up = EquivariantLinear(f"{source} -> n n n", in_channels, out_channels)
        self.activation = Pointwise(nn.ReLU())
        self.down = EquivariantLinear("n n n -> n n", out_channels, out_channels)
        self.norm = None if norm is None else EntryNorm(out_channels, "n n", over=norm, momentum=MOMENTUM)
        self.adds = residual and in_channels == out_channels

    def reset_to_matrix_product(self, generator: torch.Generator) -> None:
        """Set all weights of `up` and `down` to zero but those of the basis maps of a product of two matrices.

        Among all basis maps together that product would be a small part.
        """
        _reset_to(self.up, UP, generator)
        _reset_to(self.down, DOWN, generator)
        biases = getattr(self.up, "bias_0" if len(self.up.plan.pairs) > 1 else "bias")
        nn.init.normal_(biases, std=BIAS_STD, generator=generator)

    def forward(self, x: Any) -> Tensor | Padded:
        """From (*batch, n, n, channels), or that and (*batch, n, channels), to pairs."""
        found = self.down(self.activation(self.up(x)))
        found = self.across(x) + (found if self.norm is None else self.norm(found))
        result: Tensor | Padded = x + found if self.adds else found
        return result


def _reset_to(layer: EquivariantLinear, names: Sequence[str], generator: torch.Generator) -> None:
    """Draw the weights of some basis maps of pairs, so that a ReLU keeps the second moment, and zero the others."""
    of_pairs = layer.plan.pairs[0]
    weight: Tensor = getattr(layer, "weight_0_to_0" if len(layer.plan.pairs) > 1 else "weight")
    std = (2 / weight.shape[1] / len(names)) ** 0.5
    with torch.no_grad():
        for index, diagram in enumerate(layer.plan.diagrams[: of_pairs.n_maps]):
            drawn = torch.randn(weight.shape[1:], generator=generator)
            weight[index] = std * drawn if diagram.name in names else 0


class RunningNorm(nn.Module):
    """Normalises values of graphs by the mean and the variance over the last graphs of the training.

    It does so in training as in evaluation, so that a batch may have one graph. Gradients do not flow through the
    statistics.
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
        """Reset the statistics."""
        nn.init.zeros_(self.seen)
        nn.init.zeros_(self.mean)
        nn.init.ones_(self.variance)

    def forward(self, x: Tensor) -> Tensor:
        """From (graphs, channels) to the same."""
        if self.training:
            self._update(x.detach())
        return (x - self.mean) / (self.variance + self.eps).sqrt()

    def _update(self, x: Tensor) -> None:
        share = len(x) / (len(x) + float(self.seen))
        before = self.mean.clone()
        self.mean.lerp_(x.mean(0), share)
        spread = (x - self.mean) * (x - (self.mean if share == 1 else before))
        self.variance.lerp_(spread.mean(0), share)
        self.seen.add_(len(x)).clamp_(max=WINDOW)


class Ensemble(nn.Module):
    """Members with one kind of outputs; each is trained on its own loss.

    `state_dict` has the weights of all members, and `Ensemble(config).load_state_dict` restores them.

    Args:
        config: The architecture of the members, and their number.
    """

    members: Sequence[LabelNet]

    def __init__(self, config: NetConfig) -> None:
        super().__init__()
        members = nn.ModuleList(LabelNet(config) for _ in range(config.n_estimators))
        self.members = members.float()  # type: ignore[assignment]

    @classmethod
    def on_meta(cls, config: NetConfig) -> "Ensemble":
        """An ensemble on the meta device, where it takes no memory."""
        with torch.device("meta"):
            return cls(config)

    def reset_parameters(self, generator: torch.Generator, scale: Tensor) -> None:
        """Draw new weights for the members, one after the other, and set the factors of their input channels."""
        for member in self.members:
            member.reset_parameters(generator)
            member.scale.copy_(scale)

    def parameter_groups(self, learning_rate: float) -> list[dict[str, Any]]:
        """The parameters of all members in groups, see `LabelNet.parameter_groups`."""
        return [group for member in self.members for group in member.parameter_groups(learning_rate)]

    @contextmanager
    def dropout_from(self, generator: torch.Generator) -> Iterator[None]:
        """Draw dropout from a generator on the device of the ensemble within this context."""
        layers = [module for module in self.modules() if isinstance(module, ChannelDropout)]
        try:
            for layer in layers:
                layer.generator = generator
            yield
        finally:
            for layer in layers:
                layer.generator = None

    @staticmethod
    def combine(outputs: Sequence[Tensor]) -> Tensor:
        """The outputs of the ensemble for those of its members: their mean."""
        return torch.stack(list(outputs)).mean(0)

    def forward(self, batch: OverNodes | tuple[OverNodes, ...], graphs: Sequence[Graph]) -> Tensor:
        """The outputs for the labels of a batch, see `LabelNet.forward`."""
        return self.combine([member(batch, graphs) for member in self.members])

    @torch.no_grad()
    def predict_logits(self, loader: Loader, graphs: Sequence[Graph], counts: NDArray[np.int64]) -> Tensor:
        """The outputs for the labels of all graphs of a loader, graph after graph.

        Args:
            loader: Batches of the graphs in any order.
            graphs: The graphs.
            counts: The number of labels of each graph.
        """
        parts: list[Tensor] = [torch.empty(0)] * len(graphs)
        for batch, _, indices in loader:
            chosen = indices.tolist()
            outputs = self(batch, [graphs[index] for index in chosen]).cpu()
            for index, part in zip(chosen, outputs.split(counts[chosen].tolist()), strict=True):
                parts[index] = part
        return torch.cat(parts)
