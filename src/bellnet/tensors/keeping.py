"""Whether somebody traces or transforms what is done, and making what is kept nevertheless."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

import torch
from torch._functorch.pyfunctorch import temporarily_clear_interpreter_stack
from torch.utils._python_dispatch import _disable_current_modes

_TRACING_MODES = tuple(getattr(torch._C._TorchDispatchModeKey, name) for name in ("FAKE", "PROXY", "FUNCTIONAL"))


def is_transformed() -> bool:
    """Whether operations are being traced or transformed, so that they should be plain and functional."""
    if torch.compiler.is_compiling() or torch._C._are_functorch_transforms_active():
        return True
    if not torch._C._len_torch_dispatch_stack():
        return False
    return any(torch._C._get_dispatch_mode(key) is not None for key in _TRACING_MODES)


def making_constants() -> AbstractContextManager[None]:
    """For what is kept beyond a call: it must not belong to the mode, the transform or the graph of this one."""
    watched = torch._C._len_torch_dispatch_stack() or torch._C._are_functorch_transforms_active()
    if torch.compiler.is_compiling() or not (watched or torch.is_inference_mode_enabled()):
        return torch.no_grad()
    return _apart_from_modes()


@contextmanager
def _apart_from_modes() -> Iterator[None]:
    with (
        _disable_current_modes(),
        temporarily_clear_interpreter_stack(),
        torch.inference_mode(False),
        torch.no_grad(),
    ):
        yield
