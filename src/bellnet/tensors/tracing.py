"""What is active around a call: tracing, transforms and hooks on saved tensors; caches outside of all that."""

from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

import torch
import torch.autograd.forward_ad
from torch import Tensor
from torch._functorch.pyfunctorch import temporarily_clear_interpreter_stack
from torch.utils._python_dispatch import _disable_current_modes

from bellnet.errors import TensorError

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

    def cached_with(self, others: Sequence[object], key: Hashable, make: Callable[[], Made]) -> Made:
        """A result that depends on other objects as well, cached here as long as they exist."""
        cache: Cached = self
        for other in others:
            further: WeakKeyDictionary[object, Cached] = cache.cached("with others", WeakKeyDictionary)
            cache = further.setdefault(other, Cached())
        return cache.cached(key, make)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_results"}


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
