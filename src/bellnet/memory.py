"""The memory of this machine: how much there is, and keeping what was freed for the next call.

The C library of most Linux systems asks the kernel for every tensor above 32 MB anew, and gives it back when it is
freed. The kernel hands out such memory page by page, each one cleared first, which takes longer than many a layer
computes. Other allocators, that of CUDA among them, keep what was freed. So can this one, if it is told to.
"""

import ctypes
import os
import sys
from contextlib import suppress
from pathlib import Path

CONTAINER = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
"""Where Linux says how much a container may take."""
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


def machine_memory() -> int | None:
    """The bytes of memory of this machine, or of the container if that has less; None where the system does not say."""
    found = []
    with suppress(AttributeError, ValueError, OSError):  # not every system has these names
        found.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    for file in CONTAINER:
        with suppress(OSError, ValueError):  # there is none, or it is without a bound
            found.append(int(Path(file).read_text()))
    return min(found, default=None)
