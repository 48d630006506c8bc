"""Calls of kernels: the one place where tensors are checked before a pointer to their memory is taken."""

import ctypes
from collections.abc import Sequence
from functools import cache

import torch
from torch import Tensor
from torch.nn import Parameter

from bellnet.errors import SupportError, TensorError
from bellnet.kernels import TYPES, kernels
from bellnet.kernels.structs import BetweenCall, ContractCall, PoolCall, RunCall
from bellnet.tensors.keeping import making_constants

MULTIPLICATIONS_PER_THREAD = 2**17
"""A thread takes part in a call for so many multiplications."""
CALLS = {
    "forward": RunCall,
    "backward": RunCall,
    "contract": ContractCall,
    "pool": PoolCall,
    "unpool": PoolCall,
    "moments": BetweenCall,
    "between": BetweenCall,
    "between_sums": BetweenCall,
    "between_back": BetweenCall,
}
"""For every exported function the struct that it takes a pointer to."""


def can_call(tensors: Sequence[Tensor]) -> bool:
    """Whether kernels can run on such tensors: plain ones on a CPU, and no dispatch mode is active."""
    if tensors[0].dtype not in TYPES or needs_torch_operations(tensors):
        return False
    return kernels() is not None


def needs_torch_operations(tensors: Sequence[Tensor]) -> bool:
    """Whether a dispatch mode is active or a tensor is not a plain one, so that torch's operations have to run."""
    return bool(torch._C._len_torch_dispatch_stack()) or not all(map(is_plain, tensors))


@cache
def _keys() -> tuple[int, int]:
    """The bits of dispatch keys that a plain tensor may not have, and those that its memory may not have."""
    with making_constants():
        one = torch.zeros(1, device="cpu")
        plain = [one, torch._neg_view(one), torch._efficientzerotensor(1, device="cpu")]
        as_is, *lazy = (torch._C._dispatch_keys(tensor).raw_repr() for tensor in plain)
    return ~(as_is | lazy[0] | lazy[1]), ~as_is


def is_plain(tensor: Tensor) -> bool:
    """Whether a tensor is a strided one of torch's own classes on a CPU, neither functional nor batched nor nested."""
    return type(tensor) in (Tensor, Parameter) and not torch._C._dispatch_keys(tensor).raw_repr() & _keys()[0]


def fits(tensor: Tensor, shape: Sequence[int], dtype: torch.dtype) -> bool:
    """Whether a tensor is plain and has a shape and a dtype."""
    return is_plain(tensor) and tensor.dtype == dtype and tensor.shape == tuple(shape)


def pointer(
    name: str, tensor: Tensor | None, shape: Sequence[int], dtype: torch.dtype, keep: list[object]
) -> int | None:
    """The address of memory that holds the values of a tensor in order, aligned; None for None.

    Args:
        name: How an error names the tensor.
        tensor: The tensor. It is copied if its memory does not hold its values in order.
        shape: The shape that the kernel takes for granted.
        dtype: The dtype that it takes for granted.
        keep: Receives the tensor that owns the memory, which has to live until the kernel returns.
    """
    if tensor is None:
        return None
    if not fits(tensor, shape, dtype):
        raise TensorError(
            f"a kernel cannot use {name}: expected a plain {dtype} tensor of shape {tuple(shape)} on the CPU, got "
            f"{type(tensor).__name__} of {tensor.dtype}, shape {tuple(tensor.shape)}, layout {tensor.layout} on "
            f"{tensor.device}.\nPass a plain torch.Tensor, and return from hooks what they were given."
        )
    at = 0
    if tensor.is_contiguous() and not torch._C._dispatch_keys(tensor).raw_repr() & _keys()[1]:
        at = tensor.data_ptr()
    if not at or at % tensor.element_size():
        tensor = tensor.detach().clone(memory_format=torch.contiguous_format)
        at = tensor.data_ptr()
    keep.append(tensor)
    return at


def table_pointer(name: str, table: Tensor, length: int, limit: int, keep: list[object]) -> int | None:
    """The address of a table of row numbers, which kernels trust: each is below a limit, or -1 for none."""
    if table.numel() and not (int(table.min()) >= -1 and int(table.max()) < limit):
        raise SupportError(
            f"a kernel cannot use {name}: expected rows from -1 to {limit - 1}, got {int(table.min())} to "
            f"{int(table.max())}.\nLeave x.support as it is, and make another one: Sparse(index, values, sizes)."
        )
    return pointer(name, table, (length,), torch.int64, keep)


def pointers(
    name: str, tensors: Sequence[Tensor] | None, shapes: Sequence[Sequence[int]], dtype: torch.dtype, keep: list[object]
) -> int | None:
    """The address of an array of pointers, one for each tensor; None for None."""
    if tensors is None:
        return None
    found = [pointer(name, one, shape, dtype, keep) for one, shape in zip(tensors, shapes, strict=True)]
    array = (ctypes.c_void_p * len(found))(*found)
    keep.append(array)
    return ctypes.addressof(array)


def call(name: str, dtype: torch.dtype, arguments: ctypes.Structure) -> None:
    """Call a kernel.

    Args:
        name: One of `CALLS`.
        dtype: Of the tensors.
        arguments: Its struct, filled in; what it points to has to live until the call returns.
    """
    assert type(arguments) is CALLS[name]
    if getattr(kernels(), f"bellnet_{name}_{TYPES[dtype]}")(ctypes.byref(arguments)):
        raise MemoryError("bellnet's kernels could not allocate their scratch buffers.")


def n_threads(work: int, per_thread: int | None = None) -> int:
    """The number of threads for some work, by default counted in multiplications."""
    return min(torch.get_num_threads(), 1 + work // (per_thread or MULTIPLICATIONS_PER_THREAD))
