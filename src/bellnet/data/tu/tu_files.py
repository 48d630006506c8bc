"""The files of a data set of the TU layout, in a zip or in a folder. Nothing is unpacked to disk."""

import hashlib
import io
import lzma
import os
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath
from typing import IO, TypeVar

from bellnet.data.tu.unzip import Bound, unpack
from bellnet.errors import DataError

T = TypeVar("T")
_DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    struct.error,
    UnicodeDecodeError,
    EOFError,
    OSError,
    RuntimeError,
)
_END = struct.Struct("<10xH10x")
_LONGEST_COMMENT = 2**16
_COUNTED = 2**16 - 1  # this number of members, or that of the zip64 record if there is one
_END_64 = struct.Struct("<4s28xQ16x4s16x")  # the zip64 record and its locator, before the end

_ENDINGS = ("_A", "_graph_indicator", "_labels", "_attributes")
_ARCHIVES = (b"\x1f\x8b", b"BZh", b"\xfd7zXZ", b"7z\xbc\xaf", b"Rar!")


@dataclass(frozen=True)
class Files:
    """The files of one data set.

    Attributes:
        name: The name of the data set, with which all files begin.
        path: The zip or folder.
        members: For each name of a file a function that returns its content in pieces.
    """

    name: str
    path: Path
    members: Mapping[str, Callable[[], Iterator[bytes]]]

    @classmethod
    def in_zip(cls, source: Path, name: str | None, bound: Bound) -> "Files":
        """The files in a zip; `bound` limits what a member may unpack to."""
        found: dict[PurePosixPath, zipfile.ZipInfo] = {}
        for path, member in _members(source):
            if path in found:
                raise _twice(source, member, found[path])
            found[path] = member
        name = name or _only_name({path.name for path in found}, source)
        by_name: dict[str, zipfile.ZipInfo] = {}
        for path, member in found.items():
            if path.name.startswith(f"{name}_") and path.name in by_name:
                raise _twice(source, member, by_name[path.name])
            by_name[path.name] = member
        return cls(
            name, source, {file: partial(_unpacked, source, file, member, bound) for file, member in by_name.items()}
        )

    @classmethod
    def in_folder(cls, source: Path, name: str | None) -> "Files":
        """The files in a folder."""
        members = {path.name: partial(_content, path) for path in sorted(source.iterdir()) if path.is_file()}
        return cls(name or _only_name(members, source), source, members)

    def has(self, ending: str) -> bool:
        """Whether there is a file of that ending, for instance "A"."""
        return f"{self.name}_{ending}.txt" in self.members

    def where(self, ending: str) -> str:
        """A file in messages."""
        return f"{self.path}: {self.name}_{ending}.txt"

    def read(self, ending: str, reader: Callable[[Iterator[bytes], str], T]) -> T:
        """What `reader` returns for the content of a file in pieces, and its position in messages."""
        if not self.has(ending):
            raise DataError(f"{self.where(ending)} is missing.\nA data set needs it; get the data set again.")
        with _damage_named(self.where(ending)):
            return reader(self.members[f"{self.name}_{ending}.txt"](), self.where(ending))

    def digest(self) -> str:
        """A digest of the zip, or of all files of the folder that begin with the name."""
        if self.path.is_file():
            return file_digest(self.path)
        lines = "".join(f"{path.name}\0{file_digest(path)}\0" for path in self._paths())
        return hashlib.sha256(lines.encode(errors="surrogateescape")).hexdigest()

    def as_zip(self) -> bytes:
        """All files as the bytes of a zip without dates, which depend on the files alone."""
        if self.path.is_file():
            return self.path.read_bytes()
        content = io.BytesIO()
        with zipfile.ZipFile(content, "w", zipfile.ZIP_STORED) as zipped:
            for path in self._paths():
                zipped.writestr(zipfile.ZipInfo(path.name), path.read_bytes())
        return content.getvalue()

    def _paths(self) -> list[Path]:
        return [self.path / file for file in self.members if file.startswith(f"{self.name}_") and file.endswith(".txt")]


def _unpacked(source: Path, name: str, member: zipfile.ZipInfo, bound: Bound) -> Iterator[bytes]:
    with source.open("rb") as file:
        bound.check(member, os.fstat(file.fileno()).st_size, f"{source}: {name}")
        yield from unpack(file, member, f"{source}: {name}")


