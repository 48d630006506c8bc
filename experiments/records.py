"""What was measured: one line of JSON for each epoch and one for each finished cell, in `records.jsonl`.

Records that are complete may be compressed to `records.jsonl.gz`, which is read and never written.

Lines are only ever appended, by one process at a time. Whatever happens while a line is written, the lines before it
stay readable; a torn last line is not a record, and is cut off before anything is appended after it.
"""

import gzip
import json
import os
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bellnet._utils.files import locked
from bellnet.errors import DataError

NAME = "records.jsonl"
ARCHIVE = "records.jsonl.gz"
LOCK = ".records.lock"
EPOCH, FINISHED = "epoch", "cell"
_BLOCK = 2**16


@dataclass(frozen=True)
class Records:
    """The records of a directory.

    Attributes:
        directory: Where the file `records.jsonl` is, or will be.
    """

    directory: Path

    @property
    def path(self) -> Path:
        """The file."""
        return self.directory / NAME

    def checkpoint(self, key: str) -> Path:
        """The file of the checkpoint of a cell."""
        return self.directory / "checkpoints" / f"{key}.ckpt"

    def append(self, record: Mapping[str, Any]) -> None:
        """Add a record, all of it or nothing. Several processes may do so at once."""
        self._add([record])

    def take(self, other: "Records") -> int:
        """Add all records of the cells that are finished there and not here; how many cells these are."""
        here = self.finished()
        wanted = other.finished().keys() - here.keys()
        self._add([record for record in other.read() if record["key"] in wanted])
        return len(wanted)

    def _add(self, records: Sequence[Mapping[str, Any]]) -> None:
        line = "".join(json.dumps(record, allow_nan=True) + "\n" for record in records).encode()
        with self._open(os.O_CREAT) as (file, locked):
            if locked:
                _cut(file)  # whoever has torn it is gone: nobody else is writing now
            before = os.lseek(file, 0, os.SEEK_END)
            try:
                while line:
                    line = line[os.write(file, line) :]
                os.fsync(file)
            except BaseException as reason:
                if locked and (line or isinstance(reason, OSError)):  # what is whole stays, whoever interrupts
                    os.ftruncate(file, before)
                raise

    def read(self) -> list[dict[str, Any]]:
        """All records, oldest first, without a torn last line; those of a compressed archive come first."""
        return [*_read(self.directory / ARCHIVE, gzip.open), *_read(self.path, open)]

    def repair(self) -> bool:
        """Cut off a torn last line; whether there was one."""
        if not self.path.exists():
            return False
        with self._open() as (file, _):
            return _cut(file)

    def finished(self) -> dict[str, dict[str, Any]]:
        """The last record of each finished cell, by key."""
        return {record["key"]: record for record in self.read() if record["kind"] == FINISHED}

    def epochs(self) -> dict[str, list[dict[str, Any]]]:
        """The epochs of each cell in order, by key; of an epoch that was run twice, the last run."""
        found: dict[str, dict[int, dict[str, Any]]] = {}
        for record in self.read():
            if record["kind"] == EPOCH:
                found.setdefault(record["key"], {})[record["epoch"]] = record
        return {key: [epochs[number] for number in sorted(epochs)] for key, epochs in found.items()}

    @contextmanager
    def _open(self, flags: int = 0) -> Iterator[tuple[int, bool]]:
        """The file, open at its end, and whether no other process writes to it; its errors in words."""
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
            with locked(self.directory / LOCK, wait=True) as is_locked:
                file = os.open(self.path, os.O_RDWR | os.O_APPEND | getattr(os, "O_BINARY", 0) | flags, 0o644)
                try:
                    yield file, is_locked
                finally:
                    os.close(file)
        except OSError as reason:
            raise not_written(self.path, reason) from reason


def not_written(path: Path, reason: OSError) -> DataError:
    """That a file of a run cannot be written, and what becomes of the run."""
    return DataError(
        f"{path} cannot be written: {reason.strerror or reason}.\n"
        "What was done before is kept. Once that is fixed, the same command goes on from there."
    )


def is_number(value: object) -> bool:
    """Whether a value of a record is a number, NaN and infinities included."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def listed(numbers: Sequence[int]) -> str:
    """Numbers as one says them: "1, 2 and 3"."""
    *most, last = map(str, numbers)
    return f"{', '.join(most)} and {last}" if most else last


def _read(path: Path, opener: Callable[..., Any]) -> list[dict[str, Any]]:
    """The records of a file, which may be missing."""
    try:
        with opener(path, "rb") as file:
            content = file.read()
    except FileNotFoundError:
        return []
    except (EOFError, OSError, zlib.error) as reason:
        raise DataError(
            f"{path} cannot be read: {getattr(reason, 'strerror', None) or reason}.\n"
            "Mend that, or choose another directory."
        ) from reason
    *lines, _ = content.split(b"\n")  # what has no line end is torn, or is just being written
    found = {number: _parse(line) for number, line in enumerate(lines, 1) if line.strip()}
    wrong = [number for number, record in found.items() if record is None]
    if wrong:
        what = f"line {wrong[0]} is not a record" if len(wrong) == 1 else f"lines {listed(wrong)} are not records"
        raise DataError(
            f"{path}: {what}.\nDelete {'it' if len(wrong) == 1 else 'them'} and run the same command again: "
            "what a cell that is not finished lacks then is run again; a finished one keeps its result, and curves "
            "and the best averaged epoch do without the line."
        )
    return [record for record in found.values() if record is not None]


def _parse(line: bytes) -> dict[str, Any] | None:
    """The record of a line; None if it is none."""
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(record, dict) or not isinstance(record.get("key"), str):
        return None
    if record.get("kind") == FINISHED:
        return record
    number = record.get("epoch")
    return record if record.get("kind") == EPOCH and type(number) is int and number >= 0 else None


def _cut(file: int) -> bool:
    """Cut off what stands after the last line end; whether there was anything."""
    size = os.lseek(file, 0, os.SEEK_END)
    end = size
    while end:
        start = max(end - _BLOCK, 0)
        os.lseek(file, start, os.SEEK_SET)
        whole = os.read(file, end - start).rfind(b"\n") + 1
        end = start + whole
        if whole:
            break
    if end < size:
        os.ftruncate(file, end)
    return end < size
