"""Cases of mistakes, and the text files with the message of each.

A case is a call that must raise a `BellnetError`; its name says what the user did. An entry of a snapshot is the line
`== name`, the class of the error and its message. `pytest --update-messages tests/messages` rewrites the snapshots.
"""

import inspect
import os
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from unittest.mock import patch

import torch

from bellnet.errors import BellnetError
from tests.messages.sites import Site, site_of

SNAPSHOTS = Path(__file__).parent / "snapshots"
AREAS = {
    name: import_module(f"tests.messages.cases.{name}").CASES
    for name in ("specs", "layers", "tensors", "several", "data", "estimator", "cli", "testing")
}


@dataclass(frozen=True)
class Outcome:
    """What a case raised: the class of the error, its message, and the raise statement of the library."""

    error: type[Exception] | None
    message: str
    site: Site | None = None

    def __str__(self) -> str:
        return f"{self.error.__name__}: {self.message}" if self.error else self.message


def outcome_of(call: Callable[..., object], folder: Path, sites: Sequence[Site] = ()) -> Outcome:
    """Runs a case; one with the argument `folder` gets an empty one, which messages show as FOLDER."""
    folder.mkdir()
    environment = {name: value for name, value in os.environ.items() if name != "BELLNET_DATA"}
    torch.manual_seed(0)
    with patch.dict(os.environ, {**environment, "BELLNET_CACHE": str(folder / "cache")}, clear=True):
        try:
            call(folder) if "folder" in inspect.signature(call).parameters else call()
        except BellnetError as error:
            return Outcome(type(error), str(error).replace(str(folder), "FOLDER"), site_of(error.__traceback__, sites))
        except Exception as error:
            return Outcome(None, "".join(traceback.format_exception(error)))
    return Outcome(None, "nothing was raised")


def read(file: Path) -> dict[str, str]:
    """The entries of a snapshot."""
    parts = f"\n{file.read_text(encoding='utf-8')}".split("\n== ")[1:]
    return {name: text.strip("\n") for name, _, text in (part.partition("\n") for part in parts)}


def write(file: Path, entries: Mapping[str, str]) -> None:
    """Replaces a snapshot."""
    file.write_text("\n".join(f"== {name}\n{text}\n" for name, text in entries.items()), encoding="utf-8")


def differences(found: Mapping[str, str], stored: Mapping[str, str]) -> list[str]:
    """Cases whose message is not that of the snapshot, cases without an entry, and entries without a case."""
    return [
        *(f"{name!r} has no entry; it raises\n{found[name]}" for name in found if name not in stored),
        *(f"{name!r} is an entry of no case" for name in stored if name not in found),
        *(
            f"{name!r} raises\n{text}\n\nbut its entry is\n{stored[name]}"
            for name, text in found.items()
            if stored.get(name, text) != text
        ),
    ]