def _content(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        yield from iter(partial(file.read, 2**18), b"")


def file_digest(file: Path) -> str:
    """The SHA-256 of a file."""
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _members(source: Path) -> Iterator[tuple[PurePosixPath, zipfile.ZipInfo]]:
    """The files in a zip, each with a valid header.

    A data set may lack files, so a missing member must not be the result of damage: each member has its name in its
    header as well, and the end of the zip states the number of members.
    """
    with _damage_named(str(source)), source.open("rb") as file, zipfile.ZipFile(file) as zipped:
        members, expected = zipped.infolist(), _count(file)
        if len(members) != expected:
            raise DataError(
                f"{source} cannot be read: of {expected} members its directory has {len(members)}.\n"
                "It is cut off or damaged; get it again."
            )
        for member in members:
            path = PurePosixPath(member.filename.replace("\\", "/"))
            if path.is_absolute() or ".." in path.parts or ":" in "".join(path.parts[:1]):
                raise DataError(
                    f"{source}: the member {member.filename!r} would be written outside the folder of the data set.\n"
                    "Do not trust this zip; get the data set from where it is published."
                )
            zipped.open(member).close()
            if not member.is_dir():
                yield path, member


def _count(file: IO[bytes]) -> int:
    """The number of members that the records at the end of a zip state; only a comment may follow them."""
    size = file.seek(0, io.SEEK_END)
    file.seek(max(0, size - _END_64.size - _END.size - _LONGEST_COMMENT))
    end = file.read()
    at = end.rindex(b"PK\5\6")
    (count,) = _END.unpack_from(end, at)
    if count == _COUNTED and at >= _END_64.size:
        record, long_count, locator = _END_64.unpack_from(end, at - _END_64.size)
        if (record, locator) == (b"PK\6\6", b"PK\6\7"):
            return int(long_count)
    return int(count)


def _twice(source: Path, second: zipfile.ZipInfo, first: zipfile.ZipInfo) -> DataError:
    also = "" if first.filename == second.filename else f", also as {first.filename!r}"
    return DataError(
        f"{source}: the member {second.filename!r} occurs twice{also}.\n"
        "It is ambiguous; get the data set from where it is published."
    )


def find(name: str | None, data: Path, bound: Bound) -> Files | None:
    """The files of a data set in a zip, a folder of zips or of folders, or an unpacked folder; None if it has none.

    Without a name it is the only one, or the one that has the name of the folder.
    """
    if data.is_file():
        _check_zip(data)
        return Files.in_zip(data, name, bound)
    if name is None:
        return find(data.resolve().name, data, bound) or Files.in_folder(data, None)
    for folder in (data, data / name, data / "raw", data / name / "raw"):
        if (folder / f"{name}_A.txt").is_file():
            return Files.in_folder(folder, name)
    zipped = data / f"{name}.zip"
    return Files.in_zip(zipped, name, bound) if zipped.is_file() else None


def names_in(data: Path) -> list[str]:
    """The names that `find` finds in a folder."""
    zips = {file.stem for file in data.glob("*.zip")}
    tables = (file for pattern in ("", "*/", "raw/", "*/raw/") for file in data.glob(f"{pattern}*_A.txt"))
    return sorted(zips | {file.name.removesuffix("_A.txt") for file in tables})


def _check_zip(file: Path) -> None:
    """Raises a `DataError` if a file is no zip, not even a truncated one."""
    with file.open("rb") as stream:
        start = stream.read(2**12)
    if start.startswith(b"PK") or zipfile.is_zipfile(file):
        return
    raise DataError(
        f"{file} is not a zip; it seems to be {_kind(file, start)}.\n"
        "expected a zip or a folder of the TU layout (NAME_A.txt, NAME_graph_indicator.txt, ...), or a folder of "
        "GraphML files with a table labels.csv.\n"
        "In Python, bellnet.data.graphml.load reads such folders, and bellnet.data.from_tables reads tables of nodes "
        "and edges."
    )


def _kind(file: Path, start: bytes) -> str:
    """The kind of a file, guessed from its name and its first bytes."""
    ending = file.suffix.lower()
    kinds = (
        (not start, "an empty file"),
        (ending == ".graphml" or b"<graphml" in start, "a GraphML file"),
        (file.stem.endswith(_ENDINGS) and ending == ".txt", "one file of the TU layout"),
        (ending in (".csv", ".tsv"), "a table of text (CSV)"),
        (ending == ".json", "a JSON file"),
        (start.startswith(_ARCHIVES), "an archive of another kind"),
        (b"\0" not in start, "a text file"),
    )
    return next((kind for fits, kind in kinds if fits), "a binary file")


def _only_name(files: Iterable[str], source: Path) -> str:
    names = sorted(file.removesuffix("_A.txt") for file in files if file.endswith("_A.txt"))
    if len(names) != 1:
        raise DataError(
            f"{source}: expected the files of one data set, of which one is called NAME_A.txt; there are {len(names)} "
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
