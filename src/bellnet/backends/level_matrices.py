"""The matrices of the levels from the weights, which are stored by basis map, and back; and changes of basis.

Weights are in canonical order, since a checkpoint must not depend on how levels group the maps.
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
Tensors = Sequence[Tensor]
Gradients = tuple[Tensors | None, Tensors | None, Tensors | None]
"""Those of the weights, the biases and the values; None where they are not needed."""

MOST_CONSTANTS = 512
_CONSTANTS: dict[Hashable, Tensor] = {}
LOCK = fork_safe_lock()


class LevelMatrices:
    """For every level and permutation a matrix (contractions * in, broadcasts * out), one after the other in memory.

    Contractions are of all sources side by side, and broadcasts to all targets. Weights are moved in pieces, whose
    length divides the channels of every target.

    Args:
        restricted: The plan, and which weights belong to it.
        channels: Those of every source and of every target.
        device: Of the weights.
    """

    def __init__(self, restricted: RestrictedPlan, channels: Channels, device: torch.device) -> None:
        plan, maps, biases, whole = restricted
        self._plan, self._device, self._inside = plan, device, channels[0]
        self._piece = piece = gcd(*channels[1])
        self._pieces = pieces = [width // piece for width in channels[1]]
        *starts, n_pieces = _starts(whole, channels[0], pieces)
        rows: list[int] = []  # of the weights in pieces; the one after the last is zero
        self._layouts: list[list[tuple[tuple[int, int], tuple[int, int], int]]] = []  # shapes, strides and offsets
        for level in plan.levels:
            height = sum(channels[0][contraction.tensor] for contraction in level.contractions)
            width = sum(channels[1][broadcast.tensor] for broadcast in level.broadcasts)
            counts = [pieces[broadcast.tensor] for broadcast in level.broadcasts]
            self._layouts.append([])
            for plane in level.index:
                self._layouts[-1].append(((height, width), (width, 1), len(rows) * piece))
                for contraction, numbers in zip(level.contractions, plane, strict=True):
                    firsts = [None if number is None else starts[maps[number]] for number in numbers]
                    rows += _rows(firsts, counts, channels[0][contraction.tensor], n_pieces)
        self._n_rows = len(rows)
        bounds = list(accumulate((pieces[target] for target, _ in whole.numbered_biases), initial=0))
        bias_rows = [row for bias in biases for row in range(bounds[bias], bounds[bias + 1])]
        self._n_bias_rows = bounds[-1]
        with no_transforms():
            self._rows = torch.tensor(rows, dtype=torch.int64, device=device)
            back = torch.full((n_pieces + 1,), len(rows), dtype=torch.int64, device=device)
            back[self._rows] = torch.arange(len(rows), device=device)
            self._back = back[:-1]
            is_whole = len(bias_rows) == self._n_bias_rows
            self._bias_rows = None if is_whole else torch.tensor(bias_rows, device=device)
        self._has_gaps = n_pieces in rows
        self._is_restricted = len({*rows, n_pieces}) <= n_pieces

    def gather(self, weights: Tensors, lengths: tuple[int, ...] | None) -> Tensor:
        """All matrices from the weights (n_maps, in, out) of every pair of a source and a target.

        With lengths of the node sets they also turn sums into means.
        """
        parts = [one.reshape(-1, self._piece) for one in weights]
        if self._has_gaps:
            parts.append(parts[0].new_zeros(1, self._piece))
        gathered = (parts[0] if len(parts) == 1 else torch.cat(parts)).index_select(0, self._rows)
        return gathered if lengths is None else gathered.mul_(self._mean_factors(lengths, gathered.dtype))

    def zeros(self, like: Tensor) -> Tensor:
        """For the gradients of all matrices."""
        return like.new_zeros(self._n_rows + self._is_restricted, self._piece)

    def views(self, gathered: Tensor) -> list[list[Tensor]]:
        """The matrix of every level and permutation."""
        return [[gathered.as_strided(*layout) for layout in layouts] for layouts in self._layouts]

    def scatter(self, gathered: Tensor, lengths: tuple[int, ...] | None, weights: Tensors) -> Tensors:
        """The transpose of `gather`: the gradients of the weights from those of the matrices, which are overwritten."""
        if lengths is not None:
            gathered[: self._n_rows].mul_(self._mean_factors(lengths, gathered.dtype))
        return self._split(gathered.index_select(0, self._back), weights)

    def gather_biases(self, biases: Tensors) -> Tensor:
        """What the lowest level adds, from the biases (n_biases, out) of every target."""
        if len(biases) == 1 and self._bias_rows is None:
            return biases[0].reshape(-1)
        rows = torch.cat([one.reshape(-1, self._piece) for one in biases])
        return (rows if self._bias_rows is None else rows.index_select(0, self._bias_rows)).view(-1)

    def scatter_biases(self, gradient: Tensor, biases: Tensors) -> Tensors:
        """The transpose of `gather_biases`."""
        rows = gradient.view(-1, self._piece)
        if self._bias_rows is not None:
            rows = rows.new_zeros(self._n_bias_rows, self._piece).index_copy(0, self._bias_rows, rows)
        return self._split(rows, biases)

    def _split(self, rows: Tensor, like: Tensors) -> Tensors:
        """Pieces one after the other, as tensors of these shapes."""
        if len(like) == 1:
            return (rows.view(like[0].shape),)
        parts = rows.split_with_sizes([one.numel() // self._piece for one in like])
        return [part.view(one.shape) for part, one in zip(parts, like, strict=True)]

    @lru_cache(maxsize=256)  # noqa: B019, layers share the matrices through a cache of their own
    def _mean_factors(self, lengths: tuple[int, ...], dtype: torch.dtype) -> Tensor:
        factors: list[float] = []
        for level in self._plan.levels:
            n_pieces = sum(self._pieces[broadcast.tensor] for broadcast in level.broadcasts)
            for contraction in level.contractions * len(level.permutations):
                n_terms = prod(max(lengths[node_set], 1) for node_set in contraction.dropped_sets)
                factors += [1 / n_terms] * (self._inside[contraction.tensor] * n_pieces)
        with no_transforms():
            return torch.tensor(factors, dtype=dtype, device=self._device).unsqueeze(1)


level_matrices = lru_cache(maxsize=256)(LevelMatrices)
"""Those of a plan, cached."""


def _rows(firsts: Sequence[int | None], counts: Sequence[int], n_channels: int, zero: int) -> list[int]:
    """The pieces of one contraction in all matrices: for every channel `count` of each broadcast from its first on."""
    rows = list[int]()
    for channel in range(n_channels):
        for first, count in zip(firsts, counts, strict=True):
            start = 0 if first is None else first + channel * count
            rows += [zero] * count if first is None else range(start, start + count)
    return rows


def _starts(plan: Plan, inside: Sequence[int], pieces: Sequence[int]) -> list[int]:
    """For every map the first piece of its weight; then the number of all pieces."""
    sizes = (inside[pair.source] * pieces[pair.target] for pair in plan.pairs for _ in range(pair.n_maps))
    return list(accumulate(sizes, initial=0))


def change_of_basis(key: Hashable, entries: Entries, coefficients: Tensor) -> Tensor:
    """Multiply coefficients (n_maps, ...) by an integer matrix, given by its entries; `key` identifies the matrix."""
    size, dtype, device = coefficients.shape[0], coefficients.dtype, coefficients.device

    def make() -> Tensor:
        flat = torch.tensor([row * size + column for row, column, _ in entries], device=device)
        values = torch.tensor([value for _, _, value in entries], dtype=dtype, device=device)
        return torch.zeros(size * size, dtype=dtype, device=device).index_put((flat,), values).reshape(size, size)

    matrix = constant((key, dtype), coefficients, make)
    return (matrix @ coefficients.reshape(size, -1)).reshape(coefficients.shape)


def constant(key: Hashable, like: Tensor, make: Callable[[], Tensor]) -> Tensor:
    """A constant tensor on the device of another one, cached.

    Not a buffer: a module made on the meta device and then loaded would have an empty one.
    """
    if transforms_active() or type(like) not in (Tensor, torch.nn.Parameter):
        return make()  # a traced tensor must not be cached, nor a cached one be traced
    key = key, like.device
    found = _CONSTANTS.get(key)
    if found is None:
        with no_transforms():
            found = make()
        with LOCK:
            while len(_CONSTANTS) >= MOST_CONSTANTS:
                del _CONSTANTS[next(iter(_CONSTANTS))]
            _CONSTANTS[key] = found
    return found
