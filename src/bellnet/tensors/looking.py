"""Looking at what was given: the numbers in a tensor, and what a thing is called."""

from torch import Tensor

from bellnet.tensors.keeping import is_transformed


def can_look_at(tensor: Tensor) -> bool:
    """Whether the numbers in a tensor can be looked at: not while a graph is traced, nor on the meta device."""
    return type(tensor) is Tensor and not tensor.is_meta and not is_transformed()


def kind_of(thing: object) -> str:
    """The full name of the type of a thing."""
    return f"{type(thing).__module__}.{type(thing).__qualname__}"
