"""Networks of whole numbers: the layers as they are, in float64, where whole numbers below 2^53 are not rounded.

Weights are drawn from 0 to p - 1 for a prime p, sums are not divided, the activation is the cube, and what a layer
gives is taken modulo p. So the result is, modulo p, that of the network with the same weights and the activation x^3,
and it is exact: where two graphs get different remainders, that network gives them different numbers, and no rounding
is the reason. The prime leaves 2 when divided by 3, and then different remainders have different cubes.
"""

from math import isqrt
from typing import Any

import torch
from torch import Tensor, nn

from bellnet import EquivariantLinear, Product

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
