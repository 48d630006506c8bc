"""Parsing a spec such as "n n -> n n" or a contraction such as "ab,bc->ac"; errors point at the mistake.

A spec that can be read but was probably meant otherwise, as habits from einsum and einops suggest, is a warning.
"""

import re
import sys
import warnings
from collections.abc import Callable, Iterable

from bellnet.errors import SpecError, SpecWarning, as_written, count_of
from bellnet.spec.spec import NAME, Shape, Spec, text_of

WORD = re.compile(r"[{}]|[^\s,{}]+")
EXAMPLE = 'Write node set names separated by spaces around one arrow, for instance "n n -> n n" or "u i -> u".'
UNORDERED = 'Braces stand in a map, around slots of one node set that may be exchanged: "{n n} -> {n n}".'


def parse_spec(text: str | Spec) -> Spec:
    """Read "n n -> n": the node set of every source slot, an arrow, the node set of every target slot.

    Several tensors have commas between them; one without slots is a vector for each graph. Braces stand around slots
    that may be exchanged.

    >>> parse_spec("u u i -> i")
    Spec(source=('u', 'u', 'i'), target=('i',))
    >>> parse_spec("n n, -> n")
    Spec(source=(('n', 'n'), ()), target=('n',))
    >>> parse_spec("{n n} -> n")
    Spec(source=('n', 'n'), target=('n',), unordered=((0, 1),))
    """
    if isinstance(text, Spec):
        return text
    _require_text(text)
    arrows = [match.start() for match in re.finditer("->", text)]
    if not arrows:
        raise _mistake(text, len(text), 2, "the arrow '->' between source and target is missing", EXAMPLE)
    if len(arrows) > 1:
        raise _mistake(text, arrows[1], 2, "there is a second arrow", EXAMPLE)
    arrow = arrows[0]
    groups: list[tuple[int, ...]] = []
    sides = _shapes(text, 0, arrow, groups), _shapes(text, arrow + 2, len(text), groups)
    source, target = (shapes if len(shapes) > 1 else shapes[0] for shapes in sides)
    warn_if_unlikely(*sides)
    return Spec(source, target, tuple(groups))


def parse_shape(text: str) -> Shape:
    """Read "n n": the node set of every slot of one tensor.

    >>> parse_shape("u i")
    ('u', 'i')
    """
    _refuse_arrows(text)
    if "," in text:
        raise _mistake(text, text.index(","), 1, *_reason_of_comma(text))
    (shape,) = parse_shapes(text)
    return shape


def parse_shapes(text: str) -> tuple[Shape, ...]:
    """Read "n n, n": the node set of every slot of one tensor or of several.

    >>> parse_shapes("u i, u, i"), parse_shapes("n n")
    ((('u', 'i'), ('u',), ('i',)), (('n', 'n'),))
    """
    _refuse_arrows(text)
    shapes = _shapes(text, 0, len(text))
    warn_if_unlikely(shapes)
    return shapes


def parse_source(text: str) -> Spec:
    """Read "{n n}, n", shapes of tensors that lead to a vector; slots in braces may be exchanged.

    >>> parse_source("{n n}")
    Spec(source=('n', 'n'), target=(), unordered=((0, 1),))
    """
    _refuse_arrows(text)
    groups: list[tuple[int, ...]] = []
    shapes = _shapes(text, 0, len(text), groups)
    warn_if_unlikely(shapes)
    return Spec(shapes if len(shapes) > 1 else shapes[0], (), tuple(groups))


def _refuse_arrows(text: str) -> None:
    _require_text(text)
    if "->" in text:
        advice = 'This takes the shape of one tensor, for instance "n n"; a map "n n -> n" is for EquivariantLinear.'
        raise _mistake(text, text.index("->"), 2, "an arrow has no place here", advice)


def _require_text(text: object) -> None:
    if not isinstance(text, str):
        raise SpecError(f"A spec is a string, but this is a {type(text).__name__}: {text!r}.\n{EXAMPLE}")


def _shapes(text: str, start: int, stop: int, groups: list[tuple[int, ...]] | None = None) -> tuple[Shape, ...]:
    """The shapes between two positions of a text, with commas between them.

    Groups in braces are appended to `groups`, in numbers of slots from the beginning of the text; if it is None, there
    are no braces.
    """
    commas = [at for at in range(start, stop) if text[at] == ","]
    starts, stops = [start, *(comma + 1 for comma in commas)], [*commas, stop]
    before = len(NAME.findall(text, 0, start))
    shapes = []
    for bounds in zip(starts, stops, strict=True):
        shapes.append(_names(text, *bounds, before, groups))
        before += len(shapes[-1])
    return tuple(shapes)


def _names(text: str, start: int, stop: int, before: int, groups: list[tuple[int, ...]] | None) -> tuple[str, ...]:
    names: list[str] = []
    opened: tuple[int, int] | None = None  # where a brace was opened, and after how many names
    for word in WORD.finditer(text, start, stop):
        at = word.start()
        if groups is None and word.group() in "{}":
            raise _mistake(text, at, 1, "braces have no place here", UNORDERED)
        if word.group() == "{":
            if opened is not None:
                raise _mistake(text, at, 1, "there is a brace inside of braces", UNORDERED)
            opened = at, len(names)
        elif groups is not None and word.group() == "}":
            if opened is None:
                raise _mistake(text, at, 1, "this brace was not opened", UNORDERED)
            if len(names) - opened[1] < 2:
                raise _mistake(text, opened[0], at + 1 - opened[0], "fewer than two slots are in braces", UNORDERED)
            groups.append(tuple(range(before + opened[1], before + len(names))))
            opened = None
        else:
            names.append(_name(text, word))
            if opened is not None and names[-1] != names[opened[1]]:
                raise _mistake(text, at, len(names[-1]), "slots of different node sets are in braces", UNORDERED)
    if opened is not None:
        if text[stop : stop + 1] == ",":
            raise _mistake(text, stop, 1, "a comma, which stands between tensors, is inside of braces", UNORDERED)
        raise _mistake(text, opened[0], 1, "this brace is not closed", UNORDERED)
    return tuple(names)


