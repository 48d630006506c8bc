"""Columns of numbers in a text file, read a block at a time, so that a large file needs little memory.

A good file is read by numpy in one go for each block. Only where something is wrong are lines looked at one by one,
to say which.
"""

import re
import warnings
from collections.abc import Iterator
from typing import IO, TYPE_CHECKING, Any

from bellnet.errors import DataError

if TYPE_CHECKING:
    import numpy as np

BLOCK = 2**23
_SEPARATORS = b" ,\t\r\n"
_WHOLE = b"+-0123456789"
_REAL = _WHOLE + b".eE"
_WHOLE_FORM = re.compile(r"\s*[+-]?[0-9]+\s*")
_REAL_FORM = re.compile(r"\s*[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?\s*")


def read_columns(
    stream: IO[bytes],
    where: str,
    *,
    width: int | None = None,
    real: bool = False,
    within: tuple[int, int] | None = None,
) -> "np.ndarray[Any, Any]":
    """All numbers of a file, one row for each line.

    Args:
        stream: The file.
        where: How messages name it.
        width: How many numbers a line holds; if None, as many as the first.
        real: Whether numbers may have a fraction.
        within: The least and the largest number allowed, which fit into 32 bits; so much is kept of each.
    """
    import numpy as np

    parts = []
    line = 1
    for block in _blocks(stream):
        values = _parse(block, where, line, width=width, real=real)
        width = values.shape[1]
        if within is not None:
            _check_range(values, where, line, within)
        line += len(values)
        parts.append(values if within is None else values.astype(np.int32))
    return np.concatenate(parts) if parts else np.zeros((0, width or 0), np.float64 if real else np.int64)


def _check_range(values: "np.ndarray[Any, Any]", where: str, line: int, within: tuple[int, int]) -> None:
    outside = ((values < within[0]) | (values > within[1])).any(1)
    if outside.any():
        row = int(outside.argmax())
        raise DataError(
            f"{where}, line {line + row}: expected numbers from {within[0]} to {within[1]}, came "
            f"{', '.join(map(str, values[row].tolist()))}.\nThe file does not fit the others; get the data set again."
        )


def _blocks(stream: IO[bytes]) -> Iterator[bytes]:
    """Blocks of whole lines; white space at the end of the file is left out."""
    rest = b""
    while block := stream.read(BLOCK):
        block = rest + block
        end = block.rstrip().rfind(b"\n") + 1
        rest = block[end:]
        if end:
            yield block[:end]
    if rest.strip():
        yield rest.rstrip() + b"\n"


def _parse(block: bytes, where: str, line: int, *, width: int | None, real: bool) -> "np.ndarray[Any, Any]":
    import numpy as np

    characters = np.frombuffer(block, np.uint8)
    separates, allowed = np.zeros((2, 256), bool)
    separates[list(_SEPARATORS)] = True
    allowed[list(_SEPARATORS + (_REAL if real else _WHOLE))] = True
    inside = ~separates[characters]
    begins = np.flatnonzero(inside & np.concatenate([[True], ~inside[:-1]]))
    ends = np.flatnonzero(characters == ord("\n"))
    commas = np.flatnonzero(characters == ord(","))
    counts = np.diff(np.searchsorted(begins, ends), prepend=0)
    separated = np.diff(np.searchsorted(commas, ends), prepend=0)
    width = int(counts[0]) if width is None else width
    good = allowed[characters].all() and width > 0 and (counts == width).all()
    good = good and ((separated == width - 1) | (separated == 0)).all()
    values = _numbers(block, real) if good else None
    if values is None or values.size != len(begins):
        raise _explain(block, where, line, width=max(width, 1), real=real)
    return values.reshape(-1, width)


def _numbers(block: bytes, real: bool) -> "np.ndarray[Any, Any] | None":
    import numpy as np

    with warnings.catch_warnings():
        warnings.simplefilter("error")  # numpy only warns of what is no number
        try:
            return np.fromstring(block.replace(b",", b" "), np.float64 if real else np.int64, sep=" ")
        except (DeprecationWarning, ValueError):
            return None


def _explain(block: bytes, where: str, line: int, *, width: int, real: bool) -> DataError:
    """The error for the first line of a block that is wrong."""
    form = _REAL_FORM if real else _WHOLE_FORM
    lines = block.decode("utf-8", "replace").split("\n")
    good = [_is_row(text, form, width) for text in lines]
    place = good.index(False)  # at the latest the empty one after the last
    text = lines[place].strip()
    kind = ("number" if real else "whole number") + ("s" if width > 1 else "")
    shown = text if len(text) <= 60 else text[:57] + "..."
    return DataError(
        f"{where}, line {line + place}: expected {width} {kind}, came {shown!r}.\n"
        "The file is damaged or not of the TU layout; get it again."
    )


def _is_row(text: str, form: re.Pattern[str], width: int) -> bool:
    cells = text.split(",") if "," in text else text.split()
    return len(cells) == width and all(map(form.fullmatch, cells))
