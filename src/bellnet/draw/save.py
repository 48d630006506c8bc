"""Figures to files: whole or not at all."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

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
        raise _refusal(path, ending, f"The suffix chooses the format: {', '.join(METADATA)}.")
    if not path.parent.is_dir():
        raise _refusal(path, f"there is no directory {str(path.parent)!r}", "Make it first, or choose another path.")
    if path.is_dir():
        raise _refusal(path, "it is a directory", "Choose another name.")
    return path


def save_figures(figures: Mapping[Path, "Figure"]) -> None:
    """Write every figure to its path, whose suffix (.png, .pdf or .svg) chooses the format.

    The pictures are written beside their places and moved there when all of them are whole. A failure so leaves
    neither half a picture nor one without the other, and what was there before stays.
    """
    beside = {check_path(path): path.with_name(f".{path.name}.{os.getpid()}") for path in figures}
    path = next(iter(figures), Path())
    try:
        for path, figure in figures.items():
            _write(figure, beside[path], path.suffix.lower())
        for path, temporary in beside.items():
            temporary.replace(path)
    except OSError as reason:
        raise _refusal(path, reason.strerror or str(reason), "Choose another path.") from reason
    finally:
        for temporary in beside.values():
            temporary.unlink(missing_ok=True)


def _write(figure: "Figure", path: Path, suffix: str) -> None:
    from matplotlib import rc_context

    with rc_context({"svg.hashsalt": "bellnet"}), path.open("xb") as file:
        figure.savefig(file, format=suffix[1:], dpi=DOTS_PER_INCH, metadata=METADATA[suffix])


def _refusal(path: Path, reason: str, remedy: str) -> OptionError:
    return OptionError(f"The picture {str(path)!r} cannot be written: {reason}.\n{remedy}")
