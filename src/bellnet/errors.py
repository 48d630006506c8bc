"""Exceptions, one class for each kind of mistake, and helpers for their messages.

Every error is also a `ValueError`. A message names the call, what was expected, what it got, and how to fix it. Input
that is valid but probably unintended is a warning.
"""

from difflib import get_close_matches
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


class BellnetError(ValueError):
    """The base class of all errors of bellnet."""


class SpecError(BellnetError):
    """A spec string that does not describe a map between tensors over node sets."""


class OptionError(BellnetError):
    """An option with an unknown value, or options that exclude each other."""


class ShapeError(BellnetError):
    """A tensor whose axes do not fit the spec."""


class SizesError(BellnetError):
    """Sizes of node sets that are missing, negative, too large, or of the wrong form."""


class TensorError(BellnetError):
    """A tensor of the wrong type: its dtype, its device, or not a tensor at all."""


class NotATensorError(BellnetError, AttributeError):
    """An attribute of `torch.Tensor` that a `Padded` or a `Sparse` does not have."""


class DeclarationError(BellnetError):
    """An input without a declared property, for instance one that is not symmetric."""


class SupportError(BellnetError):
    """An index, or a support, that does not fit the values of a sparse tensor."""


class DataError(BellnetError):
    """Graphs or files with invalid content."""


class EquivarianceError(BellnetError, AssertionError):
    """A module that is not equivariant, invariant or padding-invariant as a check expects."""


class MissingExtraError(BellnetError, ImportError):
    """A missing optional package that a call needs."""


class ConversionError(BellnetError):
    """A model, or a part of it, that cannot be converted to a network of bellnet."""


class SpecWarning(UserWarning):
    """A valid spec that was probably meant otherwise."""


def as_written(value: object) -> str:
    """The repr of a value for messages; Python has none for integers of thousands of digits."""
    try:
        return repr(value)
    except ValueError:
        return f"<{type(value).__name__} too long to be written>"


def type_name(value: object) -> str:
    """The full name of the type of a value, for messages."""
    return f"{type(value).__module__}.{type(value).__qualname__}"


def count_of(number: int, noun: str, plural: str | None = None) -> str:
    """A number with its noun, for messages and tables.

    >>> count_of(1, "map"), count_of(4140, "map"), count_of(2, "bias", "biases")
    ('1 map', '4,140 maps', '2 biases')
    """
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def did_you_mean(word: str, known: "Iterable[str]") -> str:
    """A suggestion of the closest known word, or an empty string if none is close; case does not matter.

    >>> did_you_mean("mutagg", ["MUTAG", "PROTEINS"]), did_you_mean("x", ["MUTAG"])
    ('Did you mean MUTAG?', '')
    """
    spellings = {name.lower(): name for name in known}
    nearest = get_close_matches(word.lower(), spellings, n=1)
    return f"Did you mean {spellings[nearest[0]]}?" if nearest else ""
