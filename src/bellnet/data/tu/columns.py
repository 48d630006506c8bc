"""Columns of numbers in a text file, read a block at a time, so that a large file needs little memory.

A good file is read by numpy in one go for each block. Only where something is wrong are lines looked at one by one,
to say which.
"""

import math
import warnings
from collections.abc import Iterator
from typing import IO, TYPE_CHECKING, Any

from bellnet.data.numerals import LEAST, MOST, REAL_FORM, WHOLE_FORM, fits, is_finite, shown
from bellnet.errors import DataError

if TYPE_CHECKING:
    import numpy as np

BLOCK = 2**20
LONGEST = 2**23
_SEPARATORS = b" ,\t\r\n"
_WHOLE = b"+-0123456789"
_REAL = _WHOLE + b".eE"


def read_columns(
    stream: IO[bytes],
    where: str,
    *,
    width: int | None = None,
    real: bool = False,
    within: tuple[int, int] | None = None,
    most: float = math.inf,
) -> "np.ndarray[Any, Any]":
    """All numbers of a file, one row for each line; whole numbers in 32 bits if they all fit.

    Args:
        stream: The file.
        where: How messages name it.
        width: How many numbers a line holds; if None, as many as the first.
        real: Whether numbers may have a fraction.
        within: The least and the largest number allowed.
        most: How many lines are expected at most. Where more come, the rest is not read.
    """
    import numpy as np

    parts = []
    n_rows = 0
    for line, values in read_blocks(stream, where, width=width, real=real):
        if within is not None:
            _check_range(values, where, line, within)
        parts.append(values if real else _narrow(values))
        n_rows += len(values)
        if n_rows > most:
            break
    if not parts:
        return np.zeros((0, width or 0), np.float64 if real else np.int32)
    found = np.empty((n_rows, parts[0].shape[1]), np.result_type(*{part.dtype for part in parts}))
    while parts:  # from the end on, and each is let go, so that nothing is there twice
        part = parts.pop()
        found[n_rows - len(part) : n_rows] = part
        n_rows -= len(part)
    return found


def read_blocks(
    stream: IO[bytes], where: str, *, width: int | None = None, real: bool = False
) -> Iterator[tuple[int, "np.ndarray[Any, Any]"]]:
    """The same block after block, each with the number of its first line; whole numbers in 64 bits."""
    line = 1
    for block in _blocks(stream, where):
        values = _parse(block, where, line, width=width, real=real)
        yield line, values
        width = values.shape[1]
        line += len(values)


def _narrow(values: "np.ndarray[Any, Any]") -> "np.ndarray[Any, Any]":
    import numpy as np

    known = np.iinfo(np.int32)
    fits = known.min <= values.min() and values.max() <= known.max
    return values.astype(np.int32) if fits else values


def _check_range(values: "np.ndarray[Any, Any]", where: str, line: int, within: tuple[int, int]) -> None:
    outside = ((values < within[0]) | (values > within[1])).any(1)
    if outside.any():
        row = int(outside.argmax())
        raise DataError(
            f"{where}, line {line + row}: expected numbers from {within[0]} to {within[1]}, came "
            f"{', '.join(map(str, values[row].tolist()))}.\nThe file does not fit the others; get the data set again."
        )


def _blocks(stream: IO[bytes], where: str) -> Iterator[bytes]:
    """Blocks of whole lines; white space at the end of the file is left out."""
    rest = b""
    while block := stream.read(BLOCK):
        block = rest + block
        end = block.rstrip().rfind(b"\n") + 1
        rest = block[end:]
        if len(rest) > LONGEST:
            raise DataError(
                f"{where}: expected lines of numbers, came {LONGEST} bytes and more in one line or of white space.\n"
                "The file is damaged or not of the TU layout; get it again."
            )
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
            found = np.fromstring(block.replace(b",", b" "), np.float64 if real else np.int64, sep=" ")
        except (DeprecationWarning, ValueError):
            return None
    if real:
        return found if np.isfinite(found).all() else None
    # What is beyond 64 bits comes as the least or the largest number, without a warning.
    at_end = found.size and (found.min() == LEAST or found.max() == MOST)
    return None if at_end and not all(map(fits, block.replace(b",", b" ").decode().split())) else found


def _explain(block: bytes, where: str, line: int, *, width: int, real: bool) -> DataError:
    """The error for the first line of a block that is wrong."""
    form, holds = (REAL_FORM, is_finite) if real else (WHOLE_FORM, fits)
    lines = block.decode("utf-8", "replace").split("\n")
    rows = [_cells(text) for text in lines]
    formed = [len(cells) == width and all(map(form.fullmatch, cells)) for cells in rows]
    good = [is_formed and all(map(holds, cells)) for is_formed, cells in zip(formed, rows, strict=True)]
    place = good.index(False)  # at the latest the empty one after the last
    text = lines[place].strip()
    kind = ("number" if real else "whole number") + ("s" if width > 1 else "")
    if formed[place]:
        kind = f"finite {kind} of 64 bits" if real else f"{kind} of at most 64 bits"
    return DataError(
        f"{where}, line {line + place}: expected {width} {kind}, came {shown(text)}.\n"
        "The file is damaged or not of the TU layout; get it again."
    )


def _cells(text: str) -> list[str]:
    return text.split(",") if "," in text else text.split()
