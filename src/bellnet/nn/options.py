"""Checks of the options that several modules share."""

from collections.abc import Sequence
from operator import index

from bellnet.errors import OptionError, as_written

WIDEST = 2**31
"""Layers have fewer channels, and products of two such numbers can be counted."""


def check_choice(call: str, argument: str, value: object, choices: tuple[str, ...]) -> str:
    """The value, if it is one of the choices."""
    for choice in choices:
        if value == choice:
            return choice
    raise OptionError(f"{call}: {argument} must be one of {', '.join(map(repr, choices))}, not {as_written(value)}.")


def check_channels_of_all(call: str, argument: str, value: object, n_tensors: int) -> tuple[int, ...]:
    """The number of channels of each of several tensors: one for each, or one for all."""
    if not isinstance(value, Sequence) or isinstance(value, str):
        return (check_channels(call, argument, value),) * n_tensors
    if n_tensors == 1 or len(value) != n_tensors:
        wanted = "one number" if n_tensors == 1 else f"{n_tensors} numbers, one for each tensor, or one for all"
        raise OptionError(f"{call}: {argument} must be {wanted}, not {as_written(value)}.")
    return tuple(check_channels(call, f"{argument}[{number}]", one) for number, one in enumerate(value))


def check_channels(call: str, argument: str, value: object) -> int:
    """The value, if it can be a number of channels."""
    try:
        number = 0 if isinstance(value, bool) else index(value)  # type: ignore[arg-type]
    except TypeError:
        number = 0
    if number >= WIDEST:
        raise OptionError(f"{call}: {argument} must be below 2**31; it is larger.")
    if number >= 1:
        return number
    raise OptionError(f"{call}: {argument} must be a whole number from 1 up, not {as_written(value)}.")
