"""Parsing a spec such as "n n -> n n" or a contraction such as "ab,bc->ac"; errors point at the mistake."""

import re
from dataclasses import dataclass

from bellnet.errors import SpecError, as_written
from bellnet.spec.lint import is_one_letter_repeated, say_doubts
from bellnet.spec.spec import NAME, Shape, Spec

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
    say_doubts(*sides)
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
    say_doubts(shapes)
    return shapes


def parse_source(text: str) -> Spec:
    """Read "{n n}, n", shapes of tensors that lead to a vector; slots in braces may be exchanged.

    >>> parse_source("{n n}")
    Spec(source=('n', 'n'), target=(), unordered=((0, 1),))
    """
    _refuse_arrows(text)
    groups: list[tuple[int, ...]] = []
    shapes = _shapes(text, 0, len(text), groups)
    say_doubts(shapes)
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
    """The shapes between two places of a text, with commas between them.

    Groups in braces are added to those that are given, numbered from the number of slots before; None has no braces.
    """
    commas = [place for place in range(start, stop) if text[place] == ","]
    starts, stops = [start, *(comma + 1 for comma in commas)], [*commas, stop]
    before = len(NAME.findall(text, 0, start))
    shapes = []
    for place in zip(starts, stops, strict=True):
        shapes.append(_names(text, *place, before, groups))
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
        return "a node set name does not begin with a digit", (
            "The string names node sets, not lengths: the same layer fits any number of nodes."
        )
    if character == "." or character == "*":
        return f"{character!r} is not part of a node set name", (
            "Batch axes are not written: any number of them may stand in front, and channels come last."
        )
    return f"{character!r} is not part of a node set name", EXAMPLE


def _reason_of_comma(text: str) -> tuple[str, str]:
    """Commas in the shape of one tensor stand between slots, or between tensors: then some have several slots."""
    tensors = [words for part in text.split(",") if (words := part.split())]
    if len(tensors) > 1 and any(len(words) > 1 or is_one_letter_repeated(words[0]) for words in tensors):
        return "commas part tensors, but this is the shape of one", 'Name the slots of one tensor, for instance "n n".'
    return "slots are separated by spaces, not commas", f'Write "{" ".join(text.replace(",", " ").split())}".'


def _mistake(text: str, at: int, width: int, reason: str, advice: str) -> SpecError:
    return SpecError(f"This spec cannot be read: {reason}.\n\n    {text}\n    {' ' * at}{'^' * width}\n{advice}")


LETTERS = 'Give one letter for each slot, equal ones for one node: contraction="ab,bc->ac" for "n n, n n -> n n".'

Letters = tuple[str, str, str]
"""The letters of both factors and of their product."""
Part = list[tuple[int, str]]
"""The letters of one of these tensors, each with its place in the text."""
NAMES = ("x", "y", "the product")


def parse_letters(text: object, spec: Spec) -> Letters:
    """Read which slots of two factors and of their product hold the same node.

    Args:
        text: For instance "ab,bc->ac".
        spec: Of two sources and one target.

    >>> from bellnet.spec import parse_spec
    >>> parse_letters("ab,bc->ac", parse_spec("u i, i v -> u v"))
    ('ab', 'bc', 'ac')
    """
    if not isinstance(text, str):
        raise SpecError(f"A contraction is a string, but this is {as_written(text)}.\n{LETTERS}")
    reading = _Reading(text, spec)
    x, y, product = reading.parts()
    meanings: dict[str, tuple[str, str]] = {}
    for part, shape, name in zip((x, y, product), (*spec.sources, *spec.targets), NAMES, strict=True):
        reading.check_slots(part, shape, name)
        reading.check_apart(part, shape, name, meanings)
    reading.check_shared(product, x + y, "letter {!r} is in neither factor")
    for factor, others, name in ((x, y + product, "x"), (y, x + product, "y")):
        alone = f"letter {{!r}} is in {name} alone; what only one factor has is summed by other layers"
        reading.check_shared(factor, others, alone)
    return _word(x), _word(y), _word(product)


@dataclass(frozen=True)
class _Reading:
    """A text that is read for a spec; every mistake is an error that points at its place."""

    text: str
    spec: Spec

    def parts(self) -> tuple[Part, Part, Part]:
        """The letters of all three tensors, each with its place in the text."""
        arrow, comma = self.text.find("->"), self.text.find(",")
        if arrow < 0:
            raise self._misfit(len(self.text), 2, "the arrow '->' before the letters of the product is missing")
        if not 0 <= comma < arrow:
            raise self._misfit(arrow, 1, "the comma between the letters of the two factors is missing")
        return self._part(0, comma), self._part(comma + 1, arrow), self._part(arrow + 2, len(self.text))

    def _part(self, start: int, stop: int) -> Part:
        part = [(at, self.text[at]) for at in range(start, stop) if self.text[at] != " "]
        for at, letter in part:
            if not letter.isalpha():
                raise self._misfit(at, 1, f"{letter!r} is not a letter")
        return part

    def check_slots(self, part: Part, shape: Shape, name: str) -> None:
        """There is a letter for each slot."""
        if len(part) != len(shape):
            at, width = (part[0][0], part[-1][0] + 1 - part[0][0]) if part else (len(self.text), 1)
            reason = f"{name} has {_counted(len(shape), 'slot')}, but {_counted(len(part), 'letter')}"
            raise self._misfit(at, width, reason)

    def check_apart(self, part: Part, shape: Shape, name: str, meanings: dict[str, tuple[str, str]]) -> None:
        """No letter stands twice, nor for nodes of two sets; what letters stand for, and where, joins `meanings`."""
        seen = set()
        for (at, letter), node_set in zip(part, shape, strict=True):
            if letter in seen:
                reason = f"letter {letter!r} stands twice in {name}; diagonals are taken by other layers"
                raise self._misfit(at, 1, reason)
            seen.add(letter)
            known, where = meanings.setdefault(letter, (node_set, name))
            if known != node_set:
                reason = f"letter {letter!r} is a node of {known!r} in {where}, but of {node_set!r} in {name}"
                raise self._misfit(at, 1, reason)

    def check_shared(self, part: Part, others: Part, reason: str) -> None:
        """Every letter of a part is among those of others."""
        for at, letter in part:
            if letter not in _word(others):
                raise self._misfit(at, 1, reason.format(letter))

    def _misfit(self, at: int, width: int, reason: str) -> SpecError:
        carets = " " * at + "^" * width
        return SpecError(
            f'This contraction does not fit "{self.spec}": {reason}.\n\n    {self.text}\n    {carets}\n{LETTERS}'
        )


def _word(part: Part) -> str:
    return "".join(letter for _, letter in part)


def _counted(number: int, word: str) -> str:
    return f"{number} {word}{'s' * (number != 1)}"
