"""Whether memory that was freed stays with the process, so that the next call gets it back.

The C library of Linux gives large blocks back to the kernel at once, and the kernel fills fresh pages with zeros when
they are first touched. For tensors above 32 MB that can take longer than the work on them, on virtual machines most of
all; servers keep freed memory instead, by these options or by another allocator.
"""

import ctypes
import sys
from collections.abc import Iterator
from contextlib import contextmanager

_TRIM_THRESHOLD, _MMAP_MAX = -1, -4  # names of options in malloc.h
_NEVER, _USUAL_THRESHOLD, _USUAL_MAX = -1, 128 * 1024, 65536


@contextmanager
def memory_kept() -> Iterator[bool]:
    """Keep freed memory meanwhile; gives whether that was possible, which it is with the C library of GNU."""
    library = ctypes.CDLL(None) if sys.platform == "linux" else None
    set_option = getattr(library, "mallopt", None)
    if set_option is None:
        yield False
        return
    possible = set_option(_MMAP_MAX, 0) == 1 and set_option(_TRIM_THRESHOLD, _NEVER) == 1
    try:
        yield possible
    finally:
        set_option(_MMAP_MAX, _USUAL_MAX)
        set_option(_TRIM_THRESHOLD, _USUAL_THRESHOLD)
