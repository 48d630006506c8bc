"""One round of message passing, in the five steps of the paper's proof (Appendix C).

The state Y holds, for every pair of nodes, Y[u, v] = [a_uv, e_uv, d_uv h_u], where d_uv is 1 if u = v, else 0.

    1. replicate  [a_uv, e_uv, h_u, h_v]                    an equivariant layer
    2. message    [a_uv, e_uv, h_u, M(h_u, h_v, e_uv)]      a module on the channels
    3. multiply   [a_uv, e_uv, h_u, a_uv M(h_u, h_v, e_uv)] a module on the channels: the product network
    4. gather     [a_uv, e_uv, h_u, d_uv m_u]               an equivariant layer
    5. update     [a_uv, e_uv, d_uv U(h_u, m_u)]            a module on the channels, then an equivariant layer

In step 5 U acts on all pairs, which gives values off the diagonal; the equivariant layer selects the diagonal.

The weights of the equivariant layers are known in closed form: each copies channels through diagrams.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from bellnet.nn.linear import EquivariantLinear
from bellnet.nn.message_passing.approximation import CompactSet, Range, product_for, range_of
from bellnet.nn.message_passing.functions import ExactProduct, MessageFunctions
from bellnet.nn.message_passing.state import Adjacency, Channels
from bellnet.nn.pointwise import Pointwise
from bellnet.tensors import Padded


class Copy(NamedTuple):
    """Copies channels through one diagram: for i below `channels`, channel source + i to channel target + i."""

    diagram: str
    source: int
    target: int
    channels: int


def copying(spec: str, copies: Sequence[Copy], in_channels: int, *, like: Tensor) -> EquivariantLinear:
    """A trainable layer whose weight makes these copies and whose bias is zero, with the dtype and device of a tensor.

    >>> rows = copying("n n -> n n", [Copy("aa->ab", 0, 0, 1)], 1, like=torch.zeros(()))
    >>> rows(torch.tensor([[1.0, 0.0], [0.0, 2.0]]).unsqueeze(-1)).squeeze(-1).tolist()
    [[1.0, 1.0], [2.0, 2.0]]
    """
    out_channels = max(copy.target + copy.channels for copy in copies)
    layer = EquivariantLinear(spec, in_channels, out_channels, normalize="sum", dtype=like.dtype, device=like.device)
    with torch.no_grad():
        layer.weight.copy_(closed_form(layer, copies))
    return layer


def closed_form(layer: EquivariantLinear, copies: Sequence[Copy]) -> Tensor:
    """The weight that is an identity matrix at the diagram of every copy, and zero elsewhere."""
    weight = torch.zeros_like(layer.weight)
    diagrams = [diagram.name for diagram in layer.plan.diagrams]
    for diagram, source, target, channels in copies:
        channel = torch.arange(channels, device=weight.device)
        weight[diagrams.index(diagram), source + channel, target + channel] = 1
    return weight


def is_closed_form(layer: EquivariantLinear, copies: Sequence[Copy]) -> bool:
    """Whether a layer still has the weights that `copying` gave it, and has not been trained."""
    has_bias = layer.bias is not None and bool(layer.bias.any())
    return not has_bias and torch.equal(layer.weight, closed_form(layer, copies))


class AppendChannels(nn.Module):
    """Concatenates the first `n_copied` channels with the output of a module on some ranges of channels, its inputs."""

    def __init__(self, n_copied: int, inputs: Sequence[tuple[int, int]], module: nn.Module) -> None:
        super().__init__()
        self.n_copied = n_copied
        self.inputs = tuple(inputs)
        self.module = module

    def forward(self, z: Tensor) -> Tensor:
        """From (..., channels) to (..., copied channels and those of the module)."""
        output = self.module(torch.cat([z[..., first:last] for first, last in self.inputs], -1))
        return torch.cat([z[..., : self.n_copied], output], -1)


class Gate(nn.Module):
    """The first channel times each of the others."""

    def __init__(self) -> None:
        super().__init__()
        self.product: nn.Module = ExactProduct()

    def forward(self, z: Tensor) -> Tensor:
        """From (..., 1 + channels) to (..., channels)."""
        product: Tensor = self.product(z[..., :1], z[..., 1:])
        return product


class MessagePassingLayer(nn.Module):
    """One round of message passing, built of equivariant layers and modules on channels.

    It maps a state over "n n" to a state over "n n" and copies adjacency and edge features.

    Args:
        functions: M, U and their numbers of channels.
        channels: The channels of the state.
        adjacency: The index of the adjacency channel of these functions.
        widths: The number of channels of M and of U.
        like: A tensor with the dtype and the device of the parameters.
    """

    def __init__(
        self,
        functions: MessageFunctions,
        channels: Channels,
        *,
        adjacency: int,
        widths: tuple[int, int],
        like: Tensor,
    ) -> None:
        super().__init__()
        self.channels = channels
        self.adjacency: Adjacency = functions.adjacency
        self.edge_channels = functions.edge_channels
        fixed, node = channels.fixed, channels.node
        neighbour, message, updated = fixed + node, *widths
        # Row u receives from column v; against the edges column v receives from row u.
        own, other, total = (
            ("aa->ba", "aa->ab", "ab->bb") if self.adjacency.to_source else ("aa->ab", "aa->ba", "ab->aa")
        )
        graph = Copy("ab->ab", 0, 0, fixed)
        self._copies = {
            "replicate": (graph, Copy(own, fixed, fixed, node), Copy(other, fixed, neighbour, node)),
            "gather": (graph, Copy("ab->ab", fixed, fixed, node), Copy(total, neighbour, neighbour, message)),
            "onto_diagonal": (graph, Copy("aa->aa", fixed, fixed, updated)),
        }
        of_message = [(fixed, neighbour), (neighbour, neighbour + node)]
        if self.edge_channels:
            of_message.append((channels.adjacency, fixed))
        of_product = [(adjacency, adjacency + 1), (neighbour, neighbour + message)]
        self.replicate = copying("n n -> n n", self._copies["replicate"], channels.total, like=like)
        self.message = Pointwise(AppendChannels(neighbour, of_message, functions.message))
        self.multiply = Pointwise(AppendChannels(neighbour, of_product, Gate()))
        self.gather = copying("n n -> n n", self._copies["gather"], neighbour + message, like=like)
        self.update = Pointwise(AppendChannels(fixed, [(fixed, neighbour + message)], functions.update))
        self.onto_diagonal = copying("n n -> n n", self._copies["onto_diagonal"], fixed + updated, like=like)

    def forward(self, y: Tensor | Padded) -> Tensor | Padded:
        """From a state to the next."""
        z = self.multiply(self.message(self.replicate(y)))
        result: Tensor | Padded = self.onto_diagonal(self.update(self.gather(z)))
        return result

    @property
    def is_as_built(self) -> bool:
        """Whether the equivariant layers have the weights of the proof, and have not been trained."""
        return all(is_closed_form(getattr(self, name), copies) for name, copies in self._copies.items())

    def approximate(self, node: Range, on: CompactSet, depth: int) -> Range:
        """Replace the products by ReLU networks with a proven error on a compact set.

        Args:
            node: The range of the node features of the input.
            on: The compact set.
            depth: The depth of the products.

        Returns:
            The range of the node features of the output, with their error against exact products: U multiplies errors
            by at most its slopes, and the error of m_u is at most (sum of |a_uv|) times that of M, plus (number of
            neighbours) times that of the product.
        """
        inputs = node.concatenated(node)
        if self.edge_channels:
            inputs = inputs.concatenated(Range.within(on.edge, self.edge_channels))
        message = range_of(module_of(self.message), inputs, depth)
        product = product_for(torch.tensor([on.adjacency], dtype=torch.float64), message.largest, depth, self)
        gate = module_of(self.multiply)
        assert isinstance(gate, Gate)
        gate.product = product
        largest_sum = on.neighbours * on.adjacency
        if self.adjacency.scale == "mean" and not self.adjacency.weighted:
            largest_sum = min(largest_sum, 1.0)
        error = on.neighbours * product.bound.cpu()
        total = message.summed(largest_sum, signed=self.adjacency.weighted, product_error=error)
        return range_of(module_of(self.update), node.concatenated(total), depth)


class NodeLayer(nn.Module):
    """A module on the node features alone, with so many output channels: step 5 without messages."""

    def __init__(self, module: nn.Module, channels: Channels, width: int, *, like: Tensor) -> None:
        super().__init__()
        fixed = channels.fixed
        self._copies = {"onto_diagonal": (Copy("ab->ab", 0, 0, fixed), Copy("aa->aa", fixed, fixed, width))}
        self.update = Pointwise(AppendChannels(fixed, [(fixed, channels.total)], module))
        self.onto_diagonal = copying("n n -> n n", self._copies["onto_diagonal"], fixed + width, like=like)

    def forward(self, y: Tensor | Padded) -> Tensor | Padded:
        """From a state to the next."""
        result: Tensor | Padded = self.onto_diagonal(self.update(y))
        return result

    @property
    def is_as_built(self) -> bool:
        """Whether the equivariant layer has the weights of the proof, and has not been trained."""
        return is_closed_form(self.onto_diagonal, self._copies["onto_diagonal"])

    def approximate(self, node: Range, on: CompactSet, depth: int) -> Range:
        """The range of the node features of the output."""
        return range_of(module_of(self.update), node, depth)


def module_of(step: Pointwise) -> nn.Module:
    """The module on channels that a step applies."""
    assert isinstance(step.module, AppendChannels)
    return step.module.module
