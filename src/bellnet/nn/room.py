"""Whether there is room for a weight, asked before any memory is taken: an allocator's answer names no argument."""

import os
from math import prod

import torch

from bellnet.errors import OptionError

MOST_COUNTED = 2**63 - 1  # bytes, as torch counts them
BYTES_DRAWN = 8  # for each number while it is drawn: itself and what it is combined to, in single precision


def check_room(
    call: str, shape: tuple[int, ...], *, device: torch.device | str | None, dtype: torch.dtype | None
) -> None:
    """Refuse a weight that, while it is drawn, would not fit into the machine's memory; on the meta device all fit."""
    like = torch.empty(0, device=device, dtype=dtype)
    needed = prod(shape) * (like.element_size() + BYTES_DRAWN * (not like.is_meta))
    limit = MOST_COUNTED if like.is_meta else machine_memory()
    if needed > limit:
        raise OptionError(
            f"{call}: its weight of {' x '.join(map(str, shape))} numbers would take {needed:,} bytes to make.\n"
            f"{'Torch counts up to' if like.is_meta else 'This machine has'} {limit:,}. Take fewer channels, or a "
            'spec with fewer maps. On the meta device (device="meta") a layer takes no memory.'
        )


def machine_memory() -> int:
    """The bytes of memory that this machine has; where the system does not say, as many as torch can count."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return MOST_COUNTED
