"""Reading a spec string, and pointing at the mistake in one that cannot be read."""

import re
from itertools import product

from bellnet.errors import SpecError
from bellnet.spec.doubts import is_one_letter_repeated, listed, say_doubts
from bellnet.spec.spec import NAME, Spec

WORD = re.compile(r"\S+")
MOST_LAYERS = 4
EXAMPLE = 'Write node set names separated by spaces around one arrow, for instance "n n -> n n" or "u i -> u".'


def parse_spec(text: str | Spec) -> Spec:
    """Read "n n -> n": the node set of every source slot, an arrow, the node set of every target slot.

    >>> parse_spec("u u i -> i")
    Spec(source=('u', 'u', 'i'), target=('i',))
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
    spec = Spec(_names(text, 0, arrow), _names(text, arrow + 2, len(text)))
    say_doubts(spec.source, spec.target)
    return spec


def parse_shape(text: str) -> tuple[str, ...]:
    """Read "n n": the node set of every slot of one tensor.

    >>> parse_shape("u i")
    ('u', 'i')
    """
    _require_text(text)
    if "->" in text:
        advice = 'This takes the shape of one tensor, for instance "n n"; a map "n n -> n" is for EquivariantLinear.'
        raise _mistake(text, text.index("->"), 2, "an arrow has no place here", advice)
    names = _names(text, 0, len(text))
    say_doubts(names)
    return names


def _require_text(text: object) -> None:
    if not isinstance(text, str):
        raise SpecError(f"A spec is a string, but this is a {type(text).__name__}: {text!r}.\n{EXAMPLE}")


def _names(text: str, start: int, stop: int) -> tuple[str, ...]:
    names = []
    for word in WORD.finditer(text, start, stop):
        valid = NAME.match(word.group())
        if valid is None or valid.end() < len(word.group()):
            at = 0 if valid is None else valid.end()
            raise _mistake(text, word.start() + at, 1, *_reason(text, word.group(), at))
        names.append(word.group())
    return tuple(names)


def _reason(text: str, word: str, at: int) -> tuple[str, str]:
    character = word[at]
    if character == ",":
        return _reason_of_comma(text)
    if character.isdigit():
        return "a node set name does not begin with a digit", (
            "The string names node sets, not lengths: the same layer fits any number of nodes."
        )
    if character == "." or character == "*":
        return f"{character!r} is not part of a node set name", (
            "Batch axes are not written: any number of them may stand in front, and channels come last."
        )
    return f"{character!r} is not part of a node set name", EXAMPLE


def _reason_of_comma(text: str) -> tuple[str, str]:
    """Commas stand between slots, or, as in einsum, between tensors: then some of those have several slots."""
    sides = [[part.split() for part in side.split(",") if part.strip()] for side in text.split("->")]
    tensors = [words for side in sides for words in side]
    several = any(len(side) > 1 for side in sides)
    if not several or not any(len(words) > 1 or is_one_letter_repeated(words[0]) for words in tensors):
        return "slots are separated by spaces, not commas", f'Write "{" ".join(text.replace(",", " ").split())}".'
    if len(sides) == 1:
        return "commas part tensors, but this is the shape of one", 'Name the slots of one tensor, for instance "n n".'
    pairs = product(*(side or [[]] for side in sides))
    layers = [f'"{f"{_apart(source)} -> {_apart(target)}".strip()}"' for source, target in pairs]
    if all(NAME.fullmatch(word) for words in tensors for word in words) and len(layers) <= MOST_LAYERS:
        advice = "Add what several layers make" if len(sides[0]) > 1 else "Take several layers"
        advice += f": {listed(layers)}.\n"
    else:
        advice = "Make a layer for each tensor that comes and each that is made, and add what goes to the same one.\n"
    return "commas part tensors, but one layer takes one tensor to one tensor", (
        advice + "Tensors over the same slots can also be one tensor, side by side in its channels."
    )


def _apart(words: list[str]) -> str:
    return " ".join(" ".join(word) if is_one_letter_repeated(word) else word for word in words)


def _mistake(text: str, at: int, width: int, reason: str, advice: str) -> SpecError:
    return SpecError(f"This spec cannot be read: {reason}.\n\n    {text}\n    {' ' * at}{'^' * width}\n{advice}")
