"""Reading a contraction such as "ab,bc->ac", and pointing at the mistake in one that does not fit a spec."""

from collections.abc import Iterator

from bellnet.errors import SpecError, as_written
from bellnet.spec.spec import Spec

EXAMPLE = 'Give one letter for each slot, equal ones for one node: contraction="ab,bc->ac" for "n n, n n -> n n".'

Letters = tuple[str, str, str]
"""The letters of both factors and of their product."""


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
        raise SpecError(f"A contraction is a string, but this is {as_written(text)}.\n{EXAMPLE}")
    parts = _parts(text, spec)
    shapes, names = (*spec.sources, *spec.targets), ("x", "y", "the product")
    meanings: dict[str, tuple[str, str]] = {}
    for part, shape, name in zip(parts, shapes, names, strict=True):
        if len(part) != len(shape):
            at, width = (part[0][0], part[-1][0] + 1 - part[0][0]) if part else (len(text), 1)
            n_slots, n_letters = (
                f"{number} {word}{'s' * (number != 1)}"
                for number, word in ((len(shape), "slot"), (len(part), "letter"))
            )
            raise _misfit(text, at, width, f"{name} has {n_slots}, but {n_letters}", spec)
        for place, ((at, letter), node_set) in enumerate(zip(part, shape, strict=True)):
            if any(letter == other for _, other in part[:place]):
                raise _misfit(
                    text, at, 1, f"letter {letter!r} stands twice in {name}; diagonals are taken by other layers", spec
                )
            known, where = meanings.setdefault(letter, (node_set, name))
            if known != node_set:
                reason = f"letter {letter!r} is a node of {known!r} in {where}, but of {node_set!r} in {name}"
                raise _misfit(text, at, 1, reason, spec)
    x, y, result = ({letter for _, letter in part} for part in parts)
    for at, letter in parts[2]:
        if letter not in x | y:
            raise _misfit(text, at, 1, f"letter {letter!r} is in neither factor", spec)
    for part, other, name in ((parts[0], y, "x"), (parts[1], x, "y")):
        for at, letter in part:
            if letter not in other | result:
                reason = f"letter {letter!r} is in {name} alone; what only one factor has is summed by other layers"
                raise _misfit(text, at, 1, reason, spec)
    first, second, third = ("".join(letter for _, letter in part) for part in parts)
    return first, second, third


def _parts(text: str, spec: Spec) -> list[list[tuple[int, str]]]:
    """The letters of all three tensors, each with its place in the text."""
    arrow, comma = text.find("->"), text.find(",")
    if arrow < 0:
        raise _misfit(text, len(text), 2, "the arrow '->' before the letters of the product is missing", spec)
    if not 0 <= comma < arrow:
        raise _misfit(text, arrow, 1, "the comma between the letters of the two factors is missing", spec)
    bounds = (0, comma), (comma + 1, arrow), (arrow + 2, len(text))
    return [list(_letters(text, *pair, spec)) for pair in bounds]


def _letters(text: str, start: int, stop: int, spec: Spec) -> Iterator[tuple[int, str]]:
    for at in range(start, stop):
        if text[at] == " ":
            continue
        if not text[at].isalpha():
            raise _misfit(text, at, 1, f"{text[at]!r} is not a letter", spec)
        yield at, text[at]


def _misfit(text: str, at: int, width: int, reason: str, spec: Spec) -> SpecError:
    carets = " " * at + "^" * width
    return SpecError(f'This contraction does not fit "{spec}": {reason}.\n\n    {text}\n    {carets}\n{EXAMPLE}')
