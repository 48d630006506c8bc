"""An encoding as JSON text, and back: also from texts of earlier versions."""

import json
from dataclasses import asdict, fields
from typing import TYPE_CHECKING, Any

from bellnet.data.columns import ROLES, Columns
from bellnet.errors import DataError
from bellnet.json_text import read_json

if TYPE_CHECKING:
    from bellnet.data.encode import Encoding

FORMAT = "bellnet encoding"
VERSION = 5
NEW_FIELDS = {2: {"edge_labels", "columns", "sizes", "degree_knots"}, 3: {"sizes", "degree_knots"}, 4: {"degree_knots"}}
"""What earlier versions, which can still be read, did not know: labels of edges and names, sizes of graphs, knots."""


def to_json(encoding: "Encoding") -> str:
    """The text that `fields_from_json` reads."""
    return json.dumps({"format": FORMAT, "version": VERSION, **asdict(encoding)})


def fields_from_json(text: str, kind: "type[Encoding]") -> dict[str, Any]:
    """The fields of the encoding that `to_json` wrote, not yet checked; those that it did not know are left out."""
    stored = _read(text)
    if (version := stored.pop("version", None)) not in (*NEW_FIELDS, VERSION):
        raise DataError(
            f"Encoding.from_json(text): this is version {version!r}, but here only versions {min(NEW_FIELDS)} to "
            f"{VERSION} can be read.\nUpdate bellnet, or write it again."
        )
    expected = {field.name for field in fields(kind)} - NEW_FIELDS.get(version, set())
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
