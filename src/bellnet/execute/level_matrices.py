"""From the weight as it is stored, one matrix for each map, to the matrices that the levels multiply by, and back.

The weight is in canonical order, since a checkpoint must not depend on how levels group the work.
"""

from collections.abc import Sequence
from math import prod

import torch
from torch import Tensor

from bellnet.plan import Plan
from bellnet.tensors.keeping import making_constants

MOST_LENGTHS = 64
"""Factors are kept for so many different numbers of nodes."""

Place = tuple[tuple[int, int], tuple[int, int], int]
"""The shape, the strides and the start of a matrix."""


class LevelMatrices:
    """For every level and swap a matrix (reads * in, writes * out), one after the other in one piece of memory.

    Args:
        plan: Whose levels.
        maps: For every map of the plan its number in the weight.
        biases: For every bias of the plan its number in the bias.
        n_biases: How many of those there are.
        shape: Of the weight, (n_maps, in, out).
        device: Where the weight is.
    """

    def __init__(
        self,
        plan: Plan,
        maps: Sequence[int],
        *,
        biases: Sequence[int],
        n_biases: int,
        shape: tuple[int, int, int],
        device: torch.device,
    ) -> None:
        self._plan, self._shape, self._device = plan, shape, device
        self._n_biases = n_biases
        n_maps, inside, outside = shape
        rows: list[int] = []  # of the weight as a matrix (n_maps * in, out); the one after the last is zero
        self._places: list[list[Place]] = []
        self._levels: list[Place] = []
        for level in plan.levels:
            width = len(level.writes) * outside
            places = []
            for plane in level.index:
                places.append(((len(level.reads) * inside, width), (width, 1), len(rows) * outside))
                for numbers in plane:
                    starts = [n_maps if number is None else maps[number] for number in numbers]
                    for channel in range(inside):
                        rows += [start * inside + (channel if start < n_maps else 0) for start in starts]
            self._places.append(places)
            (height, _), strides, start = places[0]
            self._levels.append(((len(places) * height, width), strides, start))
        self._n_rows = len(rows)
        with making_constants():
            self._rows = torch.tensor(rows, dtype=torch.int64, device=device)
            back = torch.full((n_maps * inside + 1,), len(rows), dtype=torch.int64, device=device)
            back[self._rows] = torch.arange(len(rows), device=device)
            self._back = back[:-1]
            self._biases = None if len(biases) == n_biases else torch.tensor(biases, dtype=torch.int64, device=device)
        self._has_gaps = n_maps * inside in rows
        self._leaves_out = len({*rows, n_maps * inside}) <= n_maps * inside
        self._factors: dict[tuple[object, ...], Tensor] = {}

    def gather(self, weight: Tensor, lengths: tuple[int, ...] | None) -> Tensor:
        """All matrices from (n_maps, in, out); with lengths they also turn sums into means over so many nodes."""
        flat = weight.reshape(-1, self._shape[2])
        if self._has_gaps:
            flat = torch.cat([flat, flat.new_zeros(1, self._shape[2])])
        gathered = flat.index_select(0, self._rows)
        return gathered if lengths is None else gathered.mul_(self._means(lengths, weight.dtype))

    def zeros(self, like: Tensor) -> Tensor:
        """For the gradients of all matrices."""
        return like.new_zeros(self._n_rows + self._leaves_out, self._shape[2])

    def apart(self, gathered: Tensor) -> list[list[Tensor]]:
        """The matrix of every level and swap, as views."""
        return [[gathered.as_strided(*place) for place in places] for places in self._places]

    def by_level(self, gathered: Tensor) -> list[Tensor]:
        """The matrices of every level, those of its swaps below each other, as views."""
        return [gathered.as_strided(*place) for place in self._levels]

    def scatter(self, gathered: Tensor, lengths: tuple[int, ...] | None) -> Tensor:
        """The transpose of `gather`: (n_maps, in, out) from gradients, which may be written into."""
        if lengths is not None:
            (gathered[: self._n_rows] if self._leaves_out else gathered).mul_(self._means(lengths, gathered.dtype))
        return gathered.index_select(0, self._back).view(self._shape)

    def gather_bias(self, bias: Tensor) -> Tensor:
        """The biases that the lowest level adds, one after the other, from (n_biases, out)."""
        return (bias if self._biases is None else bias.index_select(0, self._biases)).reshape(-1)

    def zeros_of_bias(self, like: Tensor) -> Tensor:
        """For the gradient of those."""
        return like.new_zeros(len(self._plan.biases) * self._shape[2])

    def scatter_bias(self, gradient: Tensor) -> Tensor:
        """The transpose of `gather_bias`."""
        rows = gradient.view(-1, self._shape[2])
        if self._biases is None:
            return rows
        return rows.new_zeros(self._n_biases, self._shape[2]).index_copy(0, self._biases, rows)

    def _means(self, lengths: tuple[int, ...], dtype: torch.dtype) -> Tensor:
        key = lengths, dtype
        found = self._factors.get(key)
        if found is None:
            factors: list[float] = []
            for level in self._plan.levels:
                for _ in level.swaps:
                    for read in level.reads:
                        terms = prod(max(lengths[node_set], 1) for node_set in read.dropped_sets)
                        factors += [1 / terms] * (self._shape[1] * len(level.writes))
            with making_constants():
                found = torch.tensor(factors, dtype=dtype, device=self._device).unsqueeze(1)
            if len(self._factors) >= MOST_LENGTHS:
                self._factors = {}
            self._factors[key] = found
        return found
