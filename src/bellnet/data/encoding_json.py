"""An encoding as JSON text, and back."""

import json
from dataclasses import asdict, fields
from typing import TYPE_CHECKING, Any

from bellnet._utils.json_text import read_json
from bellnet.data.columns import ROLES, Columns
from bellnet.errors import DataError

if TYPE_CHECKING:
    from bellnet.data.encode import Encoding

FORMAT = "bellnet encoding"
VERSION = 1


def to_json(encoding: "Encoding") -> str:
    """The text that `fields_from_json` reads."""
    return json.dumps({"format": FORMAT, "version": VERSION, **asdict(encoding)})


def fields_from_json(text: str, kind: "type[Encoding]") -> dict[str, Any]:
    """The fields of the encoding that `to_json` wrote, not yet checked."""
    stored = _read(text)
    version = stored.pop("version", None)
    if type(version) is not int or version != VERSION:
        raise DataError(
            f"Encoding.from_json(text): expected format version {VERSION}, got version {version!r}.\n"
            "Use the version of bellnet that wrote it, or write it again."
        )
    expected = {field.name for field in fields(kind)}
    if stored.keys() != expected:
        raise DataError(
            f"Encoding.from_json(text): expected the fields {', '.join(sorted(expected))}; came "
            f"{', '.join(sorted(stored)) or 'none'}."
        )
    return {name: _columns(value) if name == "columns" else _with_tuples(value) for name, value in stored.items()}


def _read(text: str) -> dict[str, Any]:
    try:
        stored = read_json(text)
    except DataError as reason:
        raise DataError(f"Encoding.from_json(text): {reason}") from reason
    if not isinstance(stored, dict) or stored.pop("format", None) != FORMAT:
        raise DataError('Encoding.from_json(text): this is no encoding; "format" must be "bellnet encoding".')
    return stored


def _columns(stored: Any) -> Columns:
    if not isinstance(stored, dict) or stored.keys() != {*ROLES, "texts"}:
        raise DataError(f"Encoding.from_json(text): columns must be {', '.join((*ROLES, 'texts'))}, not {stored!r}.")
    return Columns(**{name: _with_tuples(value) for name, value in stored.items()})


def _with_tuples(value: Any) -> Any:
    return tuple(map(_with_tuples, value)) if isinstance(value, list) else value
