"""Whether there is room for a tensor with a value for every tuple of nodes, asked before any memory is taken."""

from collections.abc import Sequence
from math import prod

import torch

from bellnet._utils.memory import machine_memory
from bellnet.errors import SizesError

SPARSE = 'Stay sparse: layers take a Sparse, and Encoding.encode, Loader and the estimators have layout="sparse".'


def check_room_for(call: str, shape: Sequence[int], dtype: torch.dtype, max_gigabytes: float | None = None) -> None:
    """Refuse a tensor that would take more than so many gigabytes, or than the machine has if None."""
    needed = prod(shape) * dtype.itemsize
    allowed = machine_memory() if max_gigabytes is None else max_gigabytes * 1e9
    if allowed is None or needed <= allowed:
        return
    whose = "this machine has" if max_gigabytes is None else "max_gigabytes allows"
    raise SizesError(
        f"{call}: a tensor of {' x '.join(map(str, shape))} numbers would take {needed:,} bytes; {whose} "
        f"{int(allowed):,}.\n{SPARSE}"
    )
