"""Whether somebody else looks at the operations that run: tracing, transforming or differentiating them."""

import torch
import torch.autograd.forward_ad

_TRACING_MODES = tuple(getattr(torch._C._TorchDispatchModeKey, name) for name in ("FAKE", "PROXY", "FUNCTIONAL"))


def is_transformed() -> bool:
    """Whether operations are being traced or transformed, so that they should be plain and functional."""
    return torch.compiler.is_compiling() or _in_torch_func() or _in_tracing_mode()


def is_watched() -> bool:
    """Whether somebody wants to differentiate, trace or transform what is done.

    A tangent of forward-mode differentiation is carried by every tensor: nothing may be detached from it, taken from
    an earlier pass or written into memory that was used before.
    """
    return torch.is_grad_enabled() or torch.autograd.forward_ad._current_level >= 0 or is_transformed()


def may_write_in_place() -> bool:
    """Whether a product may be added into a tensor in place: `vmap` and `linearize` know no rule for that."""
    return torch.compiler.is_compiling() or not is_transformed()


def _in_torch_func() -> bool:
    # torch.autograd.Function itself asks this; there is no public name for the question.
    return torch._C._are_functorch_transforms_active()


def _in_tracing_mode() -> bool:
    return any(torch._C._get_dispatch_mode(key) is not None for key in _TRACING_MODES)
