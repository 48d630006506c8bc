"""Peak extra memory: the maximum that a call holds at once, above what was allocated before it.

Every allocation and release of torch's CPU allocator is followed, also those inside operators and in the backward
pass. The peak includes temporaries, tensors saved for backward, the output, the gradients of input and parameters, and
the largest scratch buffer of a kernel, as if it coincided with the peak of the tensors. It excludes tensors that exist
before (input, parameters, the gradient of the output) and memory outside torch's allocator (work space of the matrix
library, Python objects). Sizes are as requested, without alignment.
"""

import os
from collections.abc import Callable, Iterable
from itertools import accumulate

import torch

from bellnet.kernels import kernels


def peak_extra_bytes(call: Callable[[], object]) -> int:
    """Peak bytes of a call, above those allocated before it.

    The call is made twice, so that constants cached by the first call are not counted.
    """
    library = kernels()
    if library is not None:
        library.bellnet_most_bytes()
    of_tensors = peak_tensor_bytes(call)
    return of_tensors + (0 if library is None else int(library.bellnet_most_bytes()))


def peak_tensor_bytes(call: Callable[[], object]) -> int:
    """The same for tensors alone, without scratch buffers of kernels."""
    call()
    # The profiler would print a line for every start and stop; it reads this variable at its first use.
    os.environ.setdefault("KINETO_LOG_LEVEL", "99")
    with torch.autograd.profiler.profile(profile_memory=True) as profiled:
        call()
    events = [event for event in profiled.kineto_results.events() if event.name() == "[memory]"]
    events.sort(key=lambda event: event.start_ns())
    return peak(event.nbytes() for event in events)


def peak(changes: Iterable[int]) -> int:
    """The highest level that a sequence of rises and falls reaches above its start.

    >>> peak([4, 2, -4, 3])
    6
    """
    return max(accumulate(changes, initial=0))
