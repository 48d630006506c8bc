"""Whether an input is what was declared of it."""

from itertools import combinations

import torch
from torch import Tensor

from bellnet.errors import DeclarationError
from bellnet.plan import Plan
from bellnet.tensors import Support


def check_declared(call: str, plan: Plan, tensor: Tensor) -> None:
    """Refuse a (batch, *axes, channels) tensor that is not symmetric or not hollow although it was declared so."""
    groups = plan.symmetry.groups
    for one, other in _pairs(plan):
        if groups[one] == groups[other]:
            exchanged = tensor.transpose(one + 1, other + 1)
            _refuse_asymmetric(call, plan, (one, other), tensor, exchanged)
        if plan.hollow:
            _refuse_full(call, plan, (one, other), tensor.diagonal(0, one + 1, other + 1))


def check_declared_listed(call: str, plan: Plan, values: Tensor, support: Support) -> None:
    """The same for values (tuples, channels) on the tuples of a support."""
    groups = plan.symmetry.groups
    for one, other in _pairs(plan):
        nodes = support.nodes
        if groups[one] == groups[other]:
            order = list(range(len(nodes)))
            order[one], order[other] = other, one
            places = support.positions(nodes[order])
            exchanged = values[places.clamp(min=0)].masked_fill((places < 0).unsqueeze(-1), 0)
            _refuse_asymmetric(call, plan, (one, other), values, exchanged)
        if plan.hollow:
            _refuse_full(call, plan, (one, other), values[nodes[one] == nodes[other]])


def _pairs(plan: Plan) -> list[tuple[int, int]]:
    """The pairs of source slots over one node set."""
    sets = plan.spec.set_numbers[0]
    return [(one, other) for one, other in combinations(range(len(sets)), 2) if sets[one] == sets[other]]


def _refuse_asymmetric(call: str, plan: Plan, slots: tuple[int, int], tensor: Tensor, exchanged: Tensor) -> None:
    if torch.allclose(tensor, exchanged, rtol=1e-4, atol=1e-6, equal_nan=True):
        return
    worst = float((tensor - exchanged).abs().max())
    raise DeclarationError(
        f"{call} was told that its inputs are symmetric, but exchanging slots {slots[0]} and {slots[1]} "
        f"of node set {plan.spec.source[slots[0]]!r} changes this one by up to {worst:.3g}.\n"
        f"Leave out {'symmetric=True' if plan.symmetric else 'the braces'} to use all maps, or symmetrise the input: "
        "(x + x.transpose(-2, -3)) / 2 for order 2."
    )


def _refuse_full(call: str, plan: Plan, slots: tuple[int, int], diagonal: Tensor) -> None:
    if not diagonal.count_nonzero():
        return
    raise DeclarationError(
        f"{call} was told that its inputs are hollow, but this one has values up to "
        f"{float(diagonal.abs().max()):.3g} where slots {slots[0]} and {slots[1]} of node set "
        f"{plan.spec.source[slots[0]]!r} coincide.\n"
        "Leave out hollow=True to use the maps that read this diagonal."
    )
