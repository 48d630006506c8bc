"""Making what is kept beyond a call."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch.utils._python_dispatch import _disable_current_modes


@contextmanager
def making_constants() -> Iterator[None]:
    """For what is kept beyond a call: it must not belong to the mode, the trace or the graph of this one."""
    if torch.compiler.is_compiling():
        with torch.no_grad():
            yield
    else:
        with _disable_current_modes(), torch.inference_mode(False), torch.no_grad():
            yield
