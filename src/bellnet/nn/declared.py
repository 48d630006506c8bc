"""Whether an input is what was declared of it."""

from itertools import combinations

import torch
from torch import Tensor

from bellnet.errors import DeclarationError
from bellnet.plan import Plan


def check_declared(call: str, plan: Plan, tensor: Tensor) -> None:
    """Refuse a (batch, *axes, channels) tensor that is not symmetric or not hollow although it was declared so."""
    sets = plan.spec.set_numbers[0]
    pairs = [(one, other) for one, other in combinations(range(len(sets)), 2) if sets[one] == sets[other]]
    for one, other in pairs:
        name = plan.spec.source[one]
        if plan.symmetric:
            exchanged = tensor.transpose(one + 1, other + 1)
            if not torch.allclose(tensor, exchanged, rtol=1e-4, atol=1e-6, equal_nan=True):
                worst = float((tensor - exchanged).abs().max())
                raise DeclarationError(
                    f"{call} was told that its inputs are symmetric, but exchanging slots {one} and {other} "
                    f"of node set {name!r} changes this one by up to {worst:.3g}.\n"
                    "Leave out symmetric=True to use all maps, or symmetrise the input: "
                    "(x + x.transpose(-2, -3)) / 2 for order 2."
                )
        if plan.hollow:
            diagonal = tensor.diagonal(0, one + 1, other + 1)
            if diagonal.count_nonzero():
                raise DeclarationError(
                    f"{call} was told that its inputs are hollow, but this one has values up to "
                    f"{float(diagonal.abs().max()):.3g} where slots {one} and {other} of node set {name!r} coincide.\n"
                    "Leave out hollow=True to use the maps that read this diagonal."
                )
