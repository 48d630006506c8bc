"""Specs that can be read, but hardly mean what they say: habits from einsum and einops."""

import sys
import warnings
from collections.abc import Iterable
from dataclasses import dataclass

from bellnet.errors import SpecWarning

BATCH = frozenset({"b", "bs", "batch"})
CHANNELS = frozenset({"c", "ch", "channel", "channels", "d", "dim", "f", "feat", "feature", "features", "h", "hidden"})
LONGEST = 4  # letters of a side in einsum; longer words are words

_said: set[str] = set()

Sides = tuple[tuple[str, ...], ...]
"""The names of a shape, or of source and target."""


@dataclass(frozen=True)
class Doubt:
    """What was probably meant: which names would be axes of batches and channels, if it is that, and what to write."""

    meant: Sides
    axes: tuple[str, ...] = ()


def say_doubts(*sides: tuple[str, ...]) -> None:
    """Warn of names that were probably meant otherwise, once for each text of which that is true.

    Args:
        sides: The names of a shape, or of source and target.
    """
    text = _text(sides)
    if text in _said or (found := _doubt(sides)) is None:
        return
    names = list(dict.fromkeys(name for side in sides for name in side))
    slots = " -> ".join(f"{len(side)} slot{'s' * (len(side) != 1)}" for side in sides)
    read = f"{slots}, of the node set{'s' * (len(names) != 1)} {listed(map(repr, names))}"
    if found.axes:
        words = (
            f"{read}, each of which can be renumbered.\n"
            f"Axes of batches and channels are not written: if {listed(found.axes)} "
            f"{'are such axes' if len(found.axes) > 1 else 'is such an axis'}, write"
        )
    else:
        words = f"{read}: names are separated by spaces.\nIf each letter is an axis, as in einsum, write"
    warnings.warn(
        f'The {"shape" if len(sides) == 1 else "spec"} "{text}" was read as {words} "{_text(found.meant)}"; if not, '
        "other names end this warning.",
        SpecWarning,
        stacklevel=_frames_inside(),
    )
    _said.add(text)


def _doubt(sides: Sides) -> Doubt | None:
    if _looks_like_einsum(sides):
        alone = all(len(side) <= 1 for side in sides)
        return Doubt(tuple(tuple(name for word in side for name in _taken_apart(word, alone)) for side in sides))
    return _axes_too_many(sides)


def _looks_like_einsum(sides: Sides) -> bool:
    words = [word for side in sides for word in side]
    if any(is_one_letter_repeated(word) for word in words):
        return True
    # Otherwise only "ui -> u": no space at all, and letters of one word that come back in another.
    if len(sides) != 2 or any(len(side) != 1 for side in sides) or not all(map(_may_be_letters, words)):
        return False
    source, target = words
    return source != target and (set(target) <= set(source) or set(source) <= set(target))


def _axes_too_many(sides: Sides) -> Doubt | None:
    """A name for the batch in front of every side, or one for channels at the end, with node sets beside it."""
    batch = sides[0][0] if sides[0] and sides[0][0].lower() in BATCH else None
    if any(side[:1] != (batch,) or side.count(str(batch)) > 1 for side in sides):
        batch = None
    kept = [side if batch is None else side[1:] for side in sides]
    last = [side[-1] if side and side[-1].lower() in CHANNELS else None for side in kept]
    inside = {name for side, name in zip(kept, last, strict=True) for name in (side if name is None else side[:-1])}
    channels = [name for name in last if name is not None and name not in inside]
    if len(channels) < len(sides):
        channels = []
    if channels:
        kept = [side[:-1] for side in kept]
    axes = ([] if batch is None else [batch]) + list(dict.fromkeys(channels))
    spelled = any(len(name) > 1 for name in axes)
    pairs = any(len(set(side)) < len(side) for side in kept)
    if not axes or not any(kept) or not (spelled or pairs or (batch is not None and channels)):
        return None  # a single letter may well be a node set
    return Doubt(tuple(kept), tuple(axes))


def is_one_letter_repeated(word: str) -> bool:
    """Whether a word is hardly a name, but one letter for each slot of a node set, as in "nn"."""
    return len(word) > 1 and word.isalpha() and len(set(word)) == 1


def _may_be_letters(word: str) -> bool:
    return word.isalpha() and len(word) <= LONGEST


def _taken_apart(word: str, alone: bool) -> Iterable[str]:
    return word if is_one_letter_repeated(word) or (alone and _may_be_letters(word)) else [word]


def _text(sides: Sides) -> str:
    return " -> ".join(" ".join(side) for side in sides).strip()


def listed(names: Iterable[str]) -> str:
    """Names as a sentence has them: a, b and c."""
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last


def _frames_inside() -> int:
    """How far it is from here to the line, outside of the library, that has the spec."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and str(frame.f_globals.get("__name__")).partition(".")[0] == "bellnet":
        level, frame = level + 1, frame.f_back
    return level
