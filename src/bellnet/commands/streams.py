"""Standard output and standard error of a command, also where they are closed, full, or nobody reads them any more."""

import codecs
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from io import TextIOWrapper
from pathlib import Path
from typing import Any, TextIO, cast

from bellnet.commands.names import harmless_lines

_BYTES = "bellnet.bytes"


class Output:
    """A stream that remembers whether it could be written.

    A reader that has seen enough, as in `bellnet plan ... | head`, is no failure: the rest goes nowhere.

    Attributes:
        failure: What the first thing that could not be written failed with, or None.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self.failure: OSError | None = None

    def write(self, text: str) -> int:
        """Write a text."""
        with self._watched():
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        """Hand on what is buffered."""
        with self._watched():
            self._stream.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    @contextmanager
    def _watched(self) -> Iterator[None]:
        try:
            yield
        except BrokenPipeError:
            _discard(self._stream)
        except OSError as reason:
            self.failure = self.failure or reason
            _discard(self._stream)
            raise


@contextmanager
def own_streams() -> Iterator[Output | None]:
    """The streams as a command wants them; gives standard output, or None if there is none.

    A terminal without a sign for a tick is no reason to stop. Bytes of file names that are not UTF-8 go into a pipe or
    a file as they are; a terminal might obey them.
    """
    if sys.stderr is None:  # or else what is said there would be told to standard output
        with Path(os.devnull).open("w") as nowhere, redirect_stderr(nowhere), own_streams() as output:
            yield output
        return
    if sys.stdout is None:
        yield None
        return
    if isinstance(sys.stdout, TextIOWrapper):
        codecs.register_error(_BYTES, _keep_bytes)
        sys.stdout.reconfigure(errors="backslashreplace" if sys.stdout.isatty() else _BYTES)
    output = Output(sys.stdout)
    with redirect_stdout(cast(TextIO, output)):
        yield output


def complain(text: object) -> None:
    """Say something on standard error, if anybody can hear it there."""
    try:
        print(harmless_lines(text), file=sys.stderr, flush=True)
    except OSError:
        _discard(sys.stderr)


def _discard(stream: TextIO) -> None:
    """Send nowhere what is still buffered, or else Python complains of it when it ends, and all that follows."""
    with suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        try:
            os.dup2(nowhere, stream.fileno())
        finally:
            os.close(nowhere)


def _keep_bytes(error: UnicodeError) -> tuple[str | bytes, int]:
    """An error handler of codecs: bytes that a name was read from are written again, all else is spelled out."""
    if isinstance(error, UnicodeEncodeError):
        error.end = error.start + 1
        code = ord(error.object[error.start])
        if 0xDC80 <= code <= 0xDCFF:
            return bytes([code - 0xDC00]), error.end
    return codecs.backslashreplace_errors(error)
