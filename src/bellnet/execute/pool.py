"""Large tensors whose memory is used again, as that of a GPU is.

The C library gives blocks above 32 MB back to the kernel when they are freed. Fresh ones cost more than what most
layers compute in them: the kernel hands them out page by page, each cleared first. So the blocks of large tensors stay
with the tuples that they are for. All layers share them, and they go when the tuples go.
"""

import ctypes
import weakref

import torch
from torch import Tensor

from bellnet.execute.transforms import making_constants

LARGE = 2**25
"""The bytes of a tensor from which on its memory is kept; that of smaller ones the C library keeps itself."""


class Pool:
    """Blocks of memory that no tensor has at the moment, by their size in bytes."""

    def __init__(self) -> None:
        self._free: dict[int, list[Tensor]] = {}

    def empty(self, n_rows: int, width: int, like: Tensor) -> Tensor | None:
        """An (n_rows, width) tensor with any values; None if the usual way to make one is as good.

        It is like any other, but its memory comes back here when the last tensor that uses it is gone, in whatever
        thread that happens.
        """
        n_bytes = n_rows * width * like.element_size()
        if n_bytes < LARGE or like.device.type != "cpu":
            return None
        free = self._free.setdefault(n_bytes, [])
        try:
            block = free.pop()
        except IndexError:
            with making_constants():
                block = torch.empty(n_bytes, dtype=torch.uint8)
        owner = memoryview((ctypes.c_byte * n_bytes).from_address(block.data_ptr()))
        weakref.finalize(owner, free.append, block).atexit = False
        return torch.frombuffer(owner, dtype=like.dtype).view(n_rows, width)
