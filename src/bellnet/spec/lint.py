"""Specs that can be read, but hardly mean what they say: habits from einsum and einops."""

import sys
import warnings
from collections.abc import Callable, Iterable

from bellnet.errors import SpecWarning, count_of
from bellnet.spec.spec import Shape, Spec, text_of

BATCH = frozenset({"b", "bs", "batch"})
CHANNELS = frozenset({"c", "ch", "channel", "channels", "d", "dim", "f", "feat", "feature", "features", "h", "hidden"})
LONGEST = 4  # letters of a side in einsum; longer words are words

_warned: set[str] = set()

Sides = tuple[tuple[Shape, ...], ...]
"""The shapes of a tensor or of several, or those of sources and of targets."""
Meaning = tuple[Sides, str, str]
"""What to write instead, the words before it, and those after."""


def warn_if_unlikely(*sides: tuple[Shape, ...]) -> None:
    """Warn of names that were probably meant otherwise, once for each text of which that is true.

    Args:
        sides: The shapes of a tensor or of several, or those of sources and of targets.
    """
    text = _text(sides)
    if text in _warned or (likely := _likely_meaning(sides)) is None:
        return
    meant, before, after = likely
    names = list(dict.fromkeys(name for shape in _flat(sides) for name in shape))
    read = f"{' -> '.join(map(_slots, sides))}, of the node set{'s' * (len(names) != 1)} {_sentence(map(repr, names))}"
    warnings.warn(
        f'The {"shape" if len(sides) == 1 else "spec"} "{text}" was read as {read}{before}, write "{_text(meant)}"; '
        f"if not, {after}.",
        SpecWarning,
        stacklevel=_frames_inside(),
    )
    _warned.update([text, *(_text((side,)) for side in sides)])  # networks make layers over the shapes of a side


def _slots(shapes: tuple[Shape, ...]) -> str:
    if len(shapes) == 1:
        return count_of(len(shapes[0]), "slot")
    return f"tensors of {_sentence(str(len(shape)) for shape in shapes)} slots"


def _likely_meaning(sides: Sides) -> Meaning | None:
    after = "other names end this warning"
    if _looks_like_einsum(sides):
        alone = all(len(shape) <= 1 for shape in _flat(sides))

        def split(word: str) -> Iterable[str]:
            return word if is_one_letter_repeated(word) or (alone and _may_be_letters(word)) else [word]

        meant = _each(sides, lambda shape: tuple(name for word in shape for name in split(word)))
        return meant, ": names are separated by spaces.\nIf each letter is an axis, as in einsum", after
    if _looks_like_slots(sides):
        source, *target = (shapes if len(shapes) > 1 else shapes[0] for shapes in sides)
        after = f"pass {Spec(source, target[0])!r}" if target else "nothing is wrong"
        meant = tuple((tuple(name for shape in shapes for name in shape),) for shapes in sides)
        return meant, ": commas stand between tensors.\nIf they stand between the slots of one", after
    shapes, axes = _without_batch_and_channels(_flat(sides))
    if not axes:
        return None
    left, are = iter(shapes), "are such axes" if len(axes) > 1 else "is such an axis"
    rule = ", each of which can be permuted.\nAxes of batches and channels are not written"
    return _each(sides, lambda shape: next(left)), f"{rule}: if {_sentence(axes)} {are}", after


def _looks_like_einsum(sides: Sides) -> bool:
    words = [word for shape in _flat(sides) for word in shape]
    if any(is_one_letter_repeated(word) for word in words):
        return True
    # Otherwise only "ui -> u": no space at all, and letters of one word that come back in another.
    alone = all(len(shapes) == len(shapes[0]) == 1 for shapes in sides)
    if len(sides) != 2 or not alone or not all(map(_may_be_letters, words)):
        return False
    source, target = words
    return source != target and (set(target) <= set(source) or set(source) <= set(target))


def _looks_like_slots(sides: Sides) -> bool:
    """Whether a comma stands between equal names, and no tensor has two: those two could as well be one tensor."""
    return all(len(shape) <= 1 for shape in _flat(sides)) and any(
        len(set(named)) < len(named) for named in ([shape for shape in shapes if shape] for shapes in sides)
    )


def _without_batch_and_channels(shapes: list[Shape]) -> tuple[list[Shape], list[str]]:
    """Shapes without a name for the batch in front and names for channels at the end, and those names if it is sure."""
    axes: list[str] = []
    first = shapes[0][0] if shapes[0] else ""
    if first.lower() in BATCH and all(shape[:1] == (first,) and shape.count(first) == 1 for shape in shapes):
        axes, shapes = [first], [shape[1:] for shape in shapes]
    last, inside = [shape[-1] if shape else "" for shape in shapes], {name for shape in shapes for name in shape[:-1]}
    if channels := all(name.lower() in CHANNELS and name not in inside for name in last):
        axes, shapes = [*axes, *dict.fromkeys(last)], [shape[:-1] for shape in shapes]
    is_spelled = any(len(name) > 1 for name in axes)
    has_pairs = any(len(set(shape)) < len(shape) for shape in shapes)
    # A single letter may well be a node set.
    is_sure = any(shapes) and (is_spelled or has_pairs or (first in axes and channels))
    return shapes, axes if is_sure else []


def _flat(sides: Sides) -> list[Shape]:
    return [shape for shapes in sides for shape in shapes]


def _each(sides: Sides, change: Callable[[Shape], Shape]) -> Sides:
    return tuple(tuple(change(shape) for shape in shapes) for shapes in sides)


def is_one_letter_repeated(word: str) -> bool:
    """Whether a word is hardly a name, but one letter for each slot of a node set, as in "nn"."""
    return len(word) > 1 and word.isalpha() and len(set(word)) == 1


def _may_be_letters(word: str) -> bool:
    return word.isalpha() and len(word) <= LONGEST


def _text(sides: Sides) -> str:
    return " -> ".join(map(text_of, sides)).strip()


def _sentence(names: Iterable[str]) -> str:
    """Names as a sentence has them: a, b and c."""
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last


def _frames_inside() -> int:
    """How far it is from here to the line, outside of the library, that has the spec."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and str(frame.f_globals.get("__name__")).partition(".")[0] == "bellnet":
        level, frame = level + 1, frame.f_back
    return level
