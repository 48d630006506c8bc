"""Files that are replaced as a whole or not at all. Knows locks and the standard library alone.

What is written goes into a part, a file beside its place, and takes that place when all of it is on the disk. A part
has a name that nobody else gives, and is locked by whoever writes it. So what a process that was killed has left can be
told from everything else: it has such a name, it is a plain file of the same user, and it is not locked. It goes when
the next file is written in its directory; where locks may not be seen, since it was made on another machine, only when
it has not been touched for a day.

Whatever cannot be written is an `OSError` with the path that was asked for and the reason in words.
"""

import errno
import os
import platform
import re
import secrets
import stat
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from hashlib import sha256
from math import inf
from pathlib import Path
from types import TracebackType
from typing import IO, NoReturn

from bellnet.locks import Answer, lock

Content = bytes | Callable[[IO[bytes]], object]
"""What a file shall hold: bytes, or a function that writes them to an open file."""
_PART = re.compile(r"\.bellnet-([0-9a-f]{8})-[0-9a-f]{16}\.part")
_HOUR = 3600.0
_DAY = 24 * _HOUR
_SPECIAL = (
    (stat.S_ISDIR, "it is a directory"),
    (stat.S_ISCHR, "it is a device, not a file"),
    (stat.S_ISBLK, "it is a device, not a file"),
    (stat.S_ISFIFO, "it is a pipe, not a file"),
    (stat.S_ISSOCK, "it is a socket, not a file"),
)


def write_files(contents: Mapping[Path, Content], *, unlocked: re.Pattern[str] | None = None) -> None:
    """Write files, each whole, and none of them before all are whole.

    A link stays a link, and what it leads to is replaced. A file that was there keeps its permissions, and its owner
    where that is permitted; a new one has those that the umask leaves. Devices, pipes, sockets, directories and files
    that are read-only are refused.

    Args:
        contents: What every file shall hold, by path.
        unlocked: The endings that a writer without locks gave to its parts, `.NAME.ending` beside the file NAME. What
            it has left goes too, if nobody has touched it for an hour.
    """
    places = {path: _place(path) for path in contents}
    for directory in {place.parent for place in places.values()}:
        _sweep(directory)
    if unlocked is not None:
        for place in places.values():
            _sweep_unlocked(place, unlocked)
    parts: dict[Path, _Part] = {}
    path = Path()
    with ExitStack() as opened:
        try:
            for path, content in contents.items():
                parts[path] = opened.enter_context(_Part(places[path]))
                parts[path].write(content)
            for path in parts:
                parts[path].take_place()
        except OSError as reason:
            _refuse(path, reason)


def check(path: Path) -> Path:
    """The place where a file would be written, links resolved; an `OSError` if none can be written there.

    That is found by doing it: an empty part is made there and removed.
    """
    place = _place(path)
    try:
        with _Part(place):
            return place
    except OSError as reason:
        _refuse(path, reason)


def check_directory(path: Path) -> None:
    """An `OSError` if no file can be made in a directory."""
    try:
        with _Part(path / "any"):
            return
    except OSError as reason:
        _refuse(path, reason)


def words(reason: OSError) -> str:
    """Why a file cannot be written, and the way out, as the end of a message."""
    missing = isinstance(reason, FileNotFoundError | NotADirectoryError)
    return f"{reason.strerror or reason}.\n{'Make it first, or choose' if missing else 'Choose'} another path."


def special(mode: int) -> str | None:
    """What stands at a path of such a mode, in words, if it is not a file."""
    return next((said for is_such, said in _SPECIAL if is_such(mode)), None)


