"""How many nodes there are: the length of every node set's axes, and the true counts where axes are padded."""

from math import prod

import torch
from torch import Tensor

from bellnet.execute.means import Means
from bellnet.execute.transforms import wants_plain
from bellnet.execute.zeros import bits_of, cleaned
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
        self._inside: dict[tuple[int, ...], Tensor] = {}
        self._bits: dict[tuple[tuple[int, ...], int], Tensor] = {}
        self._kept_factors: dict[tuple[object, ...], Tensor] = {}

    def inside(self, sets: tuple[int, ...]) -> Tensor | None:
        """Where a (batch, axes over these sets, 1) tensor has a node in every slot; None if it has them everywhere."""
        if self.counts is None or not sets:
            return None
        if is_transformed():
            return self._find_inside(sets, self.counts)
        found = self._inside.get(sets)
        if found is None:
            with making_constants():
                found = self._inside[sets] = self._find_inside(sets, self.counts)
        return found

    def _find_inside(self, sets: tuple[int, ...], counts: Tensor) -> Tensor:
        inside: Tensor | None = None
        for axis, node_set in enumerate(sets):
            positions = torch.arange(self.lengths[node_set], device=counts.device)
            around = [1] * len(sets)
            around[axis] = self.lengths[node_set]
            there = (positions < counts[node_set].unsqueeze(-1)).reshape(counts.shape[1], *around, 1)
            inside = there if inside is None else inside & there
        assert inside is not None
        return inside

    def bits(self, sets: tuple[int, ...], dtype: torch.dtype) -> Tensor | None:
        """The same as the bits that numbers keep; None if they keep all."""
        key = sets, dtype.itemsize
        found = self._bits.get(key)
        if found is None:
            inside = self.inside(sets)
            if inside is None:
                return None
            with making_constants():
                found = self._bits[key] = bits_of(inside, dtype)
        return found

    def clean(self, tensor: Tensor, sets: tuple[int, ...]) -> Tensor:
        """The tensor with zeros where it has no node."""
        if wants_plain() or not tensor.is_floating_point():
            inside = self.inside(sets)
            return tensor if inside is None else tensor.masked_fill(~inside, 0)
        bits = self.bits(sets, tensor.dtype)
        return tensor if bits is None else cleaned(tensor, bits)

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
