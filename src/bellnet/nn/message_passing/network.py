"""A network of equivariant layers and modules on channels that passes messages."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from bellnet.errors import DeclarationError, OptionError
from bellnet.nn.inputs import InputValidator, check_channels, check_choice
from bellnet.nn.linear import EquivariantLinear
from bellnet.nn.message_passing.approximation import CompactSet, Range, range_of
from bellnet.nn.message_passing.functions import ChannelAffine, EdgeConditionedMessage, ExactProduct, MessageFunctions
from bellnet.nn.message_passing.layer import (
    Copy,
    Gate,
    MessagePassingLayer,
    NodeLayer,
    copying,
    is_closed_form,
)
from bellnet.nn.message_passing.state import Adjacency, Channels, Graphs, prepare
from bellnet.nn.pool import InvariantPool
from bellnet.spec import Spec
from bellnet.tensors import Padded

CALL = "MessagePassingNet"
READOUTS = ("sum", "mean", "max")
PRODUCTS = ("relu", "exact")


class MessagePassingNet(nn.Module):
    """Rounds of message passing, written as equivariant layers and modules on channels only.

    The input is a tensor or `Padded` over "n n", as `prepare` returns it. Products are exact until `approximate` is
    called. It is an ordinary module: all its weights can be trained further.

    Args:
        steps: `MessageFunctions` for a round of message passing; any other module acts on the node features.
        readout: None for an output at every node; "sum", "mean" or "max" for one of the whole graph.
        head: A module on channels that is applied after the readout.

    Attributes:
        channels: The channels of the input.
        adjacencies: The matrices of the adjacency channels.
        error_bound: For every channel of the output the largest difference from exact products, proven for the
            weights at the time of `approximate`; zero for exact products.

    >>> from bellnet.nn.message_passing import MessageFunctions
    >>> mean = MessageFunctions(nn.Linear(2 * 3, 4), nn.Linear(3 + 4, 5), node_channels=3)
    >>> net = MessagePassingNet([mean, nn.ReLU()], readout="sum")
    >>> net(torch.randn(8, 10, 10, net.in_channels)).shape
    torch.Size([8, 5])
    """

    def __init__(
        self,
        steps: Sequence[MessageFunctions | nn.Module],
        *,
        readout: str | None = None,
        head: nn.Module | None = None,
    ) -> None:
        super().__init__()
        rounds = [step for step in steps if isinstance(step, MessageFunctions)]
        if not rounds:
            raise OptionError(f"{CALL}(steps): there is no step that passes messages, no MessageFunctions.")
        self.adjacencies: tuple[Adjacency, ...] = tuple(dict.fromkeys(step.adjacency for step in rounds))
        self.channels = Channels(len(self.adjacencies), _edge_channels(rounds), _node_channels(steps))
        like = _like_parameters(steps)
        self.steps = nn.ModuleList()
        channels = self.channels
        for number, step in enumerate(steps):
            layer, width = self._layer(f"{CALL}(steps): step {number}", step, channels, like)
            self.steps.append(layer)
            channels = Channels(channels.adjacency, channels.edge, width)
        self._copies = (Copy("aa->a", channels.fixed, 0, channels.node),)
        self.read = copying("n n -> n", self._copies, channels.total, like=like)
        self.readout = None if readout is None else check_choice(CALL, "readout", readout, READOUTS)
        self.pool = nn.Identity() if readout is None else InvariantPool("n", readout)
        self.head = nn.Identity() if head is None else head
        self.in_channels = self.channels.total
        self.out_channels = _width(f"{CALL}(head)", self.head, channels.node, like)
        self.on: CompactSet | None = None
        self.error_bound = torch.zeros(self.out_channels, dtype=torch.float64)
        self._validator = InputValidator(CALL, Spec(("n", "n"), ()), (self.in_channels,))

    def _layer(
        self, where: str, step: MessageFunctions | nn.Module, channels: Channels, like: Tensor
    ) -> tuple[MessagePassingLayer | NodeLayer, int]:
        if not isinstance(step, MessageFunctions):
            width = _width(where, step, channels.node, like)
            return NodeLayer(step, channels, width, like=like), width
        if step.node_channels != channels.node:
            raise OptionError(
                f"{where} takes node_channels={step.node_channels}, but {channels.node} channels are its input."
            )
        message = _width(f"{where}, message", step.message, 2 * channels.node + step.edge_channels, like)
        update = _width(f"{where}, update", step.update, channels.node + message, like)
        number = self.adjacencies.index(step.adjacency)
        return MessagePassingLayer(step, channels, adjacency=number, widths=(message, update), like=like), update

    def prepare(self, graphs: Graphs) -> Padded:
        """The input of the network, made from PyTorch Geometric's `Data` or `Batch`.

        Division by degrees and self-loops are applied here, as specified by `adjacencies`. Edge weights are read from
        `edge_weight`, edge features from `edge_attr`. The order of the nodes does not change, so
        `net(net.prepare(batch)).unpack("n")` returns the graphs of the batch with their nodes in order.

        Args:
            graphs: Has `x`, `edge_index` and, as needed, `edge_attr`, `edge_weight`, `batch`.
        """
        return prepare(graphs, self.adjacencies, self.channels, self.read.weight)

    def forward(self, x: Tensor | Padded, *, check: bool = False) -> Tensor | Padded:
        """From a state (*batch, n, n, in_channels) to (*batch, n, out_channels), or with a readout to a vector.

        Args:
            x: A tensor or `Padded`, as `prepare` returns it.
            check: Raise for an input outside the compact set on which products were approximated.
        """
        if check and self.on is not None:
            self._check(x, self.on)
        for step in self.steps:
            x = step(x)
        nodes = self.pool(self.read(x))
        result: Tensor | Padded = nodes.map(self.head) if isinstance(nodes, Padded) else self.head(nodes)
        return result

    def approximate(self, on: CompactSet, depth: int = 8) -> "MessagePassingNet":
        """Replace every product by a ReLU network for inputs in a compact set, and compute `error_bound`.

        The ranges of all messages are found by interval arithmetic, layer by layer.

        Args:
            on: The compact set.
            depth: The number of refinements of each product; each divides its error by four.
        """
        depth = check_channels(f"{CALL}.approximate", "depth", depth)
        if not self.is_as_built:
            raise OptionError(
                f"{CALL}.approximate: the equivariant layers have been trained, and no longer pass messages alone, so "
                "the ranges of their outputs are not known.\nApproximate before training."
            )
        node = Range.within(on.node, self.channels.node)
        for step in self._layers():
            node = step.approximate(node, on, depth)
        if self.readout == "sum":
            node = node.summed(on.size, signed=False, product_error=torch.zeros_like(node.error))
        elif self.readout is not None:  # a graph without nodes gives zero
            node = Range(node.low.clamp(max=0), node.high.clamp(min=0), node.error)
        self.error_bound = range_of(self.head, node, depth).error
        self.on = on
        return self

    def exact(self) -> "MessagePassingNet":
        """Replace every product by the exact one."""
        for part in self.modules():
            if isinstance(part, Gate | EdgeConditionedMessage):
                part.product = ExactProduct()
        self.error_bound = torch.zeros_like(self.error_bound)
        self.on = None
        return self

    def compact_set(self, x: Tensor | Padded) -> CompactSet:
        """The smallest compact set that contains these graphs, as `prepare` returns them."""
        inputs = self._validator.validate((x,))
        state, nodes, fixed = inputs.values[0].detach(), inputs.layout.nodes, self.channels.fixed
        adjacency, edge = state[..., : self.channels.adjacency], state[..., self.channels.adjacency : fixed]
        received = [
            matrix.mT if known.to_source else matrix
            for known, matrix in zip(self.adjacencies, adjacency.unbind(-1), strict=True)
        ]
        return CompactSet(
            size=nodes.lengths[0] if nodes.counts is None else int(nodes.counts.max()),
            neighbours=max(int(_largest(matrix.count_nonzero(-1))) for matrix in received),
            adjacency=_largest(adjacency),
            node=_largest(state[..., fixed:].diagonal(0, 1, 2)),
            edge=_largest(edge),
        )

    @property
    def is_as_built(self) -> bool:
        """Whether the equivariant layers have the weights of the proof, and have not been trained."""
        return is_closed_form(self.read, self._copies) and all(step.is_as_built for step in self._layers())

    def diagrams(self) -> dict[str, tuple[str, ...]]:
        """The diagrams with nonzero weights of every equivariant layer, by its name in the network."""
        found: dict[str, tuple[str, ...]] = {}
        for name, layer in self.named_modules():
            if isinstance(layer, EquivariantLinear):
                used = zip(layer.plan.diagrams, layer.weight.detach().flatten(1).any(1).tolist(), strict=True)
                found[name] = tuple(diagram.name for diagram, is_used in used if is_used)
        return found

    def _layers(self) -> list[MessagePassingLayer | NodeLayer]:
        return [step for step in self.steps if isinstance(step, MessagePassingLayer | NodeLayer)]

    def _check(self, x: Tensor | Padded, on: CompactSet) -> None:
        found = self.compact_set(x)
        if beyond := on.exceeded_by(found):
            limits = ", ".join(f"{name} {getattr(found, name):.6g} > {getattr(on, name):.6g}" for name in beyond)
            raise DeclarationError(
                f"{CALL}: this input is outside the compact set on which products were approximated: {limits}.\n"
                "Call approximate(on=...) with a larger set, for instance net.compact_set(x)."
            )

    def extra_repr(self) -> str:
        """The numbers of channels, and the readout."""
        words = f"in_channels={self.in_channels} ({self.channels}), out_channels={self.out_channels}"
        return words if self.readout is None else f'{words}, readout="{self.readout}"'


def _edge_channels(rounds: Sequence[MessageFunctions]) -> int:
    taken = sorted({step.edge_channels for step in rounds if step.edge_channels})
    if len(taken) > 1:
        raise OptionError(
            f"{CALL}(steps): all steps read the same edge features, but they take {taken} channels of them."
        )
    return taken[0] if taken else 0


def _node_channels(steps: Sequence[MessageFunctions | nn.Module]) -> int:
    """The number of channels of the input: that of the first module that has one."""
    found: list[int] = []
    for step in steps:
        if isinstance(step, MessageFunctions):
            found.append(step.node_channels)
        else:
            found += [part.in_features for part in step.modules() if isinstance(part, nn.Linear | ChannelAffine)]
    return found[0]


def _like_parameters(steps: Sequence[MessageFunctions | nn.Module]) -> Tensor:
    """A tensor with the dtype and the device of the parameters of the modules."""
    parts = [[step.message, step.update] if isinstance(step, MessageFunctions) else [step] for step in steps]
    modules = nn.ModuleList(module for part in parts for module in part)
    return next(modules.parameters(), torch.empty(()))


def _width(where: str, module: nn.Module, channels: int, like: Tensor) -> int:
    """The number of output channels of a module for a number of input channels."""
    try:
        with torch.no_grad():
            made: Tensor = module(like.new_zeros(1, 1, 1, channels))
    except (RuntimeError, ValueError) as reason:
        raise OptionError(
            f"{where}: the module cannot take a tensor (..., {channels}), entry by entry.\n"
            "M takes h_u, h_v and e_uv, joined; U takes h_u and m_u, joined; every other module takes h_u."
        ) from reason
    return made.shape[-1]


def _largest(tensor: Tensor) -> float:
    return float(tensor.abs().max()) if tensor.numel() else 0.0
