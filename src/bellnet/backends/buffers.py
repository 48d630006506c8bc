"""Buffers of large tensors that are reused, as on a GPU.

The C library returns blocks above 32 MB to the system when they are freed, and the pages of new ones are cleared first,
which takes longer than what most layers compute in them. All supports share the blocks, which are freed with the last
support that had large tensors.
"""

import ctypes
import weakref
from collections import deque

import torch
from torch import Tensor

from bellnet._utils.memory import fork_safe_lock

LARGE = 2**25
"""Bytes from which a tensor uses a buffer; smaller blocks are reused by the C library itself."""
LOCK = fork_safe_lock()
_SLACK = 1.5  # without it layers of different widths, or graphs of different sizes, would evict each other's blocks


class BufferPool:
    """Blocks of memory, in total at most half as large again as the tensors that were in use at one time.

    A block may be twice as large as its tensor. Those that were unused for longest are freed first.
    """

    def __init__(self) -> None:
        self._idle: list[Tensor] = []
        self._returned: deque[Tensor] = deque()  # tensors may be freed in any thread, at any moment
        self._n_bytes = self._most_in_use = 0

    def empty(self, n_rows: int, width: int, dtype: torch.dtype) -> Tensor:
        """An uninitialised (n_rows, width) tensor, whose block is returned when all that use it are freed.

        It is like any other, except that it cannot be enlarged in place.
        """
        n_bytes = n_rows * width * dtype.itemsize
        with LOCK:
            block = self._take(n_bytes)
        owner = memoryview((ctypes.c_byte * n_bytes).from_address(block.data_ptr()))
        weakref.finalize(owner, _return_block, weakref.ref(self), block).atexit = False
        # frombuffer returns the right number of values, so nothing is resized. Not a view: autograd guards views.
        return torch.frombuffer(owner, dtype=dtype).resize_(n_rows, width)

    def return_block(self, block: Tensor) -> None:
        """Reuse a block from now on."""
        self._returned.append(block)

    def _take(self, n_bytes: int) -> Tensor:
        while self._returned:
            self._idle.append(self._returned.popleft())
        in_use = self._n_bytes - sum(map(len, self._idle))
        fitting = [block for block in self._idle if n_bytes <= len(block) <= 2 * n_bytes]
        if fitting:
            block = min(reversed(fitting), key=len)  # of the smallest the one that was used last
            self._idle = [other for other in self._idle if other is not block]
        else:
            allowed = max(self._most_in_use, in_use + n_bytes) * _SLACK
            while self._idle and self._n_bytes + n_bytes > allowed:
                self._n_bytes -= len(self._idle.pop(0))
            block = torch.empty(n_bytes, dtype=torch.uint8, device="cpu")
            self._n_bytes += n_bytes
        self._most_in_use = max(self._most_in_use, in_use + len(block))
        return block


class SharedBuffer:
    """A reference to the pool of the process, which exists as long as one that was used."""

    _shared: "weakref.ref[BufferPool]" = weakref.ref(BufferPool())  # to none, at first

    _pool: BufferPool | None = None

    def empty(self, n_rows: int, width: int, like: Tensor) -> Tensor:
        """An uninitialised (n_rows, width) tensor on the CPU."""
        if self._pool is None:
            self._pool = SharedBuffer._shared() or BufferPool()
            SharedBuffer._shared = weakref.ref(self._pool)
        return self._pool.empty(n_rows, width, like.dtype)


def _return_block(pool: "weakref.ref[BufferPool]", block: Tensor) -> None:
    found = pool()
    if found is not None:
        found.return_block(block)
