"""From the weight as it is stored, one matrix for each map, to the matrices that the levels multiply by, and back.

The weight is in canonical order, since a checkpoint must not depend on how levels group the work.
"""

from collections.abc import Callable, Hashable, Sequence
from functools import lru_cache
from itertools import accumulate
from math import gcd, prod

import torch
from torch import Tensor

from bellnet._utils.memory import fork_safe_lock
from bellnet.plan import Entries, Plan, RestrictedPlan
from bellnet.tensors.tracing import no_transforms, transforms_active

Channels = tuple[tuple[int, ...], tuple[int, ...]]
"""Those of every source and of every target."""

MOST_LENGTHS = 64
"""Factors are kept for so many different numbers of nodes."""

Place = tuple[tuple[int, int], tuple[int, int], int]
"""The shape, the strides and the start of a matrix."""


class LevelMatrices:
    """For every level and swap a matrix (reads * in, writes * out), one after the other in one piece of memory.

    Reads are of all sources, side by side, and writes to all targets. Weights are moved in pieces, so many numbers long
    that they go into the channels of every target without remainder.

    Args:
        left: The plan whose levels they are, and what of the weight belongs to it.
        channels: Those of every source and of every target.
        device: Where the weight is.
    """

    def __init__(self, left: RestrictedPlan, channels: Channels, device: torch.device) -> None:
        plan, maps, biases, whole = left
        self._plan, self._device = plan, device
        self._channels = inside, outside = channels
        self._piece = piece = gcd(*outside)
        self._pieces = pieces = [channels // piece for channels in outside]
        starts = _starts(whole, inside, pieces)
        n_pieces = starts.pop()
        rows: list[int] = []  # of the weight in pieces; the one after the last is zero
        self._places: list[list[Place]] = []
        for level in plan.levels:
            height = sum(inside[contraction.tensor] for contraction in level.contractions)
            width = sum(outside[contraction.tensor] for contraction in level.broadcasts)
            self._places.append([])
            for plane in level.index:
                self._places[-1].append(((height, width), (width, 1), len(rows) * piece))
                for read, numbers in zip(level.contractions, plane, strict=True):
                    firsts = [None if number is None else starts[maps[number]] for number in numbers]
                    several = [pieces[write.tensor] for write in level.broadcasts]
                    rows += _rows(firsts, several, inside[read.tensor], n_pieces)
        self._n_rows = len(rows)
        bias_starts = list(accumulate((pieces[target] for target, _ in whole.numbered_biases), initial=0))
        self._n_bias_rows = bias_starts[-1]
        kept = [row for bias in biases for row in range(bias_starts[bias], bias_starts[bias + 1])]
        with no_transforms():
            self._rows = torch.tensor(rows, dtype=torch.int64, device=device)
            back = torch.full((n_pieces + 1,), len(rows), dtype=torch.int64, device=device)
            back[self._rows] = torch.arange(len(rows), device=device)
            self._back = back[:-1]
            self._biases = None if len(kept) == bias_starts[-1] else torch.tensor(kept, device=device)
        self._has_gaps = n_pieces in rows
        self._leaves_out = len({*rows, n_pieces}) <= n_pieces
        self._factors: dict[tuple[object, ...], Tensor] = {}

    def gather(self, weights: Sequence[Tensor], lengths: tuple[int, ...] | None) -> Tensor:
        """All matrices from the weights; with lengths they also turn sums into means over so many nodes.

        Args:
            weights: (n_maps, in, out) for every pair of a source and a target.
            lengths: For every node set.
        """
        parts = [one.reshape(-1, self._piece) for one in weights]
        if self._has_gaps:
            parts.append(parts[0].new_zeros(1, self._piece))
        gathered = (parts[0] if len(parts) == 1 else torch.cat(parts)).index_select(0, self._rows)
        return gathered if lengths is None else gathered.mul_(self._means(lengths, gathered.dtype))

    def zeros(self, like: Tensor) -> Tensor:
        """For the gradients of all matrices."""
        return like.new_zeros(self._n_rows + self._leaves_out, self._piece)

    def apart(self, gathered: Tensor) -> list[list[Tensor]]:
        """The matrix of every level and swap, as views."""
        return [[gathered.as_strided(*place) for place in places] for places in self._places]

    def scatter(self, gathered: Tensor, lengths: tuple[int, ...] | None, weights: Sequence[Tensor]) -> Sequence[Tensor]:
        """The transpose of `gather`: of the shapes of the weights, from gradients, which may be written into."""
        if lengths is not None:
            (gathered[: self._n_rows] if self._leaves_out else gathered).mul_(self._means(lengths, gathered.dtype))
        return self._apart(gathered.index_select(0, self._back), weights)

    def gather_biases(self, biases: Sequence[Tensor]) -> Tensor:
        """What the lowest level adds, one after the other, from (n_biases, out) for every target."""
        if len(biases) == 1 and self._biases is None:
            return biases[0].reshape(-1)
        rows = torch.cat([one.reshape(-1, self._piece) for one in biases])
        return (rows if self._biases is None else rows.index_select(0, self._biases)).view(-1)

    def scatter_biases(self, gradient: Tensor, biases: Sequence[Tensor]) -> Sequence[Tensor]:
        """The transpose of `gather_biases`."""
        rows = gradient.view(-1, self._piece)
        if self._biases is not None:
            rows = rows.new_zeros(self._n_bias_rows, self._piece).index_copy(0, self._biases, rows)
        return self._apart(rows, biases)

    def _apart(self, rows: Tensor, like: Sequence[Tensor]) -> Sequence[Tensor]:
        """Pieces that lie one after the other, as tensors of these shapes."""
        if len(like) == 1:
            return (rows.view(like[0].shape),)
        parts = rows.split_with_sizes([one.numel() // self._piece for one in like])
        return [part.view(one.shape) for part, one in zip(parts, like, strict=True)]

    def _means(self, lengths: tuple[int, ...], dtype: torch.dtype) -> Tensor:
        key = lengths, dtype
        found = self._factors.get(key)
        if found is None:
            factors: list[float] = []
            for level in self._plan.levels:
                each = sum(self._pieces[write.tensor] for write in level.broadcasts)
                for _ in level.permutations:
                    for read in level.contractions:
                        terms = prod(max(lengths[node_set], 1) for node_set in read.dropped_sets)
                        factors += [1 / terms] * (self._channels[0][read.tensor] * each)
            with no_transforms():
                found = torch.tensor(factors, dtype=dtype, device=self._device).unsqueeze(1)
            if len(self._factors) >= MOST_LENGTHS:
                self._factors = {}
            self._factors[key] = found
        return found


level_matrices = lru_cache(maxsize=256)(LevelMatrices)
"""Those of a plan, found once."""


def _rows(firsts: Sequence[int | None], several: Sequence[int], n_channels: int, zero: int) -> list[int]:
    """The pieces of all matrices of one read: for every channel so many of each write, from its first one on."""
    rows = list[int]()
    for channel in range(n_channels):
        for first, each in zip(firsts, several, strict=True):
            start = 0 if first is None else first + channel * each
            rows += [zero] * each if first is None else range(start, start + each)
    return rows


def _starts(plan: Plan, inside: Sequence[int], pieces: Sequence[int]) -> list[int]:
    """For every map the first piece of its weight; and the number of all pieces."""
    sizes = (inside[pair.source] * pieces[pair.target] for pair in plan.pairs for _ in range(pair.n_maps))
    return list(accumulate(sizes, initial=0))


def change_of_basis(key: Hashable, entries: Entries, coefficients: Tensor) -> Tensor:
    """Multiply coefficients (n_maps, ...) by an integer matrix, given by its entries; `key` names the matrix."""
    size, dtype, device = coefficients.shape[0], coefficients.dtype, coefficients.device
    matrix = constant((key, dtype), coefficients, lambda: _dense(entries, size, dtype, device))
    return (matrix @ coefficients.reshape(size, -1)).reshape(coefficients.shape)


def _dense(entries: Entries, size: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    flat = torch.tensor([row * size + column for row, column, _ in entries], device=device)
    values = torch.tensor([value for _, _, value in entries], dtype=dtype, device=device)
    return torch.zeros(size * size, dtype=dtype, device=device).index_put((flat,), values).reshape(size, size)


_CONSTANTS: dict[Hashable, Tensor] = {}
MOST_CONSTANTS = 512
CHANGING = fork_safe_lock()


def constant(key: Hashable, like: Tensor, make: Callable[[], Tensor]) -> Tensor:
    """A constant tensor on the device of another one, made once for each device.

    Not a buffer: a module made on the meta device and then loaded would carry an empty one.
    """
    if transforms_active() or type(like) not in (Tensor, torch.nn.Parameter):
        return make()  # a tracer wants to see it made, and what is made for one is no tensor for others
    place = key, like.device
    found = _CONSTANTS.get(place)
    if found is None:
        with no_transforms():
            found = make()
        with CHANGING:
            while len(_CONSTANTS) >= MOST_CONSTANTS:
                del _CONSTANTS[next(iter(_CONSTANTS))]
            _CONSTANTS[place] = found
    return found
