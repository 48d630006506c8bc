"""Networks of integers, which distinguish graphs without rounding errors, and the expressive power that theory expects.

Networks of order k distinguish the same graphs as WL of dimension k - 1 (folklore form), and order 2 as 1-WL (Maron et
al., 2019b; Geerts, 2020); with matrix products order 2 distinguishes the same graphs as order 3. Message passing
distinguishes the same graphs as 1-WL (Morris et al., 2019; Xu et al., 2019).
"""

from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from math import isqrt
from typing import Any

import torch
from torch import Tensor, nn

from bellnet import PPGN, EquivariantLinear, InvariantNet, Product, bell
from bellnet.data import Graph

EXACT = 2**53
MAX_PRIME = 2**16


class Cube(nn.Module):
    """The cube of every entry, an integer, modulo a prime."""

    def __init__(self, prime: int) -> None:
        super().__init__()
        self.prime = prime

    def forward(self, x: Tensor) -> Tensor:
        remainder = x.remainder(self.prime)
        return (remainder.square().remainder(self.prime) * remainder).remainder(self.prime)


def prime_for(terms: int) -> int:
    """The largest prime for which sums of so many products of two remainders are exact, and cubes are bijective.

    >>> prime_for(1), prime_for(2**33)
    (65519, 1019)
    """
    candidate = min(MAX_PRIME, isqrt(EXACT // terms))
    while candidate % 3 != 2 or any(candidate % factor == 0 for factor in range(2, isqrt(candidate) + 1)):
        candidate -= 1
    return candidate


def with_integers(net: nn.Module, prime: int, seed: int) -> nn.Module:
    """The network in float64 with random integers as weights, and remainders after every layer."""
    generator = torch.Generator().manual_seed(seed)
    net = net.double()
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.copy_(torch.randint(prime, parameter.shape, generator=generator))

    def remainder(layer: nn.Module, inputs: Any, output: Tensor) -> Tensor:
        return output.remainder(prime)

    for module in net.modules():
        if isinstance(module, EquivariantLinear | Product | nn.Linear):
            module.register_forward_hook(remainder)
    return net


@dataclass(frozen=True)
class Model:
    """A kind of network, from `matrices` to invariant outputs.

    Attributes:
        name: Its name.
        order: The order of its tensors.
        dimension: The dimension of WL that distinguishes the same graphs.
        layers: Its minimum number of layers.
        channels: Its width.
        largest: The maximum number of nodes; more take too long.
        make: The network for a model, a prime and a number of layers, without integers.
    """

    name: str
    order: int
    dimension: int
    layers: int
    channels: int
    largest: int
    make: Callable[["Model", int, int], nn.Module]

    def prime(self, n: int, layers: int) -> int:
        """The largest prime with which the network is exact, as if every basis map were a sum over all tuples."""
        terms = bell(2 * self.order) * self.channels * n**self.order + 1
        return prime_for(2 * layers * terms if self.make is make_ppgn else terms)


def make_linear(model: Model, prime: int, layers: int) -> nn.Module:
    """Linear layers between tensors of one order: the first starts at pairs of nodes."""
    shape = " ".join("n" * model.order)
    first = EquivariantLinear(f"n n -> {shape}", 2, model.channels, normalize="sum")
    widths = [model.channels] * layers
    rest = InvariantNet(shape, widths, model.channels, reduce="sum", normalize="sum", activation=lambda: Cube(prime))
    return nn.Sequential(first, Cube(prime), rest)


def make_ppgn(model: Model, prime: int, layers: int) -> nn.Module:
    """Blocks of order 2 that multiply matrices."""
    widths = [2, *[model.channels] * layers]
    options: dict[str, Any] = {"reduce": "sum", "normalize": "sum", "norm": None, "activation": lambda: Cube(prime)}
    net = PPGN("n n", widths, model.channels, **options)
    net.first = EquivariantLinear("n n -> n n", 2, model.channels, normalize="sum")  # in place of means
    return net


class GIN(nn.Module):
    """Graph isomorphism layers of PyTorch Geometric on nodes without features, then the sum over all nodes."""

    def __init__(self, model: Model, prime: int, layers: int) -> None:
        super().__init__()
        from torch_geometric.nn import GINConv

        width = model.channels
        self.layers = nn.ModuleList(
            GINConv(nn.Sequential(nn.Linear(before, width), Cube(prime), nn.Linear(width, width), Cube(prime)))
            for before in [1, *[width] * (layers - 1)]
        )

    def forward(self, x: Tensor) -> Tensor:
        edge_index, values = x[..., 0].nonzero().T, x.new_ones(len(x), 1)
        for layer in self.layers:
            values = layer(values, edge_index)
        return values.sum(0)


def models(*, quick: bool = False) -> list[Model]:
    """The networks in the order of their expressive power; GIN is omitted without PyTorch Geometric."""
    gin = [Model("GIN", 1, 1, 8, 8, 1000, GIN)] if find_spec("torch_geometric") else []
    return [
        *gin,
        Model("order 2", 2, 1, 8, 4, 1000, make_linear),
        Model("order 2 with products", 2, 2, 6, 4, 1000, make_ppgn),
        Model("order 3", 3, 2, 6, 4, 70, make_linear),
        Model("order 4", 4, 3, 3, 2, 16 if quick else 25, make_linear),
    ]


def matrices(graph: Graph) -> Tensor:
    """(n, n, 2): the adjacency matrix and the identity."""
    values = torch.zeros(graph.n, graph.n, 2, dtype=torch.float64)
    values[graph.edge_index[0], graph.edge_index[1], 0] = 1
    values[..., 1].fill_diagonal_(1)
    return values
