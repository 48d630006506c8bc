"""What a command is, and the kinds of arguments that several commands take."""

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from bellnet._utils import files
from bellnet.errors import OptionError

OK, BAD_INPUT, INTERRUPTED = 0, 2, 130
MOST = 2**63 - 1
"""The largest number that any argument can be."""


@dataclass(frozen=True)
class Command:
    """A command: what it is for, examples of its use, its arguments, and what it does, which gives the exit code.

    Most use torch; the rest do not wait for it.
    """

    name: str
    summary: str
    examples: tuple[str, ...]
    declare: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int]
    uses_torch: bool = True


def count(text: str) -> int:
    """A whole number from 1 up."""
    if text.isdecimal() and (number := _bounded(text)) > 0:
        return number
    raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1 up")


def from_zero(text: str) -> int:
    """A whole number from 0 up."""
    if text.isdecimal():
        return _bounded(text)
    raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 0 up")


def positive(text: str) -> float:
    """A finite number above 0."""
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if MOST < number < float("inf"):
        raise argparse.ArgumentTypeError(f"{number:g} is too large; the most is {MOST:,}")
    if 0 < number < float("inf"):
        return number
    raise argparse.ArgumentTypeError(f"{text!r} is not a positive number")


def _bounded(digits: str) -> int:
    """The number that digits write, if it is one that can be computed with; Python reads no more than 4300 of them."""
    digits = digits.lstrip("0") or "0"
    if len(digits) > len(str(MOST)) or int(digits) > MOST:
        raise argparse.ArgumentTypeError(f"a number of {len(digits)} digits is too large; the most is {MOST:,}")
    return int(digits)


def check_file(path: Path) -> None:
    """Refuse a file given to --out that cannot be written before an hour is spent on what should go there."""
    try:
        files.check(path)
    except OSError as reason:
        raise _refusal(path, reason) from reason


def write_file(path: Path, content: bytes) -> None:
    """Write the file that was given to --out, whole or not at all."""
    try:
        files.write_files({path: content})
    except OSError as reason:
        raise _refusal(path, reason) from reason


def _refusal(path: Path, reason: OSError) -> OptionError:
    return OptionError(f"--out {path} cannot be written: {files.words(reason)}")
