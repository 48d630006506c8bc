"""Checks of the options that several modules share."""

from bellnet.errors import OptionError


def check_choice(call: str, argument: str, value: object, choices: tuple[str, ...]) -> str:
    """The value, if it is one of the choices."""
    for choice in choices:
        if value == choice:
            return choice
    raise OptionError(f"{call}: {argument} must be one of {', '.join(map(repr, choices))}, not {value!r}.")


def check_channels(call: str, argument: str, value: object) -> int:
    """The value, if it can be a number of channels."""
    if isinstance(value, int) and not isinstance(value, bool) and value >= 1:
        return value
    raise OptionError(f"{call}: {argument} must be a whole number from 1 up, not {value!r}.")
