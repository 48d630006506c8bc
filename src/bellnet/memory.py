"""Keeping the memory that was freed, for the next call.

The C library of most Linux systems asks the kernel for every tensor above 32 MB anew, and gives it back when it is
freed. The kernel hands out such memory page by page, each one cleared first, which takes longer than many a layer
computes. Other allocators, that of CUDA among them, keep what was freed. So can this one, if it is told to.
"""

import ctypes
import sys

_TRIM_THRESHOLD, _MMAP_MAX = -1, -4  # as malloc.h of the GNU C library numbers them


def keep_freed_memory() -> bool:
    """From now on, let this process keep the memory that it frees, so that large tensors cost no fresh pages.

    It holds for the whole process and all its libraries, and cannot be undone: the process keeps the most memory that
    it ever had in use. So it is for a script to call, once, at its start; bellnet itself never does. It helps where
    tensors on the CPU are larger than 32 MB. Layers on a `Sparse` use the memory of theirs again without it. On a GPU
    it changes nothing, and what threads other than the main one allocate is still given back from 64 MB on.

    Returns:
        Whether the C library takes the advice. The one of GNU does, which most Linux systems have.
    """
    if sys.platform != "linux":
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    return mallopt is not None and bool(mallopt(_MMAP_MAX, 0)) and bool(mallopt(_TRIM_THRESHOLD, -1))
