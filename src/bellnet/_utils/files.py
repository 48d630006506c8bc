"""Files that are replaced as a whole or not at all, and locks between processes.

The new content is written to a temporary directory beside the file, synced to disk, and moved there. A process
that is killed leaves the temporary directory behind; it is removed by a later write in the same directory, once it is a
day old. Every failure is an `OSError` with the path that was requested and a readable reason.
"""

import errno
import os
import stat
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from tempfile import mkdtemp
from typing import IO

Content = bytes | Callable[[IO[bytes]], object]
"""The content of a file: bytes, or a function that writes them to an open file."""
_PREFIX, _PART = ".bellnet-tmp-", "part"
_DAY = 24 * 3600.0
_SPECIAL = (
    (stat.S_ISDIR, "it is a directory"),
    (stat.S_ISCHR, "it is a device, not a file"),
    (stat.S_ISBLK, "it is a device, not a file"),
    (stat.S_ISFIFO, "it is a pipe, not a file"),
    (stat.S_ISSOCK, "it is a socket, not a file"),
)
_NO_LOCKS = (errno.ENOLCK, errno.EOPNOTSUPP)  # ENOSYS is handled by filelock


def write_files(contents: Mapping[Path, Content]) -> None:
    """Writes files atomically; none is replaced before the new content of all of them is on disk.

    The target of a symbolic link is replaced, not the link. An existing file keeps its permissions, and its owner where
    that is permitted; a new file gets the permissions of the umask. Devices, pipes, sockets, directories and read-only
    files are refused.

    Args:
        contents: The content of every file, by path.
    """
    targets = {path: _resolve(path) for path in contents}
    for directory in {target.parent for target in targets.values()}:
        _remove_leftovers(directory)
    with ExitStack() as stack:
        parts = {}
        for path, content in contents.items():
            with _errors_about(path):
                parts[path] = stack.enter_context(_temporary(targets[path].parent))
                _write(parts[path], content, targets[path])
        for path, part in parts.items():
            with _errors_about(path):
                part.replace(targets[path])
                _sync(targets[path].parent)


def check(path: Path) -> None:
    """Raises an `OSError` if no file can be written at a path. Nothing is changed there."""
    target = _resolve(path)
    with _errors_about(path), _temporary(target.parent) as part:
        part.write_bytes(b"0")  # a full disk may still take an empty file


def check_directory(path: Path) -> None:
    """Raises an `OSError` if no file can be created in a directory."""
    with _errors_about(path), _temporary(path) as part:
        part.write_bytes(b"0")


def words(reason: OSError) -> str:
    """Why a file cannot be written and how to fix it, as the end of an error message."""
    missing = isinstance(reason, FileNotFoundError | NotADirectoryError)
    return f"{reason.strerror or reason}.\n{'Make it first, or choose' if missing else 'Choose'} another path."


def special(mode: int) -> str | None:
    """The description of a path with this mode if it is not a regular file."""
    return next((kind for is_such, kind in _SPECIAL if is_such(mode)), None)


@contextmanager
def locked(path: Path, *, wait: bool) -> Iterator[bool]:
    """Holds the lock file at a path; yields whether it is locked, since some file systems have no locks.

    The operating system releases the lock when the process ends.

    Args:
        path: The lock file, which is created and may stay.
        wait: Whether to wait for another process that holds the lock; otherwise that is a `TimeoutError`.
    """
    from filelock import FileLock

    lock = FileLock(path)
    is_locked = True
    try:
        lock.acquire(timeout=-1 if wait else 0)
    except OSError as reason:
        if reason.errno not in _NO_LOCKS:
            raise
        is_locked = False
    try:
        yield is_locked
    finally:
        lock.release()


@contextmanager
def _temporary(directory: Path) -> Iterator[Path]:
    """A path for a temporary file, in a directory that only this user can read and that is removed afterwards."""
    found = Path(mkdtemp(prefix=_PREFIX, dir=directory))
    try:
        yield found / _PART
    finally:
        _remove(found)


def _remove(found: Path) -> None:
    """Removes a temporary directory, unless it holds anything but the temporary file."""
    with suppress(OSError):
        (found / _PART).unlink(missing_ok=True)
        found.rmdir()


def _write(part: Path, content: Content, target: Path) -> None:
    with part.open("wb") as file:
        if isinstance(content, bytes):
            file.write(content)
        else:
            content(file)
        file.flush()
        with suppress(FileNotFoundError):
            old = target.stat()
            with suppress(OSError, AttributeError):  # only root may change the owner; Windows has none
                os.chown(part, old.st_uid, old.st_gid)
            part.chmod(stat.S_IMODE(old.st_mode) & 0o777)
        os.fsync(file.fileno())


def _sync(directory: Path) -> None:
    """Makes a rename durable; not every file system can do that."""
    with suppress(OSError):
        descriptor = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _remove_leftovers(directory: Path) -> None:
    """Removes what killed processes have left in a directory more than a day ago, and nothing else."""
    for found in directory.glob(f"{_PREFIX}*"):
        with suppress(OSError):  # not ours, or removed by another process
            if not found.is_symlink() and time.time() - found.stat().st_mtime > _DAY:
                _remove(found)


def _resolve(path: Path) -> Path:
    """The target of a path, if a file can be written there."""
    with _errors_about(path):
        try:
            mode = path.stat().st_mode
        except (FileNotFoundError, NotADirectoryError):
            target = Path(os.path.realpath(path))
            if not target.parent.is_dir():
                named = target.parent if path.is_symlink() else path.parent
                raise FileNotFoundError(errno.ENOENT, f"there is no directory {str(named)!r}") from None
            return target
        except ValueError as reason:
            raise OSError(errno.EINVAL, f"it is no path: {reason}") from reason
        if kind := special(mode):
            raise OSError(errno.EINVAL, kind)
        if not os.access(path, os.W_OK):
            raise PermissionError(errno.EACCES, "it is read-only")
        return Path(os.path.realpath(path))


@contextmanager
def _errors_about(path: Path) -> Iterator[None]:
    """Raises an `OSError` again as one about the path that was requested."""
    try:
        yield
    except OSError as reason:
        raise OSError(reason.errno, reason.strerror or str(reason), str(path)) from reason
