"""Where the files of a data set are: in a zip or in a folder. Nothing is unpacked."""

import hashlib
import lzma
import zipfile
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path, PurePosixPath
from typing import IO, TypeVar

from bellnet.errors import DataError

T = TypeVar("T")
_DAMAGE = (zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, OSError, NotImplementedError, RuntimeError)


class Files(ABC):
    """The files of one data set.

    Attributes:
        name: The name of the data set, with which all files begin.
        place: The zip or folder.
    """

    name: str
    place: Path

    @abstractmethod
    def has(self, ending: str) -> bool:
        """Whether there is a file of that ending, for instance "A"."""

    @abstractmethod
    def _open(self, ending: str) -> AbstractContextManager[IO[bytes]]:
        """Open a file that is there, for as long as the context lasts."""

    @abstractmethod
    def digest(self) -> str:
        """A digest of everything in it."""

    def where(self, ending: str) -> str:
        """How messages name a file."""
        return f"{self.place}: {self.name}_{ending}.txt"

    def read(self, ending: str, reader: Callable[[IO[bytes], str], T]) -> T:
        """What a reader makes of a file."""
        if not self.has(ending):
            raise DataError(f"{self.where(ending)} is missing.\nA data set needs it; get the data set again.")
        with _damage_named(self.where(ending)), self._open(ending) as stream:
            return reader(stream, self.where(ending))


class Zipped(Files):
    """A data set in a zip."""

    def __init__(self, place: Path, name: str | None) -> None:
        self.place = place
        with _damage_named(str(place)), zipfile.ZipFile(place) as zipped:
            members = zipped.namelist()
        self._members: dict[str, str] = {}
        for member in members:
            path = PurePosixPath(member.replace("\\", "/"))
            if path.is_absolute() or ".." in path.parts or ":" in path.parts[0]:
                raise DataError(
                    f"{place}: the member {member!r} would be written outside of the folder of the data set.\n"
                    "Do not trust this zip; get the data set from where it is published."
                )
            self._members.setdefault(path.name, member)
        self.name = name or _only_name(self._members, place)

    def has(self, ending: str) -> bool:
        """Whether there is a member of that ending."""
        return f"{self.name}_{ending}.txt" in self._members

    @contextmanager
    def _open(self, ending: str) -> Iterator[IO[bytes]]:
        with zipfile.ZipFile(self.place) as zipped, zipped.open(self._members[f"{self.name}_{ending}.txt"]) as stream:
            yield stream

    def digest(self) -> str:
        """A digest of the zip."""
        with self.place.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()


class Unpacked(Files):
    """A data set in a folder."""

    def __init__(self, place: Path, name: str | None) -> None:
        self.place = place
        self.name = name or _only_name([path.name for path in place.iterdir()], place)

    def _path(self, ending: str) -> Path:
        return self.place / f"{self.name}_{ending}.txt"

    def has(self, ending: str) -> bool:
        """Whether there is a file of that ending."""
        return self._path(ending).is_file()

    def _open(self, ending: str) -> AbstractContextManager[IO[bytes]]:
        return self._path(ending).open("rb")

    def digest(self) -> str:
        """A digest of all files that begin with the name."""
        whole = hashlib.sha256()
        for path in sorted(self.place.glob(f"{self.name}_*.txt")):
            with path.open("rb") as stream:
                whole.update(
                    f"{path.name}\0{hashlib.file_digest(stream, 'sha256').hexdigest()}\0".encode(
                        errors="surrogateescape"
                    )
                )
        return whole.hexdigest()


def find(name: str | None, data: Path) -> Files | None:
    """The files of a data set in a place: a zip, a folder of zips or of folders, or a folder of its own.

    Args:
        name: The name of the data set; None where there can be only one.
        data: Where to look.
    """
    if data.is_file():
        return Zipped(data, name)
    if name is None:
        return Unpacked(data, None)
    for folder in (data, data / name, data / "raw", data / name / "raw"):
        if (folder / f"{name}_A.txt").is_file():
            return Unpacked(folder, name)
    zipped = data / f"{name}.zip"
    return Zipped(zipped, name) if zipped.is_file() else None


def _only_name(files: list[str] | dict[str, str], place: Path) -> str:
    names = sorted(file.removesuffix("_A.txt") for file in files if file.endswith("_A.txt"))
    if len(names) != 1:
        raise DataError(
            f"{place}: expected the files of one data set, of which one is called NAME_A.txt; there are {len(names)} "
            f"such files{': ' + ', '.join(names[:5]) if names else ''}.\nName the data set: tu.load(name, data)."
        )
    return names[0]


@contextmanager
def _damage_named(where: str) -> Iterator[None]:
    try:
        yield
    except _DAMAGE as reason:
        raise DataError(
            f"{where} cannot be read: {str(reason) or type(reason).__name__}.\nIt is cut off or damaged; get it again."
        ) from reason
