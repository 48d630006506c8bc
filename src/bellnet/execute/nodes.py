"""How many nodes there are: the length of every node set's axes, and the true counts where axes are padded."""

from math import prod

import torch
from torch import Tensor

from bellnet.execute.means import Means
from bellnet.plan import Bundle, Plan
from bellnet.tensors.keeping import is_transformed, making_constants


class Nodes:
    """The length of the axes of every node set and, for padded batches, how many of them are nodes.

    Args:
        lengths: For every node set, the length of its axes.
        counts: (n_sets, batch) integers, the number of nodes of every set in every graph; None without padding.
    """

    def __init__(self, lengths: tuple[int, ...], counts: Tensor | None = None) -> None:
        self.lengths = lengths
        self.counts = counts
        self._outside: dict[tuple[int, ...], Tensor] = {}
        self._kept_factors: dict[tuple[object, ...], Tensor] = {}

    def outside(self, sets: tuple[int, ...]) -> Tensor | None:
        """Where a (batch, axes over these sets, 1) tensor has no node in some slot; None if it has nodes everywhere."""
        if self.counts is None or not sets:
            return None
        if is_transformed():
            return self._find_outside(sets, self.counts)
        found = self._outside.get(sets)
        if found is None:
            with making_constants():
                found = self._outside[sets] = self._find_outside(sets, self.counts)
        return found

    def _find_outside(self, sets: tuple[int, ...], counts: Tensor) -> Tensor:
        outside: Tensor | None = None
        for axis, node_set in enumerate(sets):
            positions = torch.arange(self.lengths[node_set], device=counts.device)
            missing = positions >= counts[node_set].unsqueeze(-1)
            around = [1] * len(sets)
            around[axis] = self.lengths[node_set]
            missing = missing.reshape(counts.shape[1], *around, 1)
            outside = missing if outside is None else outside | missing
        assert outside is not None
        return outside

    def clean(self, tensor: Tensor, sets: tuple[int, ...]) -> Tensor:
        """The tensor with zeros where it has no node."""
        outside = self.outside(sets)
        return tensor if outside is None else tensor.masked_fill(outside, 0)

    def factors(self, plan: Plan, like: Tensor) -> Means:
        """What turns the sums of a plan into means."""
        return Means(None, tuple([self._factors(bundle, like) for bundle in plan.source.bundles]))

    def _factors(self, bundle: Bundle, like: Tensor) -> Tensor | None:
        """What turns the sums of a bundle into means, (batch or 1, ones, columns, 1); None if nothing is summed."""
        summed = bundle.dropped_sets
        if not any(summed):
            return None
        dtype = torch.promote_types(like.dtype, torch.float32)
        if is_transformed():
            return self._find_factors(bundle, dtype, like.device)
        key = summed, len(bundle.axis_sets), dtype
        found = self._kept_factors.get(key)
        if found is None:
            with making_constants():
                found = self._kept_factors[key] = self._find_factors(bundle, dtype, like.device)
        return found

    def _find_factors(self, bundle: Bundle, dtype: torch.dtype, device: torch.device) -> Tensor:
        if self.counts is None:
            numbers = [prod(max(self.lengths[one], 1) for one in summed) for summed in bundle.dropped_sets]
            factors = torch.tensor([1 / number for number in numbers], dtype=dtype, device=device).unsqueeze(0)
        else:
            whole = self.counts.clamp(min=1).to(dtype)
            one = torch.ones_like(whole[0])
            columns = []
            for summed in bundle.dropped_sets:
                terms = one
                for node_set in summed:
                    terms = terms * whole[node_set]
                columns.append(terms)
            factors = torch.stack(columns, -1).reciprocal()
        return factors.reshape(len(factors), *[1] * len(bundle.axis_sets), len(bundle.folds), 1)
