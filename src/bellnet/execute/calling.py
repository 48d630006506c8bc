"""What compiled kernels are called with: which tensors they take, as they lie in memory, and how many threads."""

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import Parameter

from bellnet.kernels import TYPES, kernels

FEW_MULTIPLICATIONS = 2**17
"""So many are worth a thread."""


def can_call(tensors: Sequence[Tensor]) -> bool:
    """Whether there are kernels for such tensors, and nobody looks."""
    like = tensors[0]
    if like.dtype not in TYPES or like.device.type != "cpu" or are_watched(tensors):
        return False
    return kernels() is not None


def are_watched(tensors: Sequence[Tensor]) -> bool:
    """Whether somebody looks at what is done to tensors, operation by operation; of kernels nothing would be seen."""
    return bool(torch._C._len_torch_dispatch_stack()) or not are_ordinary(tensors)


def are_ordinary(tensors: Sequence[Tensor]) -> bool:
    """Whether tensors are of torch's own classes; others need not have memory, or mean what is in it."""
    return all(type(one) in (Tensor, Parameter) for one in tensors)


def as_they_are(tensors: Sequence[Tensor]) -> list[Tensor]:
    """Tensors that have in memory what they mean, one number after the other."""
    return [(one.clone() if one._is_zerotensor() else one.resolve_neg()).contiguous() for one in tensors]


def n_threads(work: int, worth_one: int | None = None) -> int:
    """How many threads take part in some work, multiplications unless it is said how much is worth a thread."""
    return min(torch.get_num_threads(), 1 + work // (worth_one or FEW_MULTIPLICATIONS))
