"""One call as it is timed: forward and backward, leaving nothing behind."""

from collections.abc import Callable, Sequence

from torch import Tensor


def run_once(forward: Callable[[], Tensor], upstream: Tensor, needed: Sequence[Tensor]) -> None:
    """Run forward, take the gradients of what is needed, and drop them."""
    forward().backward(upstream)
    for tensor in needed:
        tensor.grad = None
