"""Names that strangers chose, of files and classes, made harmless: on a terminal, in a table, in a spreadsheet."""

import re

# What a terminal obeys (C0, DEL and C1), what turns the direction of writing, and halves of signs that no encoding has.
# The halves from dc80 to dcff stand for bytes of file names that are not UTF-8, and become those bytes again.
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udc7f\udd00-\udfff]")
_FORMULA = re.compile("[\t\r\n]| *[=+@-]| *[＝＋－＠]")
_NUMBER = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?")


def harmless(name: object) -> str:
    r"""A name as it can be printed: what a terminal would obey is written as Python writes it.

    >>> print(harmless("a\x1b[2Jb\n"))
    a\x1b[2Jb\x0a
    """
    return _CONTROL.sub(_escaped, str(name))


def harmless_lines(text: object) -> str:
    """The same for a text of several lines, which stay lines."""
    return "\n".join(harmless(line) for line in str(text).split("\n"))


def cell(value: object) -> object:
    """What a table holds for a value: a number as it is, and a name so that no spreadsheet runs it as a formula.

    >>> [cell(value) for value in (-1, "-0.5", "-a", "=1+1", "star")]
    [-1, '-0.5', "'-a", "'=1+1", 'star']
    """
    if not isinstance(value, str):
        return value
    # Where a comma is part of numbers, spreadsheets end cells at semicolons.
    return harmless(";".join(f"'{part}" if _runs(part) else part for part in value.split(";")))


def _runs(text: str) -> bool:
    return _FORMULA.match(text) is not None and _NUMBER.fullmatch(text) is None


def _escaped(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
