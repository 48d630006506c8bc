"""Calls of kernels: the one place where tensors are checked before a pointer to their memory is taken."""

import ctypes
from collections.abc import Callable, Sequence

import torch
from torch import Tensor
from torch.nn import Parameter

from bellnet.errors import SupportError, TensorError
from bellnet.kernels import DTYPES, Switch, kernels
from bellnet.tensors.tracing import no_transforms

MULTIPLICATIONS_PER_THREAD = 2**17
"""Multiplications of a call for each thread."""
Kernel = Callable[[object], int]
_CLASSES = (Tensor, Parameter)
with no_transforms():
    _OTHER_KEYS = ~torch._C._dispatch_keys(torch.zeros(1, device="cpu")).raw_repr()


def can_call(tensors: Sequence[Tensor]) -> bool:
    """Whether kernels can run on such tensors: plain ones on a CPU, and no dispatch mode is active."""
    if tensors[0].dtype not in DTYPES or needs_torch_operations(tensors):
        return False
    return kernels() is not None


def needs_torch_operations(tensors: Sequence[Tensor]) -> bool:
    """Whether kernels are disabled, a dispatch mode is active or a tensor is not plain: then torch operations run."""
    return Switch.n_blocks > 0 or torch._C._len_torch_dispatch_stack() > 0 or not all(map(is_plain, tensors))


def is_plain(tensor: Tensor) -> bool:
    """Whether a tensor is a strided one of torch's own classes on a CPU whose memory holds its values.

    All others have further dispatch keys, among them functional, batched, nested and quantized tensors, and those that
    are negated or zero only when they are read.
    """
    return type(tensor) in _CLASSES and not torch._C._dispatch_keys(tensor).raw_repr() & _OTHER_KEYS


def fits(tensor: Tensor, shape: tuple[int, ...], dtype: torch.dtype) -> bool:
    """Whether a tensor is plain and has a shape and a dtype."""
    return tensor.dtype is dtype and tensor.shape == shape and is_plain(tensor)


def pointer(
    name: str, tensor: Tensor | None, shape: tuple[int, ...], dtype: torch.dtype, owners: list[object]
) -> int | None:
    """The address of memory that holds the values of a tensor in order, aligned; None for None.

    Args:
        name: How an error names the tensor.
        tensor: The tensor. It is copied if its memory does not hold its values in order.
        shape: The shape that the kernel expects.
        dtype: The dtype that it expects.
        owners: Receives the tensor that owns the memory, which has to live until the kernel returns.
    """
    if tensor is None:
        return None
    if not fits(tensor, shape, dtype):
        raise TensorError(
            f"a kernel cannot use {name}: expected a plain {dtype} tensor of shape {tuple(shape)} on the CPU, got "
            f"{type(tensor).__name__} of {tensor.dtype}, shape {tuple(tensor.shape)}, layout {tensor.layout} on "
            f"{tensor.device}.\nPass a plain torch.Tensor, and return from hooks what they were given."
        )
    return address(tensor, owners)


def address(tensor: Tensor, owners: list[object]) -> int:
    """The same for a tensor that fits, or a new one."""
    if not tensor.is_contiguous():
        tensor = tensor.detach().clone(memory_format=torch.contiguous_format)
    at = tensor.data_ptr()
    if at & 7 and at % tensor.element_size():
        tensor = tensor.detach().clone()
        at = tensor.data_ptr()
    if not at and tensor.numel():
        raise TensorError(
            f"a kernel cannot use a tensor of shape {tuple(tensor.shape)} whose storage was freed.\n"
            "Resize its storage back first: x.untyped_storage().resize_(n_bytes)."
        )
    owners.append(tensor)
    return at


def table_pointer(name: str, table: Tensor, length: int, limit: int, owners: list[object]) -> int | None:
    """The address of a table of rows, which kernels trust: each is below a limit, or -1."""
    if table.numel() and not (int(table.min()) >= -1 and int(table.max()) < limit):
        raise SupportError(
            f"a kernel cannot use {name}: expected rows from -1 to {limit - 1}, got {int(table.min())} to "
            f"{int(table.max())}.\nLeave x.support as it is, and make another one: Sparse(index, values, sizes)."
        )
    return pointer(name, table, (length,), torch.int64, owners)


def function(name: str, dtype: torch.dtype) -> Kernel:
    """The exported function of that name for a dtype; it takes a pointer to a struct with its arguments."""
    found: Kernel = getattr(kernels(), f"bellnet_{name}_{DTYPES[dtype]}")
    return found


def call(kernel: Kernel, arguments: ctypes.Structure) -> None:
    """Call a kernel with its arguments; what they point to has to live until this returns."""
    if kernel(ctypes.byref(arguments)):
        raise MemoryError("bellnet's kernels could not allocate their scratch buffers.")


def n_threads(work: int, per_thread: int | None = None) -> int:
    """The number of threads for some work, by default counted in multiplications."""
    return min(torch.get_num_threads(), 1 + work // (per_thread or MULTIPLICATIONS_PER_THREAD))
