"""Whether there is room for a weight, asked before any memory is taken: an allocator's answer names no argument."""

from math import prod

import torch

from bellnet._utils.memory import machine_memory
from bellnet.errors import OptionError

MOST_COUNTED = 2**63 - 1  # bytes, as torch counts them
BYTES_DRAWN = 8  # for each number while it is drawn: itself and what it is combined to, in single precision


def check_room(
    call: str, shape: tuple[int, ...], *, device: torch.device | str | None, dtype: torch.dtype | None
) -> None:
    """Refuse a weight that, while it is drawn, would not fit into the machine's memory; on the meta device all fit."""
    like = torch.empty(0, device=device, dtype=dtype)
    needed = prod(shape) * (like.element_size() + BYTES_DRAWN * (not like.is_meta))
    here = None if like.is_meta else machine_memory()
    limit = MOST_COUNTED if here is None else here
    if needed > limit:
        raise OptionError(
            f"{call}: its weight of {' x '.join(map(str, shape))} numbers would take {needed:,} bytes to make.\n"
            f"{'Torch counts up to' if here is None else 'This machine has'} {limit:,}. Take fewer channels, or a "
            'spec with fewer maps. On the meta device (device="meta") a layer takes no memory.'
        )
