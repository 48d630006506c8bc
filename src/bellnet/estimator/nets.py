"""The networks inside: the paper's two, made deeper, from encoded graphs to one row of outputs for each label."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn

from bellnet import (
    ChannelDropout,
    EntryNorm,
    EquivariantLinear,
    EquivariantNet,
    InvariantNet,
    Padded,
    Pointwise,
    Sparse,
)
from bellnet.data import Graph
from bellnet.estimator.triples import RunningNorm, TripleNet

OverNodes = Tensor | Padded | Sparse
SLOTS = {"node": "n", "edge": "n n"}


class LabelNet(nn.Module):
    """A network from a batch of encoded graphs to the outputs for their labels, graph after graph.

    Args:
        target: What has labels: "graph", "node" or "edge".
        given: The channels of the input: of pairs of nodes, or where nodes have a tensor of their own, of pairs and of
            nodes.
        channels: The channels after each equivariant layer.
        order: How many nodes each entry between those layers belongs to: pairs, 2, or triples, 3.
        hidden: The widths of the fully connected layers after them.
        outputs: The number of outputs for a label.
        pool: What is taken of each orbit where graphs have labels: "max", "mean" or "sum", or several of them.
        jumping_knowledge: Whether that is taken after every layer, and not after the last alone.
        norm: What is normalised before every activation, see `EntryNorm`; None for nothing.
        residual: Whether layers between equal numbers of channels add their input to their output.
        dropout: The probability to drop a channel.
        layout: What a batch is, "padded" or "sparse". On listed tuples sums and orbits are those of listed tuples.

    Attributes:
        scale: What every channel of the input is multiplied by: ones, until `scale_by` says better.
    """

    scale: Tensor

    def __init__(
        self,
        target: str,
        given: int | tuple[int, int],
        channels: Sequence[int],
        *,
        order: int,
        hidden: Sequence[int],
        outputs: int,
        pool: str | Sequence[str],
        jumping_knowledge: bool,
        norm: str | None,
        residual: bool,
        dropout: float,
        layout: str,
    ) -> None:
        super().__init__()
        self.target = target
        self.given = given if isinstance(given, tuple) else (given,)
        self.register_buffer("scale", torch.ones(sum(self.given)))
        source = "n n, n" if isinstance(given, tuple) else "n n"
        if order == 3:
            self.net: nn.Module = TripleNet(
                target,
                given,
                channels,
                widths=[*hidden, outputs],
                pool=pool,
                jumping_knowledge=jumping_knowledge,
                norm=norm,
                residual=residual,
                dropout=dropout,
            )
            return
        options: dict[str, Any] = {"dropout": dropout, "norm": norm, "residual": residual}
        options["normalize"] = "stored" if layout == "sparse" else "mean"
        if target == "graph":
            over = "stored" if layout == "sparse" else "all"
            self.net = InvariantNet(
                source,
                [given, *channels],
                outputs,
                hidden=hidden,
                reduce=pool,
                pool_over=over,
                jumping_knowledge=jumping_knowledge,
                **options,
            )
            return
        widths = [*hidden, outputs]
        spec = f"{source} -> {SLOTS[target]}"
        modules: list[nn.Module] = [EquivariantNet(spec, [given, *channels, widths[0]], **options)]
        for before, after in pairwise(widths):
            modules += [Pointwise(nn.ReLU()), Pointwise(nn.Linear(before, after))]
        self.net = nn.Sequential(*modules)

    def reset_parameters(self, generator: torch.Generator) -> None:
        """Draw new weights from a generator on the CPU, and from nothing else; the scale becomes ones."""
        nn.init.ones_(self.scale)
        for module in self.modules():
            if isinstance(module, EquivariantLinear):
                module.reset_parameters(generator)
            elif isinstance(module, EntryNorm | RunningNorm):
                module.reset_parameters()
            elif isinstance(module, nn.Linear):
                nn.init.kaiming_normal_(module.weight, nonlinearity="relu", generator=generator)
                nn.init.zeros_(module.bias)
        if isinstance(self.net, TripleNet):
            self.net.begin(generator)

    @property
    def members(self) -> "tuple[LabelNet, ...]":
        """The networks that learn by themselves: this one alone, see `Ensemble`."""
        return (self,)

    def scale_by(self, scale: Tensor) -> None:
        """Multiply every channel of the input by its factor."""
        self.scale.copy_(scale)

    def rates(self, learning_rate: float) -> list[dict[str, Any]]:
        """The weights in groups, each with its learning rate, as optimisers of torch take them."""
        if isinstance(self.net, TripleNet):
            return self.net.rates(learning_rate)
        return [{"params": list(self.parameters()), "lr": learning_rate}]

    @contextmanager
    def dropping_by(self, generator: torch.Generator) -> Iterator[None]:
        """While this lasts, what is dropped is drawn from a generator, on the device of the network, alone."""
        layers = [module for module in self.modules() if isinstance(module, ChannelDropout)]
        try:
            for layer in layers:
                layer.generator = generator
            yield
        finally:
            for layer in layers:
                layer.generator = None

    def forward(self, batch: OverNodes | tuple[OverNodes, ...], graphs: Sequence[Graph]) -> Tensor:
        """From (graphs, n, n, channels), or listed pairs, to (labels, outputs); or from pairs and nodes.

        Args:
            batch: The graphs, encoded.
            graphs: The same graphs: their sizes, and which edges have labels.
        """
        several = batch if isinstance(batch, tuple) else (batch,)
        scales = torch.split(self.scale, list(self.given))
        is_padded = len({graph.n for graph in graphs}) > 1
        scaled = tuple(_times(one, scale, is_padded) for one, scale in zip(several, scales, strict=True))
        found: OverNodes = self.net(scaled if len(scaled) > 1 else scaled[0])
        if isinstance(found, Sparse):
            return found.values if self.target == "node" else _of_listed_edges(found, graphs)
        values = found.values if isinstance(found, Padded) else found
        if self.target == "graph":
            return values
        if self.target == "node":
            return torch.cat([values[place, : graph.n] for place, graph in enumerate(graphs)])
        return torch.cat([_of_edges(values[place], graph) for place, graph in enumerate(graphs)])


def _times(x: OverNodes, scale: Tensor, is_padded: bool) -> OverNodes:
    """Every channel times its factor."""
    if isinstance(x, Sparse):
        return x.map(lambda values: values * scale)
    if isinstance(x, Padded) and is_padded:
        return x.with_values(x.values * scale)
    # nothing is padded, and without sizes the layers do less
    return (x.values if isinstance(x, Padded) else x) * scale


def _of_edges(pairs: Tensor, graph: Graph) -> Tensor:
    """The outputs for the listed edges; an edge of an undirected graph has no first node."""
    start, end = graph.edge_index.to(pairs.device)
    return pairs[start, end] if graph.directed else (pairs[start, end] + pairs[end, start]) / 2


def _of_listed_edges(pairs: Sparse, graphs: Sequence[Graph]) -> Tensor:
    """The same for a batch of listed pairs."""
    counts = torch.tensor([graph.n_edges for graph in graphs])
    owner = torch.repeat_interleave(counts)
    undirected = torch.tensor([not graph.directed for graph in graphs])[owner]
    start, end = torch.cat([graph.edge_index for graph in graphs], 1)
    forwards = torch.stack([owner, start, end]).to(pairs.values.device)
    backwards = torch.stack([owner, torch.where(undirected, end, start), torch.where(undirected, start, end)])
    return (pairs.at(forwards) + pairs.at(backwards.to(pairs.values.device))) / 2
