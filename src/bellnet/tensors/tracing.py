"""Whether operations are traced or transformed, and how tensors are cached outside of all that."""

from collections.abc import Callable, Hashable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, TypeVar

import torch
from torch import Tensor
from torch._functorch.pyfunctorch import temporarily_clear_interpreter_stack
from torch.utils._python_dispatch import _disable_current_modes

Made = TypeVar("Made")
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


class Cached:
    """An object with results that depend on it alone; each is computed once. Copies and pickles have none of them."""

    def cached(self, key: Hashable, make: Callable[[], Made]) -> Made:
        """The result of this key."""
        results: dict[Hashable, Any] = self.__dict__.setdefault("_results", {})
        if key not in results:
            with no_transforms():
                results[key] = make()
        found: Made = results[key]
        return found

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_results"}
