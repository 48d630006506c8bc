"""Whether torch is transforming the code that runs: compiling, exporting or vmapping it."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch


def is_transformed() -> bool:
    """Whether operations are being traced or transformed, so that they should be plain and functional."""
    return torch.compiler.is_compiling() or _in_torch_func()


def may_write_in_place() -> bool:
    """Whether a product may be added into a tensor in place: `vmap` knows no rule for that."""
    return not _in_torch_func()


@contextmanager
def making_constants() -> Iterator[None]:
    """For what is kept beyond a call: it must not belong to the mode or the graph of this one."""
    with torch.inference_mode(False), torch.no_grad():
        yield


def _in_torch_func() -> bool:
    # torch.autograd.Function itself asks this; there is no public name for the question.
    return torch._C._are_functorch_transforms_active()
