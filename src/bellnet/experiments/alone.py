"""One run at a time in a directory: the file `.lock` is locked by the process that runs there."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from bellnet._utils.files import check_directory, locked
from bellnet.errors import OptionError

NAME = ".lock"


@contextmanager
def alone(directory: Path) -> Iterator[bool]:
    """Keep other runs out of a directory, which is made; whether that is so, for not every file system has locks.

    Args:
        directory: Where records and checkpoints go.
    """
    make_usable(directory)
    path = directory / NAME
    with ExitStack() as stack:
        try:
            is_locked = stack.enter_context(locked(path, wait=False))
        except TimeoutError as reason:
            raise OptionError(
                f"{directory} is in use by another process: a second run there would record everything twice.\n"
                "Wait until that one is done, or stop it and run the same command again: it goes on from there. Or "
                "choose another directory with --out."
            ) from reason
        except OSError as reason:
            raise _unusable(path, reason) from reason
        yield is_locked


def make_usable(directory: Path) -> None:
    """Make a directory of a run, or say why there can be none, or nothing in it."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
        check_directory(directory)
    except OSError as reason:
        raise _unusable(directory, reason) from reason


def _unusable(path: Path, reason: OSError) -> OptionError:
    return OptionError(
        f"{path} cannot be written: {reason.strerror or reason}.\n"
        "Records and checkpoints go there. Mend that, or choose another directory with --out."
    )
