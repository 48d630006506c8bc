"""Whether somebody else looks at the operations that run."""

import torch
import torch.autograd.forward_ad
from torch import Tensor

from bellnet.tensors.keeping import is_transformed


def wants_plain() -> bool:
    """Whether operations are traced, transformed or differentiated forwards.

    A tangent of forward-mode differentiation is carried by every tensor: nothing may be detached from it, taken from
    an earlier pass or written into memory that was used before.
    """
    return is_transformed() or torch.autograd.forward_ad._current_level >= 0


def is_batched(tensor: Tensor) -> bool:
    """Whether a tensor stands for several, as in `torch.autograd.grad(..., is_grads_batched=True)`."""
    return torch._C._functorch.is_legacy_batchedtensor(tensor)
