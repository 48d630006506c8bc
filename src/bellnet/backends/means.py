"""Where sums become means: in the weights, if all graphs divide by the same numbers, or in what was read."""

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor

from bellnet.plan import Bundle, Tree


class Means(NamedTuple):
    """By what sums are divided; nothing if neither is given.

    Attributes:
        lengths: For every node set the number of nodes that the weights divide by.
        factors: For every bundle of the source (..., columns, 1) what it is multiplied by, None for one everywhere; for
            columns of different widths (..., width).
    """

    lengths: tuple[int, ...] | None = None
    factors: tuple[Tensor | None, ...] | None = None

    def over_columns(self, tree: Tree, channels: Sequence[int]) -> "Means":
        """The same for the channels of several tensors, which need not be equal."""
        if self.factors is None or len(set(channels)) == 1:
            return self
        return Means(None, tuple(map(partial(_repeated, channels), tree.bundles, self.factors)))

    def scaled(self, bundles: Sequence[Tensor], dtype: torch.dtype) -> list[Tensor]:
        """Every bundle with its columns multiplied by their factors, and of a dtype."""
        if self.factors is not None:
            bundles = [scale(one, factors) for one, factors in zip(bundles, self.factors, strict=True)]
        elif dtype not in (torch.float16, torch.bfloat16):
            return list(bundles)
        return [one if one.dtype == dtype else one.to(dtype) for one in bundles]


NO_MEANS = Means()
"""Sums stay sums."""


def scale(bundle: Tensor, factors: Tensor | None) -> Tensor:
    """The columns of a bundle multiplied by their factors."""
    if factors is None:
        return bundle
    if factors.ndim == bundle.ndim:
        return bundle * factors
    several = factors.shape[-2]
    apart = bundle.reshape(*bundle.shape[:-1], several, bundle.shape[-1] // several)
    return (apart * factors).flatten(-2)


def _repeated(channels: Sequence[int], bundle: Bundle, factors: Tensor | None) -> Tensor | None:
    if factors is None:
        return None
    columns = zip(factors.unbind(-2), bundle.tensors, strict=True)
    return torch.cat([one.expand(*one.shape[:-1], channels[tensor]) for one, tensor in columns], -1)
