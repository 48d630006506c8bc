"""Numbers in text files: single ones, and columns of them.

The format is narrower than Python's: the digits 0 to 9 without underscores. A file is read in blocks, so that a large
one needs little memory; numpy parses a block at once, and only the lines of a faulty block are inspected one by one,
for the error message.
"""

import math
import re
import warnings
from collections.abc import Iterator
from typing import IO, TYPE_CHECKING, Any

from bellnet.errors import DataError

if TYPE_CHECKING:
    import numpy as np

LEAST, MOST = -(2**63), 2**63 - 1
INTEGER_FORM = re.compile(r"\s*[+-]?[0-9]+\s*")
REAL_FORM = re.compile(r"\s*[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?\s*")
_DIGITS = 19  # of the largest int64; Python refuses to convert very long texts

BLOCK = 2**20
LONGEST = 2**23
_SEPARATORS = b" ,\t\r\n"
_INTEGER = b"+-0123456789"
_REAL = _INTEGER + b".eE"


def integer(text: str) -> int | None:
    """An integer, with any number of leading zeros; None if it does not fit int64."""
    signed = text.strip()
    digits = signed.lstrip("+-").lstrip("0")
    if len(digits) > _DIGITS:
        return None
    number = int(digits or "0") * (-1 if signed.startswith("-") else 1)
    return number if LEAST <= number <= MOST else None


def fits_int64(text: str) -> bool:
    """Whether an integer fits int64."""
    return integer(text) is not None


def is_finite(text: str) -> bool:
    """Whether a number is finite in float64."""
    return math.isfinite(float(text))


def shown(text: str) -> str:
    """A text in messages, shortened if it is long."""
    return repr(text if len(text) <= 60 else text[:57] + "...")


def read_columns(
    stream: IO[bytes],
    where: str,
    *,
    width: int | None = None,
    real: bool = False,
    within: tuple[int, int] | None = None,
    most: float = math.inf,
) -> "np.ndarray[Any, Any]":
    """All numbers of a file, one row for each line; integers as int32 if all fit.

    Args:
        stream: The file.
        where: The file in messages.
        width: The number of numbers in a line; if None, that of the first line.
        real: Whether numbers may have a fraction.
        within: The least and the largest allowed number.
        most: The expected maximum number of lines. After more lines, the rest is not read.
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
    while parts:  # from the end, and each part is freed, so that nothing is in memory twice
        part = parts.pop()
        found[n_rows - len(part) : n_rows] = part
        n_rows -= len(part)
    return found


def read_blocks(
    stream: IO[bytes], where: str, *, width: int | None = None, real: bool = False
) -> Iterator[tuple[int, "np.ndarray[Any, Any]"]]:
    """The rows of `read_columns` block by block, each with the number of its first line; integers as int64."""
    line = 1
    for block in _blocks(stream, where):
        values = _parse(block, where, line, width=width, real=real)
        yield line, values
        width = values.shape[1]
        line += len(values)


def _narrow(values: "np.ndarray[Any, Any]") -> "np.ndarray[Any, Any]":
    import numpy as np

    bounds = np.iinfo(np.int32)
    return values.astype(np.int32) if bounds.min <= values.min() and values.max() <= bounds.max else values


def _check_range(values: "np.ndarray[Any, Any]", where: str, line: int, within: tuple[int, int]) -> None:
    outside = ((values < within[0]) | (values > within[1])).any(1)
    if outside.any():
        row = int(outside.argmax())
        raise DataError(
            f"{where}, line {line + row}: expected numbers from {within[0]} to {within[1]}, came "
            f"{', '.join(map(str, values[row].tolist()))}.\nThe file does not fit the others; get the data set again."
        )


def _blocks(stream: IO[bytes], where: str) -> Iterator[bytes]:
    """Blocks of whole lines, without the white space at the end of the file."""
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
    allowed[list(_SEPARATORS + (_REAL if real else _INTEGER))] = True
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
        warnings.simplefilter("error")  # numpy only warns of text that is not a number
        try:
            found = np.fromstring(block.replace(b",", b" "), np.float64 if real else np.int64, sep=" ")
        except (DeprecationWarning, ValueError):
            return None
    if real:
        return found if np.isfinite(found).all() else None
    # numpy replaces integers beyond int64 by the nearest one without a warning.
    at_end = found.size and (found.min() == LEAST or found.max() == MOST)
    return None if at_end and not all(map(fits_int64, block.replace(b",", b" ").decode().split())) else found


def _explain(block: bytes, where: str, line: int, *, width: int, real: bool) -> DataError:
    """The error for the first faulty line of a block."""
    form, holds = (REAL_FORM, is_finite) if real else (INTEGER_FORM, fits_int64)
    lines = block.decode("utf-8", "replace").split("\n")
    rows = [text.split(",") if "," in text else text.split() for text in lines]
    formed = [len(cells) == width and all(map(form.fullmatch, cells)) for cells in rows]
    good = [is_formed and all(map(holds, cells)) for is_formed, cells in zip(formed, rows, strict=True)]
    faulty = good.index(False)  # the empty one after the last line, if no other is faulty
    kind = ("number" if real else "whole number") + ("s" if width > 1 else "")
    if formed[faulty]:
        kind = f"finite {kind} of 64 bits" if real else f"{kind} of at most 64 bits"
    return DataError(
        f"{where}, line {line + faulty}: expected {width} {kind}, came {shown(lines[faulty].strip())}.\n"
        "The file is damaged or not of the TU layout; get it again."
    )
