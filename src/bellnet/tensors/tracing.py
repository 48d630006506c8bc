"""Whether operations are traced or transformed, and a context that is outside of all that, for cached tensors."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

import torch
from torch import Tensor
from torch._functorch.pyfunctorch import temporarily_clear_interpreter_stack
from torch.utils._python_dispatch import _disable_current_modes

_TRACING_MODES = tuple(getattr(torch._C._TorchDispatchModeKey, name) for name in ("FAKE", "PROXY", "FUNCTIONAL"))


def transforms_active() -> bool:
    """Whether operations are traced or transformed, so that they must be plain and without side effects."""
    if torch.compiler.is_compiling() or torch._C._are_functorch_transforms_active():
        return True
    if not torch._C._len_torch_dispatch_stack():
        return False
    return any(torch._C._get_dispatch_mode(key) is not None for key in _TRACING_MODES)


def is_concrete(tensor: Tensor) -> bool:
    """Whether the values of a tensor can be read: not while a graph is traced, nor on the meta device."""
    return type(tensor) is Tensor and not tensor.is_meta and not transforms_active()


def no_transforms() -> AbstractContextManager[None]:
    """A context for tensors that are cached beyond a call: no dispatch mode, transform, inference mode or gradient."""
    active = torch._C._len_torch_dispatch_stack() or torch._C._are_functorch_transforms_active()
    if torch.compiler.is_compiling() or not (active or torch.is_inference_mode_enabled()):
        return torch.no_grad()
    return _outside_of_modes()


@contextmanager
def _outside_of_modes() -> Iterator[None]:
    with (
        _disable_current_modes(),
        temporarily_clear_interpreter_stack(),
        torch.inference_mode(False),
        torch.no_grad(),
    ):
        yield
