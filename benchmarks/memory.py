"""Peak extra memory: the most that a call holds at once, above what was there when it began.

Every allocation and release of torch's CPU allocator is followed, also those inside operators and in the backward
pass. Counted is all that the call allocates itself: temporaries, what is saved for the backward pass, the output, and
the gradients of input and parameters; and the most that a kernel of ours takes for a moment, as if that were when most
is held. Not counted is what was there before (input, parameters, the gradient that comes back from the output), and
what else does not pass through torch's allocator: the work space of the matrix library, and Python objects. Sizes are
as requested, without what the allocator adds for alignment.
"""

import os
from collections.abc import Callable, Iterable
from itertools import accumulate

import torch

from bellnet.kernels import kernels


def peak_extra_bytes(call: Callable[[], object]) -> int:
    """The most bytes that the call held at once, above what was there when it began.

    The call is made twice: constants that are made in the first call and kept are not counted.
    """
    library = kernels()
    if library is not None:
        library.bellnet_most_bytes()
    of_tensors = peak_tensor_bytes(call)
    return of_tensors + (0 if library is None else int(library.bellnet_most_bytes()))


def peak_tensor_bytes(call: Callable[[], object]) -> int:
    """The same for tensors alone, without what kernels take for a moment."""
    call()
    # The profiler would print a line for every start and stop; it looks at this when it is first used.
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
