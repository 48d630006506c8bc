"""A timed call: forward and backward pass, without accumulated gradients; and fresh interpreters."""

import subprocess
import sys
from collections.abc import Callable, Sequence

from torch import Tensor


def run_once(forward: Callable[[], Tensor], upstream: Tensor, needed: Sequence[Tensor]) -> None:
    """Run forward and backward, and drop the gradients of the needed tensors."""
    forward().backward(upstream)
    for tensor in needed:
        tensor.grad = None


def python_output(code: str) -> str:
    """The standard output of a fresh interpreter that runs the code."""
    command = [sys.executable, "-c", code]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, encoding="utf-8").stdout
