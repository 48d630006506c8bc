"""How many nodes there are: the length of every node set's axes, and the true counts where axes are padded."""

from typing import NamedTuple

import torch
from torch import Tensor


class Nodes(NamedTuple):
    """The length of the axes of every node set and, for padded batches, how many of them are nodes.

    Attributes:
        lengths: For every node set, the length of its axes.
        counts: (n_sets, batch) integers, the number of nodes of every set in every graph; None without padding.
    """

    lengths: tuple[int, ...]
    counts: Tensor | None = None

    @property
    def common_lengths(self) -> tuple[int, ...] | None:
        """The numbers of nodes that every mean divides by; None if graphs differ in them."""
        return self.lengths if self.counts is None else None

    def divide(self, tensor: Tensor, node_set: int) -> Tensor:
        """Divide by the number of nodes, or by one where there are none; axis 0 of the tensor is the batch."""
        if self.counts is None:
            return tensor / max(self.lengths[node_set], 1)
        counts = self.counts[node_set].clamp(min=1).to(tensor.dtype)
        return tensor / counts.reshape(-1, *[1] * (tensor.ndim - 1))

    def outside(self, sets: tuple[int, ...]) -> Tensor | None:
        """Where a (batch, axes over these sets, 1) tensor has no node in some slot; None if it has nodes everywhere."""
        if self.counts is None or not sets:
            return None
        outside: Tensor | None = None
        for axis, node_set in enumerate(sets):
            positions = torch.arange(self.lengths[node_set], device=self.counts.device)
            missing = positions >= self.counts[node_set].unsqueeze(-1)
            around = [1] * len(sets)
            around[axis] = self.lengths[node_set]
            missing = missing.reshape(self.counts.shape[1], *around, 1)
            outside = missing if outside is None else outside | missing
        return outside

    def clean(self, tensor: Tensor, sets: tuple[int, ...]) -> Tensor:
        """The tensor with zeros where it has no node."""
        outside = self.outside(sets)
        return tensor if outside is None else tensor.masked_fill(outside, 0)
