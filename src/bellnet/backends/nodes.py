"""How many nodes there are: the length of every node set's axes, and the true counts where axes are padded."""

from math import inf, prod
from typing import Any

import torch
from torch import Tensor

from bellnet.backends.means import Means
from bellnet.backends.transforms import is_traced
from bellnet.backends.weights import constant
from bellnet.backends.zeros import BITS, cleaned
from bellnet.plan import ContractionStack, Plan
from bellnet.tensors.tracing import no_transforms, transforms_active


class Nodes:
    """The length of the axes of every node set and, for padded batches, how many of them are nodes.

    Args:
        lengths: For every node set, the length of its axes.
        counts: (n_sets, batch) integers, the number of nodes of every set in every graph; None without padding.

    Attributes:
        kept: What walks find out about them.
    """

    def __init__(self, lengths: tuple[int, ...], counts: Tensor | None = None) -> None:
        self.lengths = lengths
        self.counts = counts
        self._inside: dict[tuple[tuple[int, ...], torch.dtype], Tensor] = {}
        self._kept_factors: dict[tuple[object, ...], Tensor] = {}
        self.kept: dict[Any, Any] = {}

    def inside(self, sets: tuple[int, ...]) -> Tensor | None:
        """Where a (batch, axes over these sets, 1) tensor has a node in every slot; None if it has them everywhere."""
        return self._found(sets, torch.bool)

    def bits(self, sets: tuple[int, ...], dtype: torch.dtype) -> Tensor | None:
        """The same as the bits that numbers of a type keep."""
        return self._found(sets, BITS[dtype.itemsize])

    def below_all(self, sets: tuple[int, ...], dtype: torch.dtype) -> Tensor | None:
        """What is added to zeros outside so that no maximum takes them: minus infinity there, and zero inside."""
        return self._found(sets, dtype)

    def _found(self, sets: tuple[int, ...], kind: torch.dtype) -> Tensor | None:
        if self.counts is None or not sets:
            return None
        if transforms_active():
            return self._find(sets, kind, self.counts)
        found = self._inside.get((sets, kind))
        if found is None:
            with no_transforms():
                found = self._inside[sets, kind] = self._find(sets, kind, self.counts)
        return found

    def _find(self, sets: tuple[int, ...], kind: torch.dtype, counts: Tensor) -> Tensor:
        by_set = {}
        for node_set in set(sets):
            positions = torch.arange(self.lengths[node_set], device=counts.device)
            there = positions < counts[node_set].unsqueeze(-1)
            if kind.is_floating_point:
                by_set[node_set] = torch.zeros_like(there, dtype=kind).masked_fill(~there, -inf)
            else:
                by_set[node_set] = there if kind == torch.bool else there.to(kind).neg_()
        found: Tensor | None = None
        for axis, node_set in enumerate(sets):
            around = [1] * len(sets)
            around[axis] = self.lengths[node_set]
            there = by_set[node_set].reshape(counts.shape[1], *around, 1)
            found = there if found is None else found + there if kind.is_floating_point else found & there
        assert found is not None
        return found

    def clean(self, tensor: Tensor, sets: tuple[int, ...]) -> Tensor:
        """The tensor with zeros where it has no node."""
        if is_traced() or not tensor.is_floating_point():
            inside = self.inside(sets)
            return tensor if inside is None else tensor.masked_fill(~inside, 0)
        bits = self.bits(sets, tensor.dtype)
        return tensor if bits is None else cleaned(tensor, bits)

    def factors(self, plan: Plan, like: Tensor) -> Means:
        """What turns the sums of a plan into means."""
        return Means(None, tuple([self._factors(stack, like) for stack in plan.source.stacks]))

    def _factors(self, stack: ContractionStack, like: Tensor) -> Tensor | None:
        """What turns the sums of a stack into means, (batch or 1, ones, columns, 1); None if nothing is summed."""
        summed = stack.dropped_sets
        if not any(summed):
            return None
        dtype = torch.promote_types(like.dtype, torch.float32)
        if transforms_active():
            return self._find_factors(stack, dtype, like.device)
        key = summed, len(stack.axis_sets), dtype
        found = self._kept_factors.get(key)
        if found is None:
            with no_transforms():
                found = self._kept_factors[key] = self._find_factors(stack, dtype, like.device)
        return found

    def _find_factors(self, stack: ContractionStack, dtype: torch.dtype, device: torch.device) -> Tensor:
        if self.counts is None:
            numbers = [prod(max(self.lengths[one], 1) for one in summed) for summed in stack.dropped_sets]
            factors = torch.tensor([1 / number for number in numbers], dtype=dtype, device=device).unsqueeze(0)
        else:
            dropped, n_sets = stack.dropped_sets, len(self.lengths)
            several = constant(
                ("dropped", dropped, n_sets, dtype),
                self.counts,
                lambda: torch.tensor(
                    [[one.count(a) for one in dropped] for a in range(n_sets)], dtype=dtype, device=device
                ),
            )
            inverses = self.counts.clamp(min=1).to(dtype).reciprocal()
            factors = inverses[0].unsqueeze(-1) ** several[0]
            for inverse, times in zip(inverses[1:], several[1:], strict=True):
                factors = factors * inverse.unsqueeze(-1) ** times
        return factors.reshape(len(factors), *[1] * len(stack.axis_sets), len(stack.contractions), 1)
