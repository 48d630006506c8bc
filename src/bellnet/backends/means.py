"""Where sums become means: in the weights, if all graphs divide by the same numbers, or in what was read."""

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor

from bellnet.plan import ContractionStack, ContractionTree


class Means(NamedTuple):
    """By what sums are divided; nothing if neither is given.

    Attributes:
        lengths: For every node set the number of nodes that the weights divide by.
        factors: For every stack of the source (..., columns, 1) what it is multiplied by, None for one everywhere; for
            columns of different widths (..., width).
    """

    lengths: tuple[int, ...] | None = None
    factors: tuple[Tensor | None, ...] | None = None

    def over_columns(self, tree: ContractionTree, channels: Sequence[int]) -> "Means":
        """The same for the channels of several tensors, which need not be equal."""
        if self.factors is None or len(set(channels)) == 1:
            return self
        return Means(None, tuple(map(partial(_repeated, channels), tree.stacks, self.factors)))

    def scaled(self, stacks: Sequence[Tensor], dtype: torch.dtype) -> list[Tensor]:
        """Every stack with its columns multiplied by their factors, and of a dtype."""
        if self.factors is not None:
            stacks = [scale(one, factors) for one, factors in zip(stacks, self.factors, strict=True)]
        elif dtype not in (torch.float16, torch.bfloat16):
            return list(stacks)
        return [one if one.dtype == dtype else one.to(dtype) for one in stacks]


NO_MEANS = Means()
"""Sums stay sums."""


def scale(stack: Tensor, factors: Tensor | None) -> Tensor:
    """The columns of a stack multiplied by their factors."""
    if factors is None:
        return stack
    if factors.ndim == stack.ndim:
        return stack * factors
    several = factors.shape[-2]
    apart = stack.reshape(*stack.shape[:-1], several, stack.shape[-1] // several)
    return (apart * factors).flatten(-2)


def _repeated(channels: Sequence[int], stack: ContractionStack, factors: Tensor | None) -> Tensor | None:
    if factors is None:
        return None
    columns = zip(factors.unbind(-2), stack.tensors, strict=True)
    return torch.cat([one.expand(*one.shape[:-1], channels[tensor]) for one, tensor in columns], -1)
