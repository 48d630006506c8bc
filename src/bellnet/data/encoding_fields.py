"""What the fields of an encoding may be: they come from a fit, from a file, or from whoever makes one by hand."""

import math
import sys
from itertools import pairwise
from numbers import Integral
from typing import TYPE_CHECKING

from bellnet.data.columns import ROLES, Columns
from bellnet.data.rows import apart
from bellnet.data.select import FIELDS
from bellnet.errors import OptionError, as_written

if TYPE_CHECKING:
    from bellnet.data.encode import Encoding

ADJACENCIES = {
    "plain": ("adjacency",),
    "normalized": ("normalized adjacency",),
    "both": ("adjacency", "normalized adjacency"),
}
"""The channels of each way to show which nodes are joined."""
UNKNOWN = ("zero", "error")


def check_fields(encoding: "Encoding") -> None:
    """Refuse an encoding of which a field is not what it must be."""
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
    if not _is_knots(encoding.degree_bins):
        raise OptionError(
            "Encoding: degree_bins must be a tuple of ascending numbers from 0 up, at least two or none, not "
            f"{as_written(encoding.degree_bins)}."
        )
    _check_columns(encoding)


def is_number_of_knots(value: object) -> bool:
    """Whether so many degrees can become channels of their own."""
    if type(value) is bool or not isinstance(value, Integral):
        return False
    return int(value) == 0 or int(value) >= 2


def _check_columns(encoding: "Encoding") -> None:
    columns: object = encoding.columns
    if not isinstance(columns, Columns) or not _is_texts(columns.texts):
        raise OptionError(f"Encoding: columns must be Columns with the texts of labels, not {columns!r}.")
    n_labels = len(apart(encoding.node_labels)), len(apart(encoding.edge_labels))
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
    """Whether these are labels, ascending, each with a text."""
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
    """Whether this is a number of 64 bits; integers that are no float64 are not."""
    return isinstance(value, int | float) and type(value) is not bool and abs(value) <= sys.float_info.max


def _is_knots(value: object) -> bool:
    if (
        not isinstance(value, tuple)
        or len(value) == 1
        or not all(_is_finite(number) and number >= 0 for number in value)
    ):
        return False
    places = [math.log1p(number) for number in value]  # between which degrees are shared
    return all(one < other for one, other in pairwise(places))
