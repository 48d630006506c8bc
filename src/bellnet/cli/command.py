"""The class of commands, types of arguments, and the files that `--out` names."""

import argparse
from collections.abc import Callable
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


def count(text: str) -> int:
    """A positive integer."""
    if text.isdecimal() and (number := _bounded(text)) > 0:
        return number
    raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1 up")


def from_zero(text: str) -> int:
    """A non-negative integer."""
    if text.isdecimal():
        return _bounded(text)
    raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 0 up")


def positive(text: str) -> float:
    """A positive finite number."""
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
    """The integer of some digits, if it is at most `MOST`; Python reads at most 4300 digits."""
    digits = digits.lstrip("0") or "0"
    if len(digits) > len(str(MOST)) or int(digits) > MOST:
        raise argparse.ArgumentTypeError(f"a number of {len(digits)} digits is too large; the most is {MOST:,}")
    return int(digits)


def check_file(path: Path) -> None:
    """Raise an error if the file of `--out` cannot be written, before its content is computed."""
    try:
        files.check(path)
    except OSError as reason:
        raise _refusal(path, reason) from reason


def write_file(path: Path, content: bytes) -> None:
    """Write the file of `--out` atomically."""
    try:
        files.write_files({path: content})
    except OSError as reason:
        raise _refusal(path, reason) from reason


def _refusal(path: Path, reason: OSError) -> OptionError:
    return OptionError(f"--out {path} cannot be written: {files.words(reason)}")
