"""Reading a spec string, and pointing at the mistake in one that cannot be read."""

import re

from bellnet.errors import SpecError
from bellnet.spec.spec import NAME, Spec

WORD = re.compile(r"\S+")
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
    return Spec(_names(text, 0, arrow), _names(text, arrow + 2, len(text)))


def parse_shape(text: str) -> tuple[str, ...]:
    """Read "n n": the node set of every slot of one tensor.

    >>> parse_shape("u i")
    ('u', 'i')
    """
    _require_text(text)
    if "->" in text:
        advice = 'This takes the shape of one tensor, for instance "n n"; a map "n n -> n" is for EquivariantLinear.'
        raise _mistake(text, text.index("->"), 2, "an arrow has no place here", advice)
    return _names(text, 0, len(text))


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
        return "slots are separated by spaces, not commas", f'Write "{" ".join(text.replace(",", " ").split())}".'
    if character.isdigit():
        return "a node set name does not begin with a digit", (
            "The string names node sets, not lengths: the same layer fits any number of nodes."
        )
    if character == "." or character == "*":
        return f"{character!r} is not part of a node set name", (
            "Batch axes are not written: any number of them may stand in front, and channels come last."
        )
    return f"{character!r} is not part of a node set name", EXAMPLE


def _mistake(text: str, at: int, width: int, reason: str, advice: str) -> SpecError:
    return SpecError(f"This spec cannot be read: {reason}.\n\n    {text}\n    {' ' * at}{'^' * width}\n{advice}")
