"""From the weight as it is stored, one matrix for each diagram, to the matrices that the levels multiply by."""

from collections.abc import Callable, Hashable

import torch
from torch import Tensor

from bellnet.plan import Entries, Level, Plan, diagram_to_orbit, orbit_to_diagram


def level_weights(plan: Plan, weight: Tensor) -> tuple[Tensor, ...]:
    """For every level (swaps, reads * in_channels, writes * out_channels), from (n_maps, in, out) for diagrams."""
    index = _constant(("index", plan), weight.device, lambda: torch.tensor(_positions(plan)))
    if plan.symmetric:
        # Swaps that a symmetry makes equal are missing from some reads of a level: a row of zeros stands for them.
        weight = torch.cat([weight, weight.new_zeros(1, *weight.shape[1:])])
    # Canonical order is kept in the weight: a checkpoint must not depend on how levels group the work.
    ordered = weight.index_select(0, index)
    parts = torch.split_with_sizes(ordered, [_size(level) for level in plan.levels])
    return tuple(_matrices(level, part) for level, part in zip(plan.levels, parts, strict=True))


def change_of_basis(plan: Plan, coefficients: Tensor, *, to: str) -> Tensor:
    """Coefficients (n_maps, ...) of the other basis, from diagrams to orbits or back."""
    entries = diagram_to_orbit if to == "orbit" else orbit_to_diagram
    matrix = _constant(
        (to, plan, coefficients.dtype),
        coefficients.device,
        lambda: _dense(entries(plan), plan.n_maps, coefficients.dtype),
    )
    return (matrix @ coefficients.reshape(plan.n_maps, -1)).reshape(coefficients.shape)


def _matrices(level: Level, part: Tensor) -> Tensor:
    swaps, reads, writes = len(level.swaps), len(level.reads), len(level.writes)
    inside, outside = part.shape[1:]
    grid = part.reshape(swaps, reads, writes, inside, outside).transpose(2, 3)
    return grid.reshape(swaps, reads * inside, writes * outside)


def _size(level: Level) -> int:
    return len(level.swaps) * len(level.reads) * len(level.writes)


def _positions(plan: Plan) -> list[int]:
    absent = plan.n_maps
    return [
        absent if number is None else number
        for level in plan.levels
        for plane in level.index
        for row in plane
        for number in row
    ]


def _dense(entries: Entries, size: int, dtype: torch.dtype) -> Tensor:
    rows, columns, values = zip(*entries, strict=True) if entries else ((), (), ())
    matrix = torch.zeros(size, size, dtype=dtype)
    matrix[list(rows), list(columns)] = torch.tensor(values, dtype=dtype)
    return matrix


_CONSTANTS: dict[Hashable, Tensor] = {}


def _constant(key: Hashable, device: torch.device, make: Callable[[], Tensor]) -> Tensor:
    """A constant tensor, made once for each device.

    Not a buffer: a module made on the meta device and then loaded would carry an empty one.
    """
    if torch.compiler.is_compiling():
        return make().to(device)
    if (key, device) in _CONSTANTS:
        return _CONSTANTS[key, device]
    with torch.inference_mode(False):
        constant = make().to(device)
    if type(constant) is Tensor:  # not a fake tensor of some tracer
        _CONSTANTS[key, device] = constant
    return constant
