"""Locks of open files. The system takes them away when the process that holds them ends, however it ends."""

import errno
import os
import sys
from enum import Enum, auto

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

_FAR = 2**30
"""Where a file is locked on Windows: others cannot read what is locked there, so it is where nothing is written."""


class Answer(Enum):
    """What became of the wish to lock a file."""

    TAKEN = auto()
    BUSY = auto()  # another process has it
    UNKNOWN = auto()  # not every file system has locks


def lock(file: int, *, wait: bool) -> Answer:
    """Lock an open file until it is closed.

    Args:
        file: The descriptor.
        wait: Whether to wait for others; then the answer is never "busy".
    """
    while True:
        try:
            _lock(file, wait)
        except (BlockingIOError, PermissionError):
            return Answer.BUSY
        except OSError as reason:
            if reason.errno == errno.EDEADLK:
                continue  # Windows waits for ten seconds and no longer
            return Answer.UNKNOWN
        return Answer.TAKEN


if sys.platform == "win32":

    def _lock(file: int, wait: bool) -> None:
        os.lseek(file, _FAR, os.SEEK_SET)
        msvcrt.locking(file, msvcrt.LK_LOCK if wait else msvcrt.LK_NBLCK, 1)

else:

    def _lock(file: int, wait: bool) -> None:
        fcntl.flock(file, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
