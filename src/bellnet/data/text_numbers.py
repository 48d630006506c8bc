"""Numbers in text files: single ones, and columns of them.

The format is narrower than Python's and NumPy's: the digits 0 to 9 without underscores, no NaN. A file is read in
blocks, so that a large one needs little memory. Only for an error, the lines of a block are inspected one by one.
"""

import io
import math
import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from bellnet.errors import DataError

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]

INTEGER_FORM = re.compile(r"\s*[+-]?[0-9]+\s*")
REAL_FORM = re.compile(r"\s*[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?\s*")
_DIGITS = 19  # of the largest int64; Python refuses to convert very long texts

LONGEST = 2**23
_INTEGERS = b"+-0123456789 ,\t\r\n"
_REALS = _INTEGERS + b".eE"
_AGAIN = "\nThe file is damaged or not of the TU layout; get it again."


def integer(text: str) -> int | None:
    """An integer, with any number of leading zeros; None if it does not fit int64."""
    signed = text.strip()
    digits = signed.lstrip("+-").lstrip("0")
    if len(digits) > _DIGITS:
        return None
    number = int(digits or "0") * (-1 if signed.startswith("-") else 1)
    return number if -(2**63) <= number < 2**63 else None


def shown(text: str) -> str:
    """A text in messages, shortened if it is long."""
    return repr(text if len(text) <= 60 else text[:57] + "...")


def read_columns(
    pieces: Iterable[bytes],
    where: str,
    *,
    width: int | None = None,
    real: bool = False,
    within: tuple[int, int] | None = None,
    most: float = math.inf,
) -> "Array":
    """All numbers of a file, one row for each line; integers as int32 if all fit.

    Args:
        pieces: The content of the file.
        where: The file in messages.
        width: The number of numbers in a line; if None, that of the first line.
        real: Whether numbers are float64, not integers.
        within: The least and the largest allowed number.
        most: The expected maximum number of lines. After more lines, the rest is not read.
    """
    import numpy as np

    parts = []
    n_rows = 0
    for line, values in read_blocks(pieces, where, width=width, real=real):
        if within is not None and ((values < within[0]) | (values > within[1])).any():
            row = int(((values < within[0]) | (values > within[1])).any(1).argmax())
            raise DataError(
                f"{where}, line {line + row}: expected numbers from {within[0]} to {within[1]}, got "
                f"{', '.join(map(str, values[row].tolist()))}.\nIt does not fit the others; get the data set again."
            )
        bounds = np.iinfo(np.int32)
        is_narrow = not real and bounds.min <= values.min() and values.max() <= bounds.max
        parts.append(values.astype(np.int32) if is_narrow else values)
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
    pieces: Iterable[bytes], where: str, *, width: int | None = None, real: bool = False
) -> "Iterator[tuple[int, Array]]":
    """The rows of `read_columns` block by block, each with the number of its first line; integers as int64."""
    line = 1
    for block in _blocks(pieces, where):
        values = _parse(block, width, real=real)
        if values is None:
            raise _explain(block, where, line, width=width, real=real)
        yield line, values
        width = values.shape[1]
        line += len(values)


def _blocks(pieces: Iterable[bytes], where: str) -> Iterator[bytes]:
    """Blocks of whole lines, without the white space at the end of the file."""
    rest = b""
    for piece in pieces:
        block = rest + piece
        end = block.rstrip().rfind(b"\n") + 1
        rest = block[end:]
        if len(rest) > LONGEST:
            raise DataError(f"{where}: expected lines of numbers, got {LONGEST} bytes or more in one line.{_AGAIN}")
        if end:
            yield block[:end]
    if rest.strip():
        yield rest.rstrip() + b"\n"


def _parse(block: bytes, width: int | None, *, real: bool) -> "Array | None":
    """The numbers of a block; None if a line is not of `width` valid numbers."""
    import numpy as np

    if block.translate(None, _REALS if real else _INTEGERS) or not block.strip():
        return None
    kind, separator = (np.float64 if real else np.int64), "," if b"," in block else None
    try:
        values = np.loadtxt(io.BytesIO(block.replace(b"\r", b" ")), kind, delimiter=separator, comments=None, ndmin=2)
    except ValueError:
        return None
    is_whole = len(values) == block.count(b"\n") and values.shape[1] == (width or values.shape[1])
    return values if is_whole and np.isfinite(values).all() else None


def _explain(block: bytes, where: str, line: int, *, width: int | None, real: bool) -> DataError:
    """The error for the first faulty line of a block."""
    lines = block.decode("utf-8", "replace").split("\n")
    rows = [text.split("," if b"," in block else None) for text in lines]
    width = max(len(rows[0]), 1) if width is None else width

    def is_formed(cells: list[str]) -> bool:
        return len(cells) == width and all(map((REAL_FORM if real else INTEGER_FORM).fullmatch, cells))

    def fits(cells: list[str]) -> bool:
        return all(math.isfinite(float(cell)) if real else integer(cell) is not None for cell in cells)

    # The empty line after the last one, if no other is faulty.
    faulty = next(number for number, cells in enumerate(rows) if not (is_formed(cells) and fits(cells)))
    kind = f"{width} {'number' if real else 'integer'}{'s' if width > 1 else ''}"
    if is_formed(rows[faulty]):
        kind += " within float64" if real else " within int64"
    return DataError(f"{where}, line {line + faulty}: expected {kind}, got {shown(lines[faulty].strip())}.{_AGAIN}")
