"""Reading a contraction such as "ab,bc->ac", and pointing at the mistake in one that does not fit a spec."""

from dataclasses import dataclass

from bellnet.errors import SpecError, as_written
from bellnet.spec.spec import Shape, Spec

EXAMPLE = 'Give one letter for each slot, equal ones for one node: contraction="ab,bc->ac" for "n n, n n -> n n".'

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
        raise SpecError(f"A contraction is a string, but this is {as_written(text)}.\n{EXAMPLE}")
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
            f'This contraction does not fit "{self.spec}": {reason}.\n\n    {self.text}\n    {carets}\n{EXAMPLE}'
        )


def _word(part: Part) -> str:
    return "".join(letter for _, letter in part)


def _counted(number: int, word: str) -> str:
    return f"{number} {word}{'s' * (number != 1)}"
