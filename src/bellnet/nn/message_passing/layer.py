"""One round of message passing, in the five steps of the paper's proof (Appendix C).

The state Y holds, for every pair of nodes, Y[u, v] = [a_uv, e_uv, d_uv h_u], where d_uv is 1 if u = v, else 0.

    1. replicate  [a_uv, e_uv, h_u, h_v]                    an equivariant layer
    2. message    [a_uv, e_uv, h_u, M(h_u, h_v, e_uv)]      a module on the channels
    3. multiply   [a_uv, e_uv, h_u, a_uv M(h_u, h_v, e_uv)] a module on the channels: the product network
    4. gather     [a_uv, e_uv, h_u, d_uv m_u]               an equivariant layer
    5. update     [a_uv, e_uv, d_uv U(h_u, m_u)]            a module on the channels, then an equivariant layer

In step 5 U acts on all pairs, which leaves numbers off the diagonal; the equivariant layer takes the diagonal alone.
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from bellnet.nn.message_passing.adjacency import Adjacency
from bellnet.nn.message_passing.channels import Channels
from bellnet.nn.message_passing.closed_form import Copy, copying, is_closed_form
from bellnet.nn.message_passing.compact import CompactSet
from bellnet.nn.message_passing.functions import MessageFunctions
from bellnet.nn.message_passing.product import ExactProduct, Product
from bellnet.nn.message_passing.ranges import Range, fitted, follow
from bellnet.nn.pointwise import Pointwise
from bellnet.tensors import Padded


class Beside(nn.Module):
    """Keep the first channels, and put beside them what a module makes of chosen channels.

    Args:
        n_kept: How many channels stay.
        taken: Where the channels begin and end that the module takes, joined in this order.
        module: A module on channels.
    """

    def __init__(self, n_kept: int, taken: Sequence[tuple[int, int]], module: nn.Module) -> None:
        super().__init__()
        self.n_kept = n_kept
        self.taken = tuple(taken)
        self.module = module

    def forward(self, z: Tensor) -> Tensor:
        """From (..., channels) to (..., kept channels and those of the module)."""
        made = self.module(torch.cat([z[..., first:last] for first, last in self.taken], -1))
        return torch.cat([z[..., : self.n_kept], made], -1)


class Gate(nn.Module):
    """The first channel times each of the others."""

    def __init__(self) -> None:
        super().__init__()
        self.product: Product = ExactProduct()

    def forward(self, z: Tensor) -> Tensor:
        """From (..., 1 + channels) to (..., channels)."""
        product: Tensor = self.product(z[..., :1], z[..., 1:])
        return product


class MessagePassingLayer(nn.Module):
    """One round of message passing, built of equivariant layers and modules on channels.

    It takes a state over "n n" to a state over "n n"; adjacency and edge features are handed on.

    Args:
        functions: M, U and what they take.
        channels: What the state holds.
        adjacency: The number of the adjacency channel that belongs to these functions.
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
        heard, message, updated = fixed + node, *widths
        # Row u hears of column v; against the edges it is the other way round.
        own, other, total = (
            ("aa->ba", "aa->ab", "ab->bb") if self.adjacency.to_source else ("aa->ab", "aa->ba", "ab->aa")
        )
        graph = Copy("ab->ab", 0, 0, fixed)
        self._copies = {
            "replicate": (graph, Copy(own, fixed, fixed, node), Copy(other, fixed, heard, node)),
            "gather": (graph, Copy("ab->ab", fixed, fixed, node), Copy(total, heard, heard, message)),
            "onto_diagonal": (graph, Copy("aa->aa", fixed, fixed, updated)),
        }
        taken = [(fixed, heard), (heard, heard + node)]
        if self.edge_channels:
            taken.append((channels.adjacency, fixed))
        gated = [(adjacency, adjacency + 1), (heard, heard + message)]
        self.replicate = copying("n n -> n n", self._copies["replicate"], channels.total, like=like)
        self.message = Pointwise(Beside(heard, taken, functions.message))
        self.multiply = Pointwise(Beside(heard, gated, Gate()))
        self.gather = copying("n n -> n n", self._copies["gather"], heard + message, like=like)
        self.update = Pointwise(Beside(fixed, [(fixed, heard + message)], functions.update))
        self.onto_diagonal = copying("n n -> n n", self._copies["onto_diagonal"], fixed + updated, like=like)

    def forward(self, y: Tensor | Padded) -> Tensor | Padded:
        """From a state to the next."""
        z = self.replicate(y)
        z = self.message(z)
        z = self.multiply(z)
        z = self.gather(z)
        z = self.update(z)
        result: Tensor | Padded = self.onto_diagonal(z)
        return result

    @property
    def is_as_built(self) -> bool:
        """Whether the equivariant layers still have the weights of the proof."""
        return all(is_closed_form(getattr(self, name), copies) for name, copies in self._copies.items())

    @property
    def gate(self) -> Gate:
        """Step 3: what multiplies by the adjacency."""
        gate = module_of(self.multiply)
        assert isinstance(gate, Gate)
        return gate

    def fit(self, node: Range, on: CompactSet, depth: int) -> Range:
        """Approximate the products so that they are right on a compact set.

        Args:
            node: The range of the node features that arrive.
            on: The compact set.
            depth: The depth of the products.

        Returns:
            The range of the node features that leave, with their error against exact products:
            U does not stretch errors by more than its slopes, and the error of m_u is at most
            (sum of |a_uv|) times that of M, plus (number of neighbours) times that of the product.
        """
        taken = node.beside(node)
        if self.edge_channels:
            taken = taken.beside(Range.within(on.edge, self.edge_channels))
        heard = follow(module_of(self.message), taken, depth)
        product = fitted(torch.tensor([on.adjacency], dtype=torch.float64), heard.largest, depth, self)
        self.gate.product = product
        largest_sum = on.neighbours * on.adjacency
        if self.adjacency.scale == "mean" and not self.adjacency.weighted:
            largest_sum = min(largest_sum, 1.0)
        added = on.neighbours * product.bound.cpu()
        total = heard.summed(largest_sum, signed=self.adjacency.weighted, added=added)
        return follow(module_of(self.update), node.beside(total), depth)


class NodeLayer(nn.Module):
    """A module on the node features alone: step 5 without messages.

    Args:
        module: A module on channels.
        channels: What the state holds.
        width: The number of channels that the module makes.
        like: A tensor with the dtype and the device of the parameters.
    """

    def __init__(self, module: nn.Module, channels: Channels, width: int, *, like: Tensor) -> None:
        super().__init__()
        fixed = channels.fixed
        self._copies = {"onto_diagonal": (Copy("ab->ab", 0, 0, fixed), Copy("aa->aa", fixed, fixed, width))}
        self.update = Pointwise(Beside(fixed, [(fixed, channels.total)], module))
        self.onto_diagonal = copying("n n -> n n", self._copies["onto_diagonal"], fixed + width, like=like)

    def forward(self, y: Tensor | Padded) -> Tensor | Padded:
        """From a state to the next."""
        result: Tensor | Padded = self.onto_diagonal(self.update(y))
        return result

    @property
    def is_as_built(self) -> bool:
        """Whether the equivariant layer still has the weights of the proof."""
        return is_closed_form(self.onto_diagonal, self._copies["onto_diagonal"])

    def fit(self, node: Range, on: CompactSet, depth: int) -> Range:
        """The range of the node features that leave."""
        return follow(module_of(self.update), node, depth)


def module_of(step: Pointwise) -> nn.Module:
    """The module on channels that a step applies."""
    assert isinstance(step.module, Beside)
    return step.module.module
