"""Weights in another basis, and constants that are made once."""

from collections.abc import Callable, Hashable

import torch
from torch import Tensor

from bellnet._utils.memory import fork_safe_lock
from bellnet.plan import Entries
from bellnet.tensors.tracing import no_transforms, transforms_active


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
