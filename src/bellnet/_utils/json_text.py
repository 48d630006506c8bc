"""JSON of files from elsewhere, read with bounds on its numbers and its nesting.

Python reads integers of any size and the words NaN and Infinity, and nests as deeply as its stack allows. Each number
is checked here, before any field is read, so that code that uses it cannot overflow.
"""

import json
import math
from typing import Any

from bellnet.errors import DataError

LEAST, GREATEST = -(2**63), 2**64 - 1
"""The integers of signed and of unsigned 64 bits."""
DEEPEST = 32
"""Maximum nesting; files of bellnet have less."""
_OUT_OF_RANGE = object()
"""Stands for an integer that is out of range until the field that holds it is known."""


def read_json(text: str, *, non_finite: str | None = None) -> Any:
    """The value of a JSON text; a `DataError` that names the field of a number that is out of range.

    Args:
        text: The JSON.
        non_finite: A field of the outermost object below which floats may be NaN or infinite.
    """
    try:
        value = json.loads(text, parse_int=_integer)
    except (TypeError, ValueError) as reason:
        raise DataError(f"this is not JSON: {reason}.") from reason
    except RecursionError as reason:
        raise DataError("this is JSON nested too deeply to be read.") from reason
    _check(value, "", 0, non_finite)
    return value


def _integer(text: str) -> Any:
    if len(text) > len(str(LEAST)):  # Python refuses to read integers of thousands of digits
        return _OUT_OF_RANGE
    number = int(text)
    return number if LEAST <= number <= GREATEST else _OUT_OF_RANGE


def _check(value: Any, field: str, depth: int, non_finite: str | None) -> None:
    if depth > DEEPEST:
        raise DataError("this is JSON nested too deeply to be read.")
    if isinstance(value, dict):
        for name, item in value.items():
            _check(item, f"{field}.{name}" if field else name, depth + 1, non_finite)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            _check(item, f"{field}[{index}]", depth + 1, non_finite)
    elif value is _OUT_OF_RANGE:
        raise DataError(f"{field} must be an integer of at most 64 bits; it is larger.")
    elif isinstance(value, float) and not math.isfinite(value) and field.partition("[")[0] != non_finite:
        raise DataError(f"{field} must be a finite number of 64 bits, not {value!r}.")
