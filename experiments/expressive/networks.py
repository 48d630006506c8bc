"""The networks that are asked to tell graphs apart, and what theory says of each.

A network of order k tells apart what colour refinement of dimension k - 1 does, and order 2 what dimension 1 does
(Maron et al., 2019b; Geerts, 2020). With products of matrices order 2 does what order 3 does. Message passing is colour
refinement of dimension 1 (Morris et al., 2019; Xu et al., 2019).
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import isqrt
from typing import Any

import torch
from torch import Tensor, nn

from bellnet import PPGN, EquivariantLinear, InvariantNet, Product, bell
from bellnet.data import Graph

EXACT = 2**53
MOST = 2**16
"""No prime needs to be larger."""
LAYERS = (EquivariantLinear, Product, nn.Linear)


class Cube(nn.Module):
    """The cube of every entry, modulo a prime."""

    def __init__(self, prime: int) -> None:
        super().__init__()
        self.prime = prime

    def forward(self, x: Tensor) -> Tensor:
        """From whole numbers of any size to remainders."""
        remainder = x.remainder(self.prime)
        return (remainder.square().remainder(self.prime) * remainder).remainder(self.prime)


def prime_for(terms: int) -> int:
    """The largest prime with which sums of so many products of two remainders are exact, and cubes lose nothing.

    >>> prime_for(1), prime_for(2**33)
    (65519, 1019)
    """
    candidate = min(MOST, isqrt(EXACT // terms))
    while candidate % 3 != 2 or any(candidate % factor == 0 for factor in range(2, isqrt(candidate) + 1)):
        candidate -= 1
    return candidate


def whole(net: nn.Module, prime: int, seed: int) -> nn.Module:
    """The network in float64, with whole numbers for weights and remainders after every layer."""
    generator = torch.Generator().manual_seed(seed)
    net = net.double()
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.copy_(torch.randint(prime, parameter.shape, generator=generator))

    def remainder(layer: nn.Module, given: Any, found: Tensor) -> Tensor:
        return found.remainder(prime)

    for module in net.modules():
        if isinstance(module, LAYERS):
            module.register_forward_hook(remainder)
    return net


@dataclass(frozen=True)
class Model:
    """A kind of network.

    Attributes:
        name: What it is called.
        dimension: That of the colour refinement which tells apart the same graphs.
        largest: The number of nodes up to which it is asked; more would take too long.
        layers: How many layers it has at least.
        terms: How many products of two remainders a sum inside it has at most, for so many nodes and layers.
        make: The network for a prime and a number of layers, its weights not yet whole.
        given: What it takes for a graph.
    """

    name: str
    dimension: int
    largest: int
    layers: int
    terms: Callable[[int, int], int]
    make: Callable[[int, int], nn.Module]
    given: Callable[[Graph], tuple[Tensor, ...]]


def of_order(order: int, *, layers: int, channels: int, largest: int) -> Model:
    """Linear layers between tensors over tuples of so many nodes: the first leads there from pairs."""
    shape = " ".join("n" * order)

    def make(prime: int, layers: int) -> nn.Module:
        first = EquivariantLinear(f"n n -> {shape}", 2, channels, normalize="sum")
        widths = [channels] * layers
        rest = InvariantNet(shape, widths, channels, reduce="sum", normalize="sum", activation=lambda: Cube(prime))
        return nn.Sequential(first, Cube(prime), rest)

    def terms(n: int, layers: int) -> int:
        return int(bell(2 * order)) * channels * int(n**order) + 1  # as if every map were a sum over all tuples

    return Model(f"order {order}", order - 1, largest, layers, terms, make, lambda graph: (matrices(graph),))


def with_products(*, layers: int, channels: int, largest: int) -> Model:
    """The network of order 2 whose blocks multiply matrices."""

    def make(prime: int, layers: int) -> nn.Module:
        widths = [2, *[channels] * layers]
        net = PPGN("n n", widths, channels, reduce="sum", normalize="sum", norm=None, activation=lambda: Cube(prime))
        net.first = EquivariantLinear("n n -> n n", 2, channels, normalize="sum")  # in place of means
        return net

    def terms(n: int, layers: int) -> int:
        return 2 * bell(4) * channels * layers * n**2 + 1  # more than any layer, product or readout adds up

    return Model("order 2 with products", 2, largest, layers, terms, make, lambda graph: (matrices(graph),))


def message_passing(*, layers: int, channels: int, largest: int) -> Model:
    """GIN of PyTorch Geometric, whose nodes have no features."""

    def terms(n: int, layers: int) -> int:
        return (channels + 1) * (n + 1)

    def make(prime: int, layers: int) -> nn.Module:
        return _Gin(layers, channels, prime)

    return Model("GIN", 1, largest, layers, terms, make, _nodes_and_edges)


class _Gin(nn.Module):
    """Graph isomorphism layers, then the sum over all nodes."""

    def __init__(self, layers: int, channels: int, prime: int) -> None:
        super().__init__()
        from torch_geometric.nn import GINConv

        widths = [1, *[channels] * layers]
        self.layers = nn.ModuleList(
            GINConv(nn.Sequential(nn.Linear(before, channels), Cube(prime), nn.Linear(channels, channels), Cube(prime)))
            for before in widths[:-1]
        )

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """From (n, 1) and (2, edges) to (channels,)."""
        for layer in self.layers:
            x = layer(x, edge_index)
        return x.sum(0)


def matrices(graph: Graph) -> Tensor:
    """(n, n, 2): the adjacency matrix and the identity."""
    pair = torch.zeros(graph.n, graph.n, 2, dtype=torch.float64)
    pair[graph.edge_index[0], graph.edge_index[1], 0] = 1
    pair[..., 1].fill_diagonal_(1)
    return pair


def _nodes_and_edges(graph: Graph) -> tuple[Tensor, ...]:
    return torch.ones(graph.n, 1, dtype=torch.float64), graph.edge_index
