"""Memory for what a walk needs only for a moment, used again by the next one.

The C library hands the end of its heap back to the kernel when much of it is free, which is at the end of every step of
a training. Whatever is made next costs a page fault for every 4 kB, and those cost more than the copy itself. Chunks of
graphs are small, so every thread keeps room for the copies of one.
"""

from threading import local

import torch
from torch import Tensor

from bellnet.tensors.keeping import making_constants

MOST_BYTES = 3 * 2**21
"""Larger tensors are made anew."""


class _Room(local):
    def __init__(self) -> None:
        self.blocks: dict[str, Tensor] = {}


_ROOM = _Room()


def scratch(use: str, shape: tuple[int, ...], like: Tensor) -> Tensor:
    """A contiguous tensor with any values, until this thread asks for the same use once more."""
    whole = torch.Size(shape)
    n_bytes = whole.numel() * like.element_size()
    if n_bytes > MOST_BYTES or like.device.type != "cpu":
        return like.new_empty(whole)
    block = _ROOM.blocks.get(use)
    if block is None or len(block) < n_bytes:
        with making_constants():
            block = _ROOM.blocks[use] = torch.empty(n_bytes, dtype=torch.uint8)
    return block[:n_bytes].view(like.dtype).view(whole)


def copied(use: str, tensor: Tensor) -> Tensor:
    """A contiguous copy in such memory."""
    return scratch(use, tensor.shape, tensor).copy_(tensor)
