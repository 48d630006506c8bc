"""The memory of this machine: how much there is, and keeping what was freed for the next call.

The C library of most Linux systems asks the kernel for every tensor above 32 MB anew, and gives it back when it is
freed. The kernel hands out such memory page by page, each one cleared first, which takes longer than many a layer
computes. Other allocators, that of CUDA among them, keep what was freed. So can this one, if it is told to.
"""

import ctypes
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from threading import Lock

CONTAINER = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
"""Where Linux says how much a container may take."""
_TRIM_THRESHOLD, _MMAP_THRESHOLD, _MMAP_MAX = -1, -3, -4  # as malloc.h of the GNU C library numbers them
_USUAL = {_TRIM_THRESHOLD: 2**26, _MMAP_THRESHOLD: 2**25, _MMAP_MAX: 2**16}
"""What that library comes to by itself once large blocks were freed; after it was told anything it does no more."""
_KEPT = {_TRIM_THRESHOLD: -1, _MMAP_MAX: 0}


def fork_safe_lock() -> Lock:
    """A lock between threads that is free in a forked process: a fork waits until it is.

    A fork copies only the thread that forks, so a lock that another thread holds would never be released in the copy.
    """
    made = Lock()
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=made.acquire, after_in_parent=made.release, after_in_child=made.release)
    return made


class _Keeping:
    """Who wants freed memory to be kept: so many calls for as long as they last, or the script for good."""

    def __init__(self) -> None:
        self.lock, self.n_calls, self.for_good = fork_safe_lock(), 0, False


_KEEPING = _Keeping()


def keep_freed_memory() -> bool:
    """From now on, let this process keep the memory that it frees, so that large tensors cost no fresh pages.

    It holds for the whole process and all its libraries: the process keeps the most memory that it ever had in use. So
    it is for a script to call, once, at its start. Estimators do the same while they fit, and give back what is left.
    It helps where tensors on the CPU are larger than 32 MB, or many are freed at once. Layers on a `Sparse` use the
    memory of theirs again without it. On a GPU it changes nothing, and what threads other than the main one allocate is
    still given back from 64 MB on.

    Returns:
        Whether the C library takes the advice. The one of GNU does, which most Linux systems have.
    """
    with _KEEPING.lock:
        _KEEPING.for_good = _set(_KEPT)
        return _KEEPING.for_good


@contextmanager
def freed_memory_kept() -> Iterator[None]:
    """The same for as long as it lasts; then what is free is given back, unless somebody else still wants it kept."""
    with _KEEPING.lock:
        _KEEPING.n_calls += 1
        _set(_KEPT)
    try:
        yield
    finally:
        with _KEEPING.lock:
            _KEEPING.n_calls -= 1
            if not _KEEPING.n_calls and not _KEEPING.for_good and _set(_USUAL):
                ctypes.CDLL(None).malloc_trim(0)


def _set(options: dict[int, int]) -> bool:
    """Tell the C library; whether it takes the advice."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    return mallopt is not None and all(mallopt(option, value) for option, value in options.items())


@cache
def machine_memory() -> int | None:
    """The bytes of memory of this machine, or of the container if that has less; None where the system does not say.

    The system is asked once: opening its files takes longer than many a small tensor that is checked by this.
    """
    found = []
    with suppress(AttributeError, ValueError, OSError):  # not every system has these names
        found.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    for file in CONTAINER:
        with suppress(OSError, ValueError):  # there is none, or it is without a bound
            found.append(int(Path(file).read_text()))
    return min(found, default=None)
