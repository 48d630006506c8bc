"""Options and classes as JSON, and back: numbers, strings, lists of those; nothing that could run."""

from collections.abc import Mapping
from contextlib import suppress
from itertools import pairwise
from typing import Any

import numpy as np

from bellnet.errors import DataError
from bellnet.estimator.labels import Array

MOST_BYTES = 2**28
"""The most memory that an array of classes from a file may take: each is as long as the longest."""
NUMBERS = ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32", "float64")


def options_to_json(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options of an estimator; a random state, which has no short form, becomes None."""
    plain: dict[str, Any] = {}
    for name, value in options.items():
        if isinstance(value, Mapping):
            plain[name] = {"pairs": [[_value(key), _value(weight)] for key, weight in value.items()]}
        elif isinstance(value, np.random.RandomState | np.random.Generator):
            plain[name] = None
        elif name == "device":
            plain[name] = str(value)
        elif isinstance(value, list | tuple):
            plain[name] = [_value(item) for item in value]
        else:
            plain[name] = _value(value)
    return plain


def options_from_json(stored: Any) -> dict[str, Any]:
    """What `options_to_json` wrote; lists become tuples."""
    if not isinstance(stored, dict):
        raise DataError(f"its options must be named, not {stored!r}.")
    options: dict[str, Any] = {}
    for name, value in stored.items():
        if isinstance(value, dict):
            options[name] = _pairs(name, value)
        else:
            options[name] = tuple(value) if isinstance(value, list) else value
    return options


def _pairs(name: str, stored: dict[str, Any]) -> dict[Any, Any]:
    pairs = stored.get("pairs")
    if stored.keys() != {"pairs"} or not isinstance(pairs, list) or not all(map(_is_pair, pairs)):
        raise DataError(f'{name} must be {{"pairs": [[name, number], ...]}}, not {stored!r}.')
    return dict(pairs)


def _is_pair(stored: Any) -> bool:
    return isinstance(stored, list) and len(stored) == 2 and not any(isinstance(item, list | dict) for item in stored)


def classes_to_json(classes: Array) -> dict[str, Any]:
    """Classes and their type: numbers of any width, strings, or strings as objects."""
    strings = all(isinstance(name, str) for name in classes.tolist())
    kind = "object" if classes.dtype == object else "str" if strings else classes.dtype.name
    if kind not in (*NUMBERS, "str") and not (kind == "object" and strings):
        raise DataError(
            f"save(path): classes in a file must be numbers of 8 to 64 bits or strings, but these are {classes.dtype}, "
            f"the first is {classes[0]!r}.\nFit with strings: y = [str(label) for label in y]."
        )
    return {"kind": kind, "names": classes.tolist()}


def classes_from_json(stored: Any) -> Array:
    """What `classes_to_json` wrote."""
    kind, names = stored["kind"], stored["names"]
    if kind not in (*NUMBERS, "str", "object") or not isinstance(names, list) or len(names) < 2:
        raise DataError("its classes must be a list of at least two numbers or strings.")
    if kind in ("str", "object") and not all(isinstance(name, str) for name in names):
        raise DataError("its classes must be strings.")
    if kind == "str" and (needed := 4 * len(names) * max(map(len, names))) > MOST_BYTES:
        raise DataError(f"its classes would take {needed / 1e9:.0f} GB as an array.")
    found = _numbers(kind, names) if kind in NUMBERS else np.array(names, dtype=None if kind == "str" else kind)
    if any(one >= other for one, other in pairwise(found.tolist())):
        raise DataError("its classes must be sorted, and each there once.")
    return found


def _numbers(kind: str, names: list[Any]) -> Array:
    """Classes that are numbers, none of which changes when it becomes one of the kind."""
    types = (bool,) if kind == "bool" else (int, float) if kind.startswith("float") else (int,)
    if all(type(name) in types for name in names):
        with suppress(OverflowError), np.errstate(over="ignore"):
            found = np.array(names, dtype=kind)
            if np.isfinite(found).all() and found.tolist() == names:
                return found
    raise DataError(f"its classes must be numbers of type {kind}.")


def _value(value: Any) -> Any:
    value = value.item() if isinstance(value, np.generic) else value
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise DataError(f"save(path): {value!r} cannot be written to a file; options must be numbers or strings.")
