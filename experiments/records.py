"""The records of a directory: a line of JSON for each finished cell, in `records.jsonl`; and where checkpoints are.

The file is replaced as a whole or not at all, by one process at a time: that which has locked the directory.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bellnet._utils.files import write_files
from bellnet.errors import DataError

Record = dict[str, Any]


@dataclass(frozen=True)
class Records:
    """The records of a directory.

    Attributes:
        directory: The directory with the file `records.jsonl`.
    """

    directory: Path

    @property
    def path(self) -> Path:
        """The file."""
        return self.directory / "records.jsonl"

    def checkpoint(self, key: str) -> Path:
        """The file of the checkpoint of a cell."""
        return self.directory / "checkpoints" / f"{key}.ckpt"

    def read(self) -> dict[str, Record]:
        """The records by their keys; the last one counts if there are several."""
        found = {number: _parse(line) for number, line in enumerate(self._content().splitlines(), 1) if line.strip()}
        wrong = [number for number, record in found.items() if record is None]
        if wrong:
            what = f"line {wrong[0]} is not a record" if len(wrong) == 1 else f"lines {_listed(wrong)} are not records"
            raise DataError(
                f"{self.path}: {what}.\nDelete {'it' if len(wrong) == 1 else 'them'} and run the same command again."
            )
        return {record["key"]: record for record in found.values() if record is not None}

    def add(self, *records: Mapping[str, Any]) -> None:
        """Append records, all of them or none."""
        before = self._content()
        lines = "".join(json.dumps(record) + "\n" for record in records)
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
            write_files({self.path: before + b"\n" * (before[-1:] not in (b"", b"\n")) + lines.encode()})
        except OSError as reason:
            raise not_written(self.path, reason) from reason

    def _content(self) -> bytes:
        try:
            return self.path.read_bytes()
        except FileNotFoundError:
            return b""
        except OSError as reason:
            raise DataError(
                f"{self.path} cannot be read: {reason.strerror or reason}.\nFix that, or choose another directory."
            ) from reason


def not_written(path: Path, reason: OSError) -> DataError:
    """That a file of a run cannot be written, and how to go on."""
    return DataError(
        f"{path} cannot be written: {reason.strerror or reason}.\n"
        "What was done before is kept. Once that is fixed, the same command goes on from there."
    )


def _parse(line: bytes) -> Record | None:
    """The record of a line, or None."""
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) and isinstance(record.get("key"), str) else None


def _listed(numbers: list[int]) -> str:
    *most, last = map(str, numbers)
    return f"{', '.join(most)} and {last}"
