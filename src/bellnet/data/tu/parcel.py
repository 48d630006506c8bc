"""A data set on its way to another machine: one zip, its splits, and a digest of both under which it is kept there."""

import hashlib
import io
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from bellnet._utils.files import write_files
from bellnet.data.tu import cache
from bellnet.data.tu.files import Files, Zipped
from bellnet.data.tu.splits import find_splits
from bellnet.errors import DataError

FOLDER = "sent"


@dataclass(frozen=True)
class Parcel:
    """A data set with everything that `load` needs of it.

    Attributes:
        name: The name of the data set.
        zipped: The bytes of its zip.
        splits: The bytes of its published splits, if there are any.
    """

    name: str
    zipped: bytes
    splits: bytes | None

    @property
    def digest(self) -> str:
        """A digest of everything in it."""
        parts = (self.zipped, self.splits or b"")
        return hashlib.sha256("".join(hashlib.sha256(part).hexdigest() for part in parts).encode()).hexdigest()


def pack(files: Files) -> Parcel:
    """The files of a data set, as a parcel. The same files make the same parcel."""
    found = find_splits(files.name, files.place)
    try:
        zipped = files.place.read_bytes() if isinstance(files, Zipped) else _zip(files)
        splits = None if found is None else found.read_bytes()
    except OSError as reason:
        raise DataError(
            f"{files.place} cannot be read: {reason.strerror or reason}.\nMend that, or get the data set again."
        ) from reason
    return Parcel(files.name, zipped, splits)


def receive(name: str, digest: str, fetch: Callable[[], Parcel]) -> Path:
    """The folder of the cache that holds a data set, for `load`; it is fetched if it is not there.

    Args:
        name: The name of the data set.
        digest: Of its parcel.
        fetch: Gets the parcel.
    """
    folder = cache.default_folder() / FOLDER / f"{name}-{digest[:16]}"
    zipped = folder / f"{name}.zip"
    if not zipped.is_file():
        parcel = fetch()
        if (parcel.name, parcel.digest) != (name, digest):
            raise DataError(f"{name}: what has arrived has another digest than what was sent.\nSend it again.")
        splits = {} if parcel.splits is None else {folder / "splits" / f"{name}.json": parcel.splits}
        try:
            for path in (*splits, zipped):
                path.parent.mkdir(parents=True, exist_ok=True)
            # The zip comes last: where it is, everything is.
            write_files({**splits, zipped: parcel.zipped})
        except OSError as reason:
            raise DataError(
                f"{name} cannot be kept in {folder}: {reason.strerror or reason}.\n"
                "Name another folder with the environment variable BELLNET_CACHE."
            ) from reason
    return folder


def _zip(files: Files) -> bytes:
    """A folder as a zip. It has no dates, so that its digest depends on the files alone."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_STORED) as zipped:
        for path in sorted(files.place.glob(f"{files.name}_*.txt")):
            zipped.writestr(zipfile.ZipInfo(path.name), path.read_bytes())
    return content.getvalue()
