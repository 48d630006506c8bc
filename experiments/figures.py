"""What a figure in a record can be. Records are lines of text: whatever JSON can write may stand there."""

from math import inf

MOST = 1e100
"""Figures are smaller: networks compute in single precision. So their sums are numbers, and can be drawn."""


def is_number(value: object) -> bool:
    """Whether it is a number at all, which may be not-a-number or have more digits than a float can say."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def is_amount(value: float) -> bool:
    """Whether a number can be a time, or how many there are of something."""
    return 0 <= value <= MOST


def is_share(value: float) -> bool:
    """Whether a number can be an accuracy."""
    return 0 <= value <= 1


def is_error(value: float) -> bool:
    """Whether a number can be an error; where training has diverged it is infinite or not-a-number."""
    return is_amount(value) or value == inf or value != value