class _Part:
    """A file beside a place, for as long as the context lasts, unless it has taken that place."""

    def __init__(self, place: Path) -> None:
        self._place = place
        try:
            self._old: os.stat_result | None = place.stat()
        except OSError:
            self._old = None

    def __enter__(self) -> "_Part":
        # What is private shall not be public while it is written.
        mode = 0o666 if self._old is None else self._old.st_mode & 0o666 | 0o600
        self._path, self._file, self._lock = _make(self._place.parent, mode)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        with suppress(OSError):
            self._file.close()
        with suppress(OSError):
            self._path.unlink()
        if self._lock is not None:
            os.close(self._lock)

    def write(self, content: Content) -> None:
        """Write all of it, to the disk."""
        with self._file as file:
            if isinstance(content, bytes):
                file.write(content)
            else:
                content(file)
            file.flush()
            if self._old is not None:
                self._resemble(self._old)
            os.fsync(file.fileno())

    def take_place(self) -> None:
        """Replace what is there."""
        self._path.replace(self._place)
        if sys.platform != "win32":
            with suppress(OSError):  # not every disk can do this for a directory
                directory = os.open(self._place.parent, os.O_RDONLY)
                try:
                    os.fsync(directory)
                finally:
                    os.close(directory)

    def _resemble(self, old: os.stat_result) -> None:
        if sys.platform != "win32":
            with suppress(OSError):  # only root may give files away
                os.chown(self._path, old.st_uid, old.st_gid)
        self._path.chmod(old.st_mode & 0o777)


def _place(path: Path) -> Path:
    """Where a path leads, if a file can be there."""
    try:
        try:
            mode = path.stat().st_mode
        except (FileNotFoundError, NotADirectoryError):
            parent = Path(os.path.realpath(path)).parent
            if not parent.is_dir():
                named = parent if path.is_symlink() else path.parent
                raise FileNotFoundError(errno.ENOENT, f"there is no directory {str(named)!r}") from None
            return Path(os.path.realpath(path))
        if said := special(mode):
            raise OSError(errno.EINVAL, said)
        if not os.access(path, os.W_OK):
            raise PermissionError(errno.EACCES, "it is read-only")
        return Path(os.path.realpath(path))
    except OSError as reason:
        _refuse(path, reason)
    except ValueError as reason:
        _refuse(path, OSError(errno.EINVAL, f"it is no path: {reason}"))


def _refuse(path: Path, reason: OSError) -> NoReturn:
    """The same error, about the path that was asked for."""
    raise OSError(reason.errno, reason.strerror or str(reason), str(path)) from reason


def _make(directory: Path, mode: int) -> tuple[Path, IO[bytes], int | None]:
    """A new part in a directory, open, and what holds its lock, which closes after the part has gone or moved."""
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)
    while True:
        path = directory / f".bellnet-{_machine()}-{secrets.token_hex(8)}.part"
        file = os.fdopen(os.open(path, flags, mode), "wb")
        if sys.platform == "win32":  # where what is open can be neither removed nor renamed
            return path, file, None
        # Where there are no locks nothing is swept; elsewhere another process may be about to, or have done so before.
        if lock(file.fileno(), wait=False) is not Answer.BUSY and os.fstat(file.fileno()).st_nlink > 0:
            return path, file, os.dup(file.fileno())
        file.close()


def _sweep(directory: Path) -> None:
    """Remove the parts that processes have left that were killed."""
    with suppress(OSError), os.scandir(directory) as entries:
        for entry in entries:
            if found := _PART.fullmatch(entry.name):
                told_by_lock = found[1] == _machine() and sys.platform != "win32"
                _remove_left(Path(entry.path), untouched=-inf if told_by_lock else _DAY)


def _sweep_unlocked(place: Path, endings: re.Pattern[str]) -> None:
    """Remove what writers without locks have left beside a place."""
    prefix = f".{place.name}."
    with suppress(OSError), os.scandir(place.parent) as entries:
        for entry in entries:
            if entry.name.startswith(prefix) and endings.fullmatch(entry.name, len(prefix)):
                _remove_left(Path(entry.path), untouched=_HOUR)


def _remove_left(path: Path, *, untouched: float) -> None:
    """Remove a plain file of the same user that nobody has locked, nor touched for so many seconds."""
    with suppress(OSError):  # another process was quicker, or it is not ours to open
        known = path.lstat()
        if not stat.S_ISREG(known.st_mode) or time.time() - known.st_mtime <= untouched:
            return
        if sys.platform == "win32":  # without locks; what is open cannot be removed there
            path.unlink()
            return
        if known.st_uid != os.geteuid():
            return
        descriptor = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK)
        try:
            if lock(descriptor, wait=False) is Answer.TAKEN:
                path.unlink()
        finally:
            os.close(descriptor)


def _machine() -> str:
    """A short digest of the name of this machine."""
    return sha256(platform.node().encode(errors="replace")).hexdigest()[:8]
