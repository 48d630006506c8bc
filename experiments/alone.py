"""One run at a time in a directory: the file `.lock`, locked by the process that runs there and naming it."""

import os
import platform
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bellnet.errors import OptionError
from bellnet.files import check_directory
from bellnet.locks import Answer, lock

NAME = ".lock"


@contextmanager
def alone(directory: Path) -> Iterator[bool]:
    """Keep other runs out of a directory, which is made; whether that is so, for not every file system has locks."""
    make_usable(directory)
    path = directory / NAME
    try:
        file = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as reason:
        raise _unusable(path, reason) from reason
    try:
        answer = lock(file, wait=False)
        if answer is Answer.BUSY:
            raise OptionError(
                f"{directory} is in use by {_holder(file)}: a second run there would record everything twice.\n"
                "Wait until that one is done, or stop it and run the same command again: it goes on from there. Or "
                "choose another directory with --out."
            )
        try:
            os.ftruncate(file, 0)
            os.lseek(file, 0, os.SEEK_SET)
            os.write(file, f"process {os.getpid()} on {platform.node()}".encode())
        except OSError as reason:
            raise _unusable(path, reason) from reason
        yield answer is Answer.TAKEN
    finally:
        # The file stays: between the moments in which one is unlocked and removed, another run may have opened it.
        os.close(file)


def make_usable(directory: Path) -> None:
    """Make a directory of a run, or say why there can be none, or nothing in it."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
        check_directory(directory)
    except OSError as reason:
        raise _unusable(directory, reason) from reason


def _holder(file: int) -> str:
    """Who has the lock, as far as that has been written yet."""
    os.lseek(file, 0, os.SEEK_SET)
    return os.read(file, 1000).decode(errors="replace") or "another process"


def _unusable(path: Path, reason: OSError) -> OptionError:
    return OptionError(
        f"{path} cannot be written: {reason.strerror or reason}.\n"
        "Records and checkpoints go there. Mend that, or choose another directory with --out."
    )
