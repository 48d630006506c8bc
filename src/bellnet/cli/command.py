"""The class of commands, types of arguments, and the files that `--out` names."""

import argparse
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bellnet._utils import files
from bellnet.errors import OptionError

OK, BAD_INPUT, INTERRUPTED = 0, 2, 130
MOST = 2**63 - 1
"""The largest number of any argument."""


@dataclass(frozen=True)
class Command:
    """A command: its name, a summary, examples of its use, its arguments, and the function that runs it.

    That function returns the exit code. Torch is imported before it is called if `uses_torch`.
    """

    name: str
    summary: str
    examples: tuple[str, ...]
    declare: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int]
    uses_torch: bool = True


def count(text: str, least: int = 1) -> int:
    """A positive integer."""
    digits = text.lstrip("0") or "0"
    if text.isdecimal() and (len(digits) > len(str(MOST)) or int(digits) > MOST):  # Python reads at most 4300 digits
        raise argparse.ArgumentTypeError(f"a number of {len(digits)} digits is too large; the maximum is {MOST:,}")
    if not text.isdecimal() or int(digits) < least:
        raise argparse.ArgumentTypeError(f"{text!r} is not an integer from {least} up")
    return int(digits)


def from_zero(text: str) -> int:
    """A non-negative integer."""
    return count(text, least=0)


def positive(text: str) -> float:
    """A positive number."""
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number <= MOST:
        raise argparse.ArgumentTypeError(f"{text!r} is not a positive number of at most {MOST:,}")
    return number


def check_file(path: Path) -> None:
    """Raise an error if the file of `--out` cannot be written, before its content is computed."""
    with _errors_of_out(path):
        files.check(path)


def write_file(path: Path, content: bytes) -> None:
    """Write the file of `--out` atomically."""
    with _errors_of_out(path):
        files.write_files({path: content})


@contextmanager
def _errors_of_out(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as reason:
        raise OptionError(f"--out {path} cannot be written: {files.words(reason)}") from reason
