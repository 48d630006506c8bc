"""Figures to files: whole or not at all."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING

from bellnet._utils import files
from bellnet.errors import OptionError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# For every format, metadata without the time of drawing: the same picture is the same file.
METADATA: dict[str, dict[str, str | None]] = {
    ".png": {"Software": "bellnet"},
    ".pdf": {"CreationDate": None, "Producer": None, "Creator": "bellnet"},
    ".svg": {"Date": None, "Creator": "bellnet"},
}
DOTS_PER_INCH = 200


def check_path(path: str | Path) -> Path:
    """The path, if a picture can have it."""
    path = Path(path)
    if path.suffix.lower() not in METADATA:
        ending = f"its name ends in {path.suffix!r}" if path.suffix else "its name has no suffix"
        raise _refusal(path, f"{ending}.\nThe suffix chooses the format: {', '.join(METADATA)}.")
    try:
        files.check(path)
    except OSError as reason:
        raise _refusal(path, files.words(reason)) from reason
    return path


def save_figures(figures: Mapping[Path, "Figure"]) -> None:
    """Write every figure to its path, whose suffix (.png, .pdf or .svg) chooses the format.

    A failure leaves neither half a picture nor one without the other, and what was there before stays.
    """
    contents = {check_path(path): partial(_draw, figure, path.suffix.lower()) for path, figure in figures.items()}
    try:
        files.write_files(contents)
    except OSError as reason:
        raise _refusal(reason.filename, files.words(reason)) from reason


def _draw(figure: "Figure", suffix: str, file: IO[bytes]) -> None:
    from matplotlib import rc_context

    with rc_context({"svg.hashsalt": "bellnet"}):
        figure.savefig(file, format=suffix[1:], dpi=DOTS_PER_INCH, metadata=METADATA[suffix])


def _refusal(path: str | Path, reason: str) -> OptionError:
    return OptionError(f"The picture {str(path)!r} cannot be written: {reason}")
