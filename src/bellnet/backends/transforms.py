"""What an autograd function has to know of its surroundings: transforms that are active, and hooks on saved tensors."""

from typing import Any

import torch
import torch.autograd.forward_ad
from torch import Tensor

from bellnet.errors import TensorError
from bellnet.tensors.tracing import transforms_active


def is_traced() -> bool:
    """Whether operations are traced, transformed or differentiated forwards.

    A tangent of forward-mode differentiation is carried by every tensor: nothing may be detached from it, taken from
    an earlier pass or written into memory that was used before.
    """
    return transforms_active() or torch.autograd.forward_ad._current_level >= 0


def is_batched(tensor: Tensor) -> bool:
    """Whether a tensor stands for several, as in `torch.autograd.grad(..., is_grads_batched=True)`."""
    return torch._C._functorch.is_legacy_batchedtensor(tensor)


def save(ctx: Any, *tensors: Tensor | None) -> None:
    """Save tensors for backward, with what `saved` has to find again."""
    ctx.save_for_backward(*tensors)
    ctx.saved_like = tuple(None if one is None else (one.shape, one.dtype, one.device, one.layout) for one in tensors)


def saved(ctx: Any) -> tuple[Any, ...]:
    """The saved tensors of an autograd function, with their dtypes.

    Hooks on saved tensors may return others. A dtype is converted back, as torch's own operations promote it; another
    shape, device or layout is an error.
    """
    return tuple(_as_saved(*pair) for pair in zip(ctx.saved_tensors, ctx.saved_like, strict=True))


def _as_saved(tensor: Tensor | None, like: tuple[torch.Size, torch.dtype, torch.device, torch.layout] | None) -> Any:
    if tensor is None or like is None:
        return tensor
    shape, dtype, device, layout = like
    if (tensor.shape, tensor.device, tensor.layout) != (shape, device, layout):
        raise TensorError(
            f"backward: a tensor of shape {tuple(shape)}, {layout}, on {device} was saved, but a saved-tensor hook "
            f"returned one of shape {tuple(tensor.shape)}, {tensor.layout}, on {tensor.device}.\n"
            "Return the same values from the unpack hook of torch.autograd.graph.saved_tensors_hooks."
        )
    return tensor if tensor.dtype == dtype else tensor.to(dtype)
