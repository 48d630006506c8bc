"""What can go wrong, one class for each kind of mistake.

Every error is also a `ValueError`, so code that knows nothing of bellnet can catch it. A message names the call,
what was expected, what came, and the way out. What is done all the same, though hardly meant, is a warning.
"""


class BellnetError(ValueError):
    """Something bellnet cannot do with what it was given."""


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
    """A name that torch's tensors have was asked of a tensor over nodes that knows more than they do."""


class DeclarationError(BellnetError):
    """An input that is not what was declared of it, for instance not symmetric."""


class SupportError(BellnetError):
    """A list of tuples that cannot carry the values of a sparse tensor."""


class DataError(BellnetError):
    """Graphs or files that cannot be read as what they claim to be."""


class EquivarianceError(BellnetError, AssertionError):
    """A module that was claimed to be equivariant, invariant or blind to padding, and is not."""


class MissingExtraError(BellnetError, ImportError):
    """An optional package that this call needs is not installed."""


class ConversionError(BellnetError):
    """A model, or a part of it, that cannot be written as a network of bellnet."""


class SpecWarning(UserWarning):
    """A spec that can be read, but was probably meant otherwise."""


def as_written(value: object) -> str:
    """A value as messages show it: as Python writes it, if it does; numbers of thousands of digits it does not."""
    try:
        return repr(value)
    except ValueError:
        return f"<{type(value).__name__} too long to be written>"
