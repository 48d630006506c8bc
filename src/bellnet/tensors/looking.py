"""Looking at what was given: the numbers in a tensor, and what a thing is called."""

import torch
from torch import Tensor


def can_look_at(tensor: Tensor) -> bool:
    """Whether the numbers in a tensor can be looked at: not while a graph is traced, nor on the meta device."""
    if torch.compiler.is_compiling() or torch._C._are_functorch_transforms_active():
        return False
    return type(tensor) is Tensor and not tensor.is_meta


def kind_of(thing: object) -> str:
    """The full name of the type of a thing."""
    return f"{type(thing).__module__}.{type(thing).__qualname__}"
