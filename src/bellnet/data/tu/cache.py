"""Arrays kept on disk, so that a large set is parsed once.

A file holds plain arrays and is read without pickle: a stranger's file cannot run code.
"""

import os
import sys
import warnings
import zipfile
import zlib
from dataclasses import fields
from pathlib import Path

from bellnet._utils.files import write_files
from bellnet.data.tu.parse import Arrays

VERSION = 1


def default_folder() -> Path:
    """Where bellnet keeps what it can make or fetch again: $BELLNET_CACHE, or what the platform has for this."""
    if given := os.environ.get("BELLNET_CACHE"):
        return Path(given).expanduser()
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "bellnet"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData" / "Local")) / "bellnet" / "Cache"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "bellnet"


def file_for(folder: Path, name: str, digest: str) -> Path:
    """The file for a data set with this content."""
    return folder / f"{name}-{digest[:16]}-v{VERSION}.npz"


def read(file: Path) -> Arrays | None:
    """What was kept in a file; None if there is none, or none that can be read."""
    import numpy as np

    try:
        with file.open("rb") as stream, np.load(stream, allow_pickle=False) as stored:
            kept = {name: stored[name] for name in stored.files}
        return Arrays(**{**kept, "directed": bool(kept["directed"])})
    except (OSError, EOFError, KeyError, TypeError, ValueError, zipfile.BadZipFile, zlib.error):
        return None


def write(file: Path, arrays: Arrays) -> None:
    """Keep arrays in a file: all of it, or, if that fails, nothing, with a warning."""
    import numpy as np

    known = {field.name: getattr(arrays, field.name) for field in fields(arrays)}
    present = {name: value for name, value in known.items() if value is not None}
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
