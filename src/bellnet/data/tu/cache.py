"""The cache folder: parsed data sets as arrays, and data sets received from another machine.

Arrays are read without pickle, so that a file from elsewhere cannot run code.
"""

import hashlib
import os
import sys
import warnings
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path

from bellnet._utils.files import write_files
from bellnet.data.tu.parse import Arrays
from bellnet.errors import DataError

VERSION = 1
RECEIVED = "sent"
"""The folder of received data sets within the cache folder."""


def default_folder() -> Path:
    """The cache folder: $BELLNET_CACHE, or the platform's folder for caches."""
    if given := os.environ.get("BELLNET_CACHE"):
        return Path(given).expanduser()
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "bellnet"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData" / "Local")) / "bellnet" / "Cache"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "bellnet"


def file_for(folder: Path, name: str, digest: str) -> Path:
    """The file for a data set whose content has this digest."""
    return folder / f"{name}-{digest[:16]}-v{VERSION}.npz"


def read(file: Path) -> Arrays | None:
    """The arrays in a file; None if there is no file or it cannot be read."""
    import numpy as np

    try:
        with file.open("rb") as stream, np.load(stream, allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in stored.files}
        return Arrays(**{**arrays, "directed": bool(arrays["directed"])})
    except (OSError, EOFError, KeyError, TypeError, ValueError, zipfile.BadZipFile, zlib.error):
        return None


def write(file: Path, arrays: Arrays) -> None:
    """Writes the arrays to a file, completely or, with a warning, not at all."""
    import numpy as np

    present = {field.name: value for field in fields(arrays) if (value := getattr(arrays, field.name)) is not None}
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        write_files({file: lambda stream: np.savez(stream, **present)})
    except OSError as reason:
        warnings.warn(
            f"bellnet.data.tu could not keep {file}: {reason}. The data set will be parsed again next time.\n"
            "Name another folder with cache=... or the environment variable BELLNET_CACHE, or pass cache=False.",
            RuntimeWarning,
            stacklevel=5,
        )


@dataclass(frozen=True)
class Parcel:
    """A data set with everything that `load` reads, for another machine.

    Attributes:
        name: The name of the data set.
        zipped: The bytes of its zip.
        splits: The bytes of its published splits, or None.
    """

    name: str
    zipped: bytes
    splits: bytes | None

    @property
    def digest(self) -> str:
        """A digest of zip and splits."""
        parts = (self.zipped, self.splits or b"")
        return hashlib.sha256("".join(hashlib.sha256(part).hexdigest() for part in parts).encode()).hexdigest()


def receive(name: str, digest: str, fetch: Callable[[], Parcel]) -> Path:
    """The folder of the cache with a data set, for `load`; the data set is fetched if it is not there.

    Args:
        name: The name of the data set.
        digest: The digest of its parcel.
        fetch: Returns the parcel.
    """
    folder = default_folder() / RECEIVED / f"{name}-{digest[:16]}"
    zipped = folder / f"{name}.zip"
    if not zipped.is_file():
        parcel = fetch()
        if (parcel.name, parcel.digest) != (name, digest):
            raise DataError(f"{name}: what has arrived has another digest than what was sent.\nSend it again.")
        splits = {} if parcel.splits is None else {folder / "splits" / f"{name}.json": parcel.splits}
        try:
            for path in (*splits, zipped):
                path.parent.mkdir(parents=True, exist_ok=True)
            # The zip is written last: where it exists, the splits do.
            write_files({**splits, zipped: parcel.zipped})
        except OSError as reason:
            raise DataError(
                f"{name} cannot be kept in {folder}: {reason.strerror or reason}.\n"
                "Name another folder with the environment variable BELLNET_CACHE."
            ) from reason
    return folder
