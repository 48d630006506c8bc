"""The fields of an `Encoding`: their validation, and the encoding as JSON text."""

import json
import math
import sys
from dataclasses import asdict, fields
from itertools import pairwise
from numbers import Integral
from typing import TYPE_CHECKING, Any

from bellnet._utils.json_text import read_json
from bellnet.data.encoding.channels import label_columns
from bellnet.data.graph import FIELDS, ROLES, Columns
from bellnet.errors import DataError, OptionError, as_written

if TYPE_CHECKING:
    from bellnet.data.encoding.encode import Encoding

ADJACENCIES = {
    "plain": ("adjacency",),
    "normalized": ("normalized adjacency",),
    "both": ("adjacency", "normalized adjacency"),
}
"""The names of the adjacency channels of each option."""
UNKNOWN = ("zero", "error")
FORMAT = "bellnet encoding"
VERSION = 1


def check_fields(encoding: "Encoding") -> None:
    """Raises an `OptionError` if a field of an encoding is not valid; it may come from a file."""
    if encoding.adjacency not in ADJACENCIES:
        raise OptionError(
            f"Encoding: adjacency must be one of {', '.join(map(repr, ADJACENCIES))}, not {encoding.adjacency!r}."
        )
    if encoding.unknown not in UNKNOWN:
        raise OptionError(f"Encoding: unknown must be 'zero' or 'error', not {encoding.unknown!r}.")
    for name in ("edge_features", "node_features"):
        value = getattr(encoding, name)
        if type(value) is not int or value < 0:
            raise OptionError(f"Encoding: {name} must be a whole number from 0 up, not {value!r}.")
    for name in ("node_labels", "edge_labels"):
        _check_labels(name, getattr(encoding, name))
    if type(encoding.adjacency_in_labels) is not bool:
        raise OptionError(f"Encoding: adjacency_in_labels must be True or False, not {encoding.adjacency_in_labels!r}.")
    for name in ("degrees", "size_feature"):
        if (scale := getattr(encoding, name)) is not None and not _is_scale(scale):
            raise OptionError(
                f"Encoding: {name} must be None or a tuple of a mean and a positive deviation, not {as_written(scale)}."
            )
    if not _are_bins(encoding.degree_bins):
        raise OptionError(
            "Encoding: degree_bins must be a tuple of ascending numbers from 0 up, at least two or none, not "
            f"{as_written(encoding.degree_bins)}."
        )
    _check_columns(encoding)


def is_bin_count(value: object) -> bool:
    """Whether this is a valid maximum number of degree bins."""
    return type(value) is not bool and isinstance(value, Integral) and (int(value) == 0 or int(value) >= 2)


def _check_columns(encoding: "Encoding") -> None:
    columns: object = encoding.columns
    if not isinstance(columns, Columns) or not _is_texts(columns.texts):
        raise OptionError(f"Encoding: columns must be Columns with the texts of labels, not {columns!r}.")
    n_labels = len(label_columns(encoding.node_labels)), len(label_columns(encoding.edge_labels))
    for role, width in zip(ROLES, (encoding.node_features, encoding.edge_features, *n_labels), strict=True):
        names = getattr(columns, role)
        if names is not None and not (_is_strings(names) and len(names) == width):
            raise OptionError(
                f"Encoding: columns must name each of the {width} columns of {FIELDS[role]}, not {names!r}."
            )


def _check_labels(name: str, labels: object) -> None:
    parts = labels if isinstance(labels, tuple) and labels and isinstance(labels[0], tuple) else (labels,)
    for part in parts:
        if not isinstance(part, tuple) or not all(map(_is_label, part)):
            raise OptionError(f"Encoding: {name} must be a tuple of whole numbers of 64 bits, not {labels!r}.")
        if list(part) != sorted(set(part)):
            raise OptionError(f"Encoding: {name} must be sorted, each once, not {labels!r}.")
    if len(parts) > 1 and not all(parts):
        raise OptionError(f"Encoding: each column of {name} must have a label, not {labels!r}.")


def _is_strings(value: object) -> bool:
    return isinstance(value, tuple) and all(isinstance(text, str) for text in value)


def _is_texts(value: object) -> bool:
    """Whether this is a tuple of ascending labels, each with a text."""
    if not isinstance(value, tuple) or not all(isinstance(pair, tuple) and len(pair) == 2 for pair in value):
        return False
    numbers = [number for number, _ in value]
    return (
        all(map(_is_label, numbers))
        and all(isinstance(text, str) for _, text in value)
        and numbers == sorted(set(numbers))
    )


def _is_label(value: object) -> bool:
    return type(value) is int and -(2**63) <= value < 2**63


def _is_scale(value: object) -> bool:
    return isinstance(value, tuple) and len(value) == 2 and all(map(_is_finite, value)) and value[1] > 0


def _is_finite(value: object) -> bool:
    """Whether this is a finite number in float64."""
    return isinstance(value, int | float) and type(value) is not bool and abs(value) <= sys.float_info.max


def _are_bins(value: object) -> bool:
    if not isinstance(value, tuple) or len(value) == 1:
        return False
    if not all(_is_finite(number) and number >= 0 for number in value):
        return False
    positions = [math.log1p(number) for number in value]  # degrees are interpolated between them
    return all(one < other for one, other in pairwise(positions))


def to_json(encoding: "Encoding") -> str:
    """The text that `fields_from_json` reads."""
    return json.dumps({"format": FORMAT, "version": VERSION, **asdict(encoding)})


def fields_from_json(text: str, kind: "type[Encoding]") -> dict[str, Any]:
    """The fields of the encoding that `to_json` wrote, not yet validated."""
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
