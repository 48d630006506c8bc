"""The memory of this machine: its size, and reuse of freed memory.

The C library of most Linux systems returns tensors above 32 MB to the kernel when they are freed, and gets new
ones page by page, each cleared first. Reusing freed memory, as the allocator of CUDA does, avoids these page faults.
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
"""The files with the memory limit of a container on Linux."""
_TRIM_THRESHOLD, _MMAP_THRESHOLD, _MMAP_MAX = -1, -3, -4  # as in malloc.h of the GNU C library
_DEFAULT = {_TRIM_THRESHOLD: 2**26, _MMAP_THRESHOLD: 2**25, _MMAP_MAX: 2**16}
"""What the library adapts to once large blocks were freed; it no longer adapts after any option was set."""
_REUSE = {_TRIM_THRESHOLD: -1, _MMAP_MAX: 0}


def fork_safe_lock() -> Lock:
    """A lock between threads that is free in a forked process: a fork waits until it is.

    A fork copies only the thread that forks, so a lock that another thread holds would never be released in the copy.
    """
    made = Lock()
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=made.acquire, after_in_parent=made.release, after_in_child=made.release)
    return made


class _State:
    """Whether freed memory is reused: the number of active contexts, and whether it is permanent."""

    def __init__(self) -> None:
        self.lock, self.n_contexts, self.is_permanent = fork_safe_lock(), 0, False


_STATE = _State()


def keep_freed_memory() -> bool:
    """Lets this process reuse the memory that it frees, so that large tensors cause no page faults.

    It applies to the whole process and all its libraries: the process holds on to the most memory that it ever used. A
    script calls it once, at its start. Estimators do the same during `fit`, and release the memory afterwards. It
    matters for tensors on the CPU larger than 32 MB, or if many are freed at once, and has no effect on a GPU. Layers
    on a `Sparse` reuse their own memory without it. Threads other than the main one release blocks from 64 MB on.

    Returns:
        Whether the C library supports it, as that of GNU does, which most Linux systems have.
    """
    with _STATE.lock:
        _STATE.is_permanent = _set(_REUSE)
        return _STATE.is_permanent


@contextmanager
def freed_memory_kept() -> Iterator[None]:
    """The same within a context; free memory is released after the last one."""
    with _STATE.lock:
        _STATE.n_contexts += 1
        _set(_REUSE)
    try:
        yield
    finally:
        with _STATE.lock:
            _STATE.n_contexts -= 1
            if not _STATE.n_contexts and not _STATE.is_permanent and _set(_DEFAULT):
                ctypes.CDLL(None).malloc_trim(0)


def _set(options: dict[int, int]) -> bool:
    """Sets options of the allocator; whether the C library supports them."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    return mallopt is not None and all(mallopt(option, value) for option, value in options.items())


@cache
def machine_memory() -> int | None:
    """The bytes of memory of this machine, or of the container if that has less; None if they are not known.

    Cached, since opening the files takes longer than the checks of small tensors that use it.
    """
    found = []
    with suppress(AttributeError, ValueError, OSError):  # not every system has these names
        found.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    for file in CONTAINER:
        with suppress(OSError, ValueError):  # there is no such file, or no limit
            found.append(int(Path(file).read_text()))
    return min(found, default=None)
