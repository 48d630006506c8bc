"""From the weight as it is stored, one matrix for each map, to the matrices that the levels multiply by."""

from collections.abc import Callable, Hashable
from math import prod
from threading import Lock

import torch
from torch import Tensor

from bellnet.execute.transforms import is_transformed
from bellnet.plan import Entries, Level, Plan
from bellnet.tensors.keeping import making_constants


def to_levels(plan: Plan, weight: Tensor) -> list[Tensor]:
    """For every level (swaps, reads * in_channels, writes * out_channels), from (n_maps, in, out) for diagrams."""
    index = constant(("positions", plan), weight, lambda: torch.tensor(plan.positions, device=weight.device))
    if plan.symmetric:
        # Swaps that a symmetry makes equal are missing from some reads of a level: a matrix of zeros stands for them.
        weight = torch.cat([weight, torch.zeros_like(weight[:1])])
    # The weight is in canonical order: a checkpoint must not depend on how levels group the work.
    ordered = weight.index_select(0, index)
    parts = torch.split_with_sizes(ordered, [_size(level) for level in plan.levels])
    return [_matrices(level, part) for level, part in zip(plan.levels, parts, strict=True)]


def from_levels(plan: Plan, matrices: list[Tensor], like: Tensor) -> Tensor:
    """The transpose of `to_levels`, as gradients need it: (n_maps, in, out) from the matrices of every level."""
    index = constant(("places", plan), like, lambda: torch.tensor(_places(plan), device=like.device))
    parts = [_maps(level, part, like) for level, part in zip(plan.levels, matrices, strict=True)]
    return torch.cat(parts).index_select(0, index)


def mean_factors(plan: Plan, lengths: tuple[int, ...], like: Tensor) -> Tensor:
    """(n_maps, 1, 1): what turns the sum of every map into a mean, if all graphs have the same numbers of nodes."""

    def make() -> Tensor:
        terms = [prod(max(lengths[node_set], 1) for node_set in diagram.read.dropped_sets) for diagram in plan.diagrams]
        return torch.tensor([1 / number for number in terms], dtype=like.dtype, device=like.device).reshape(-1, 1, 1)

    return constant(("mean", plan, lengths, like.dtype), like, make)


def change_of_basis(key: Hashable, entries: Entries, coefficients: Tensor) -> Tensor:
    """Multiply coefficients (n_maps, ...) by an integer matrix, given by its entries; `key` names the matrix."""
    size, dtype, device = coefficients.shape[0], coefficients.dtype, coefficients.device
    matrix = constant((key, dtype), coefficients, lambda: _dense(entries, size, dtype, device))
    return (matrix @ coefficients.reshape(size, -1)).reshape(coefficients.shape)


def _matrices(level: Level, part: Tensor) -> Tensor:
    swaps, reads, writes = len(level.swaps), len(level.reads), len(level.writes)
    inside, outside = part.shape[1:]
    grid = part.reshape(swaps, reads, writes, inside, outside).transpose(2, 3)
    return grid.reshape(swaps, reads * inside, writes * outside)


def _maps(level: Level, matrices: Tensor, like: Tensor) -> Tensor:
    swaps, reads, writes = len(level.swaps), len(level.reads), len(level.writes)
    grid = matrices.reshape(swaps, reads, like.shape[1], writes, like.shape[2]).transpose(2, 3)
    return grid.reshape(swaps * reads * writes, like.shape[1], like.shape[2])


def _size(level: Level) -> int:
    return len(level.swaps) * len(level.reads) * len(level.writes)


def _places(plan: Plan) -> list[int]:
    """Where every map stands in the order of the levels."""
    place = {number: place for place, number in enumerate(plan.positions)}
    return [place[number] for number in range(plan.n_maps)]


def _dense(entries: Entries, size: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    flat = torch.tensor([row * size + column for row, column, _ in entries], device=device)
    values = torch.tensor([value for _, _, value in entries], dtype=dtype, device=device)
    return torch.zeros(size * size, dtype=dtype, device=device).index_put((flat,), values).reshape(size, size)


_CONSTANTS: dict[Hashable, Tensor] = {}
MOST_CONSTANTS = 512
_CHANGING = Lock()


def constant(key: Hashable, like: Tensor, make: Callable[[], Tensor]) -> Tensor:
    """A constant tensor on the device of another one, made once for each device.

    Not a buffer: a module made on the meta device and then loaded would carry an empty one.
    """
    if is_transformed() or type(like) not in (Tensor, torch.nn.Parameter):
        return make()  # a tracer wants to see it made, and what is made for one is no tensor for others
    place = key, like.device
    found = _CONSTANTS.get(place)
    if found is None:
        with making_constants():
            found = make()
        with _CHANGING:
            while len(_CONSTANTS) >= MOST_CONSTANTS:
                del _CONSTANTS[next(iter(_CONSTANTS))]
            _CONSTANTS[place] = found
    return found
