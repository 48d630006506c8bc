"""What commands print: standard output and standard error, also closed or full ones, and names made printable.

Names of files and classes come from others: on a terminal, in a table or in a spreadsheet they must not act.
"""

import codecs
import os
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from io import TextIOWrapper
from pathlib import Path
from typing import Any, TextIO, cast

# Control characters (C0, DEL and C1), characters that change the direction of writing, and surrogates. Surrogates from
# dc80 to dcff stand for bytes of file names that are not UTF-8, and are written as those bytes.
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udc7f\udd00-\udfff]")
_FORMULA = re.compile("[\t\r\n]| *[=+@-]| *[＝＋－＠]")
_NUMBER = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?")
_BYTES = "bellnet.bytes"
"""The name of an error handler of `codecs`."""


class Output:
    """A stream that records whether it could be written.

    A reader that closes a pipe early, as in `bellnet plan ... | head`, is not a failure: the rest is discarded.

    Attributes:
        failure: The first error while writing, or None.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self.failure: OSError | None = None

    def write(self, text: str) -> int:
        """Write a text."""
        with self._recorded():
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        """Write what is buffered."""
        with self._recorded():
            self._stream.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    @contextmanager
    def _recorded(self) -> Iterator[None]:
        try:
            yield
        except BrokenPipeError:
            _discard(self._stream)
        except OSError as reason:
            self.failure = self.failure or reason
            _discard(self._stream)
            raise


@contextmanager
def command_streams() -> Iterator[Output | None]:
    """Redirect standard output to an `Output` and yield it, or None if standard output is closed.

    Characters that the encoding lacks are escaped. Bytes of file names that are not UTF-8 are written unchanged to a
    pipe or a file, and escaped on a terminal.
    """
    if sys.stderr is None:  # argparse would write errors to standard output
        with Path(os.devnull).open("w") as nowhere, redirect_stderr(nowhere), command_streams() as output:
            yield output
        return
    if sys.stdout is None:
        yield None
        return
    if isinstance(sys.stdout, TextIOWrapper):
        codecs.register_error(_BYTES, _original_bytes)
        sys.stdout.reconfigure(errors="backslashreplace" if sys.stdout.isatty() else _BYTES)
    output = Output(sys.stdout)
    with redirect_stdout(cast(TextIO, output)):
        yield output


def print_error(text: object) -> None:
    """Print a text to standard error, if that can be written."""
    try:
        print(printable_lines(text), file=sys.stderr, flush=True)
    except OSError:
        _discard(sys.stderr)


def _discard(stream: TextIO) -> None:
    """Discard what is buffered and all that follows; Python would report it as an error when it ends."""
    with suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        try:
            os.dup2(nowhere, stream.fileno())
        finally:
            os.close(nowhere)


def _original_bytes(error: UnicodeError) -> tuple[str | bytes, int]:
    """Encode surrogates from dc80 to dcff as the bytes they stand for, and escape everything else."""
    if isinstance(error, UnicodeEncodeError):
        error.end = error.start + 1
        code = ord(error.object[error.start])
        if 0xDC80 <= code <= 0xDCFF:
            return bytes([code - 0xDC00]), error.end
    return codecs.backslashreplace_errors(error)


def printable(name: object) -> str:
    r"""A name without control characters, which are escaped as in Python.

    >>> print(printable("a\x1b[2Jb\n"))
    a\x1b[2Jb\x0a
    """
    return _CONTROL.sub(_escaped, str(name))


def printable_lines(text: object) -> str:
    """The same for each line of a text."""
    return "\n".join(printable(line) for line in str(text).split("\n"))


def cell(value: object) -> object:
    """The cell of a table for a value: a number stays, a name is quoted if a spreadsheet would run it as a formula.

    >>> [cell(value) for value in (-1, "-0.5", "-a", "=1+1", "star")]
    [-1, '-0.5', "'-a", "'=1+1", 'star']
    """
    if not isinstance(value, str):
        return value
    # In countries with decimal commas, spreadsheets end cells at semicolons.
    parts = value.split(";")
    return printable(";".join(f"'{x}" if _FORMULA.match(x) and not _NUMBER.fullmatch(x) else x for x in parts))


def table(rows: Sequence[Sequence[str]], align: str) -> str:
    """Rows of cells as indented lines, each column aligned to the left (<) or to the right (>)."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    columns = list(zip(align, widths, strict=True))
    return "\n".join(
        "  ".join(["", *(f"{text:{side}{width}}" for text, (side, width) in zip(row, columns, strict=True))]).rstrip()
        for row in rows
    )


def _escaped(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
