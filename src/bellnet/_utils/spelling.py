"""The word that somebody who misspelled one probably meant. Knows the standard library alone."""

from collections.abc import Iterable
from difflib import get_close_matches


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """A question after the word that is nearest, or nothing where none is near; small letters are as good as capitals.

    >>> did_you_mean("mutagg", ["MUTAG", "PROTEINS"]), did_you_mean("x", ["MUTAG"])
    ('Did you mean MUTAG?', '')
    """
    spellings = {name.lower(): name for name in known}
    nearest = get_close_matches(word.lower(), spellings, n=1)
    return f"Did you mean {spellings[nearest[0]]}?" if nearest else ""
