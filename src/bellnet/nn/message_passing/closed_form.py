"""Equivariant layers whose weights are known: each copies channels through diagrams, and does nothing else."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from bellnet.nn.linear import EquivariantLinear
from bellnet.plan import Plan


class Copy(NamedTuple):
    """Send channels through one diagram: for i below `channels`, channel source + i to channel target + i."""

    diagram: str
    source: int
    target: int
    channels: int


def copying(spec: str, copies: Sequence[Copy], in_channels: int, *, like: Tensor) -> EquivariantLinear:
    """An equivariant layer with these copies for its weight, and no bias yet: all of it can be trained.

    Args:
        spec: As in `EquivariantLinear`.
        copies: What goes where. The output has as many channels as they fill.
        in_channels: The number of channels of the input.
        like: A tensor with the dtype and the device of the parameters.

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
    """The weight in which every copy is an identity matrix at its diagram, and all else is zero."""
    weight = torch.zeros_like(layer.weight)
    for diagram, source, target, channels in copies:
        place = torch.arange(channels, device=weight.device)
        weight[number_of(layer.plan, diagram), source + place, target + place] = 1
    return weight


def is_closed_form(layer: EquivariantLinear, copies: Sequence[Copy]) -> bool:
    """Whether a layer is what `copying` made of it; training moves it away from there."""
    has_bias = layer.bias is not None and bool(layer.bias.any())
    return not has_bias and torch.equal(layer.weight, closed_form(layer, copies))


def number_of(plan: Plan, diagram: str) -> int:
    """Where a diagram stands among those of a plan, found by its name.

    >>> from bellnet import plan
    >>> plan("n n -> n n").diagrams[number_of(plan("n n -> n n"), "ab->ba")].describe()
    'swap the axes'
    """
    return [known.name for known in plan.diagrams].index(diagram)


def diagrams_used(layer: EquivariantLinear) -> tuple[str, ...]:
    """The names of the diagrams whose weights are not all zero."""
    used = layer.weight.detach().flatten(1).any(1).tolist()
    return tuple(diagram.name for diagram, is_used in zip(layer.plan.diagrams, used, strict=True) if is_used)
