"""What was measured: one line of JSON for each epoch and one for each finished cell, in `records.jsonl`.

Lines are only ever appended, each with one write. Whatever happens while a line is written, the lines before it stay
readable; a torn last line is not a record, and is cut off before anything is appended after it.
"""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bellnet.errors import DataError

NAME = "records.jsonl"
EPOCH, FINISHED = "epoch", "cell"


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

    def append(self, record: Mapping[str, Any]) -> None:
        """Add a record. Several processes may do so at once: a line is one write at the end of the file."""
        line = json.dumps(record, allow_nan=True) + "\n"
        self.directory.mkdir(parents=True, exist_ok=True)
        file = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        try:
            os.write(file, line.encode())
            os.fsync(file)
        finally:
            os.close(file)

    def read(self) -> list[dict[str, Any]]:
        """All records, oldest first, without a torn last line."""
        if not self.path.exists():
            return []
        found = []
        lines = self.path.read_bytes().split(b"\n")
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            try:
                record = json.loads(line)
            except ValueError as reason:
                if number == len(lines):
                    break  # no line end: the writer was stopped here
                raise DataError(
                    f"{self.path}: line {number} is not a record.\nDelete that line; its epoch or cell is run again."
                ) from reason
            if number < len(lines):  # without its line end even a readable line is about to be cut off
                found.append(record)
        return found

    def repair(self) -> bool:
        """Cut off a torn last line; whether there was one."""
        if not self.path.exists():
            return False
        content = self.path.read_bytes()
        whole = content.rfind(b"\n") + 1
        if whole == len(content):
            return False
        os.truncate(self.path, whole)
        return True

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