def _name(text: str, word: re.Match[str]) -> str:
    valid = NAME.match(word.group())
    if valid is None or valid.end() < len(word.group()):
        at = 0 if valid is None else valid.end()
        raise _mistake(text, word.start() + at, 1, *_reason(text, word.group(), at))
    return word.group()


def _reason(text: str, word: str, at: int) -> tuple[str, str]:
    character = word[at]
    if character.isdigit():
        lengths = "The string names node sets, not lengths: the same layer fits any number of nodes."
        return "a node set name does not begin with a digit", lengths
    batch = "Batch axes are not written: any number of them may stand in front, and channels come last."
    return f"{character!r} is not part of a node set name", batch if character in ".*" else EXAMPLE


def _reason_of_comma(text: str) -> tuple[str, str]:
    """Commas in the shape of one tensor stand between slots, or between tensors: then some have several slots."""
    tensors = [words for part in text.split(",") if (words := part.split())]
    if len(tensors) > 1 and any(len(words) > 1 or is_one_letter_repeated(words[0]) for words in tensors):
        return "commas part tensors, but this is the shape of one", 'Name the slots of one tensor, for instance "n n".'
    return "slots are separated by spaces, not commas", f'Write "{" ".join(text.replace(",", " ").split())}".'


def _mistake(text: str, at: int, width: int, reason: str, advice: str) -> SpecError:
    return SpecError(f"This spec cannot be read: {reason}.\n\n{_pointed(text, at, width)}\n{advice}")


def _pointed(text: str, at: int, width: int) -> str:
    """A text with carets below a part of it."""
    return f"    {text}\n    {' ' * at}{'^' * width}"


LETTERS = 'Give one letter for each slot, equal ones for one node: contraction="ab,bc->ac" for "n n, n n -> n n".'

Letters = tuple[str, str, str]
"""The letters of both factors and of their product."""
NAMES = ("x", "y", "the product")


def parse_letters(text: object, spec: Spec) -> Letters:
    """Read which slots of two factors and of their product hold the same node; errors point at the position.

    Args:
        text: For instance "ab,bc->ac".
        spec: Of two sources and one target.

    >>> from bellnet.spec import parse_spec
    >>> parse_letters("ab,bc->ac", parse_spec("u i, i v -> u v"))
    ('ab', 'bc', 'ac')
    """
    if not isinstance(text, str):
        raise SpecError(f"A contraction is a string, but this is {as_written(text)}.\n{LETTERS}")

    def mistake(at: int, width: int, reason: str) -> SpecError:
        return SpecError(f'This contraction does not fit "{spec}": {reason}.\n\n{_pointed(text, at, width)}\n{LETTERS}')

    arrow, comma = text.find("->"), text.find(",")
    if arrow < 0:
        raise mistake(len(text), 2, "the arrow '->' before the letters of the product is missing")
    if not 0 <= comma < arrow:
        raise mistake(arrow, 1, "the comma between the letters of the two factors is missing")
    parts: list[dict[str, int]] = []  # for each tensor the position of every letter
    meanings: dict[str, tuple[str, str]] = {}
    bounds = ((0, comma), (comma + 1, arrow), (arrow + 2, len(text)))
    for (start, stop), shape, name in zip(bounds, (*spec.sources, *spec.targets), NAMES, strict=True):
        part: dict[str, int] = {}
        positions = [at for at in range(start, stop) if text[at] != " "]
        for at in positions:
            if not text[at].isalpha():
                raise mistake(at, 1, f"{text[at]!r} is not a letter")
        if len(positions) != len(shape):
            at, end = (positions[0], positions[-1] + 1) if positions else (len(text), len(text) + 1)
            counts = f"{count_of(len(shape), 'slot')}, but {count_of(len(positions), 'letter')}"
            raise mistake(at, end - at, f"{name} has {counts}")
        for at, node_set in zip(positions, shape, strict=True):
            letter = text[at]
            if letter in part:
                raise mistake(at, 1, f"letter {letter!r} stands twice in {name}; diagonals are taken by other layers")
            known, where = meanings.setdefault(letter, (node_set, name))
            if known != node_set:
                both = f"a node of {known!r} in {where}, but of {node_set!r} in {name}"
                raise mistake(at, 1, f"letter {letter!r} is {both}")
            part[letter] = at
        parts.append(part)
    x, y, product = parts
    alone = "is in {} alone; what only one factor has is summed by other layers"
    for part, others, reason in (
        (product, x | y, "is in neither factor"),
        (x, y | product, alone.format("x")),
        (y, x | product, alone.format("y")),
    ):
        for letter, at in part.items():
            if letter not in others:
                raise mistake(at, 1, f"letter {letter!r} {reason}")
    return "".join(x), "".join(y), "".join(product)


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
