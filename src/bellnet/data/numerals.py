"""Numbers as files write them, which is less than Python reads: no underscores, and the digits 0 to 9 alone."""

import math
import re

LEAST, MOST = -(2**63), 2**63 - 1
WHOLE_FORM = re.compile(r"\s*[+-]?[0-9]+\s*")
REAL_FORM = re.compile(r"\s*[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?\s*")
_DIGITS = 19


def whole(text: str) -> int | None:
    """A whole number, with any number of zeros before it; None if it does not fit into 64 bits."""
    signed = text.strip()
    digits = signed.lstrip("+-").lstrip("0")
    if len(digits) > _DIGITS:  # Python refuses to read very many
        return None
    number = int(digits or "0") * (-1 if signed.startswith("-") else 1)
    return number if LEAST <= number <= MOST else None


def fits(text: str) -> bool:
    """Whether a whole number fits into 64 bits."""
    return whole(text) is not None


def is_finite(text: str) -> bool:
    """Whether a number is finite in 64 bits."""
    return math.isfinite(float(text))


def shown(text: str) -> str:
    """A text as messages show it: not all of it if it is long."""
    return repr(text if len(text) <= 60 else text[:57] + "...")
