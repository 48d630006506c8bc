"""Large tensors whose memory is used again, as that of a GPU is.

The C library gives blocks above 32 MB back to the kernel when they are freed. Fresh ones cost more than what most
layers compute in them: the kernel hands them out page by page, each cleared first. So the blocks of large tensors are
kept for the next one. All supports share them, and they go when the last support that had large tensors is gone.
"""

import ctypes
import weakref
from collections import deque

import torch
from torch import Tensor

from bellnet._utils.memory import fork_safe_lock

LARGE = 2**25
"""The bytes of a tensor from which on its memory is kept; that of smaller ones the C library keeps itself."""

CHANGING = fork_safe_lock()
_SLACK = 1.5  # with none, layers of different widths, or graphs of different sizes, take turns in driving blocks out


class Pool:
    """Blocks of memory, together at most half as much again as tensors once used at the same time.

    A block may be up to twice as large as its tensor. Those that were not used for longest go first.
    """

    def __init__(self) -> None:
        self._idle: list[Tensor] = []
        self._returned: deque[Tensor] = deque()  # tensors may go in any thread, at any moment
        self._n_bytes = self._most_in_use = 0

    def empty(self, n_rows: int, width: int, dtype: torch.dtype) -> Tensor:
        """An (n_rows, width) tensor with any values, whose memory comes back here when all that use it are gone.

        It is like any other, except that it cannot be made larger in place.
        """
        n_bytes = n_rows * width * dtype.itemsize
        with CHANGING:
            block = self._take(n_bytes)
        owner = memoryview((ctypes.c_byte * n_bytes).from_address(block.data_ptr()))
        weakref.finalize(owner, _give_back, weakref.ref(self), block).atexit = False
        # Of the right length already, so that nothing is resized. A view would not do: autograd guards views.
        return torch.frombuffer(owner, dtype=dtype).resize_(n_rows, width)

    def give_back(self, block: Tensor) -> None:
        """No tensor uses the block any more."""
        self._returned.append(block)

    def _take(self, n_bytes: int) -> Tensor:
        while self._returned:
            self._idle.append(self._returned.popleft())
        in_use = self._n_bytes - sum(map(len, self._idle))
        fitting = [block for block in self._idle if n_bytes <= len(block) <= 2 * n_bytes]
        if fitting:
            block = min(reversed(fitting), key=len)  # of those that fit best the one that was used last
            self._idle = [other for other in self._idle if other is not block]
        else:
            allowed = max(self._most_in_use, in_use + n_bytes) * _SLACK
            while self._idle and self._n_bytes + n_bytes > allowed:
                self._n_bytes -= len(self._idle.pop(0))
            block = torch.empty(n_bytes, dtype=torch.uint8, device="cpu")
            self._n_bytes += n_bytes
        self._most_in_use = max(self._most_in_use, in_use + len(block))
        return block


class Share:
    """A part in the pool of the process, which lives as long as somebody has one that was used."""

    _shared: "weakref.ref[Pool]" = weakref.ref(Pool())  # to none, for now

    def __init__(self) -> None:
        self._pool: Pool | None = None

    def empty(self, n_rows: int, width: int, like: Tensor) -> Tensor | None:
        """An (n_rows, width) tensor with any values; None if the usual way to make one is as good."""
        if n_rows * width * like.element_size() < LARGE or like.device.type != "cpu":
            return None
        if self._pool is None:
            self._pool = Share._shared() or Pool()
            Share._shared = weakref.ref(self._pool)
        return self._pool.empty(n_rows, width, like.dtype)


def _give_back(pool: "weakref.ref[Pool]", block: Tensor) -> None:
    there = pool()
    if there is not None:
        there.give_back(block)
