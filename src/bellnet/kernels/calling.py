"""Loading and calling kernels: the one place where tensors are checked before a pointer to their memory is taken."""

import ctypes
import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import torch
from torch import Tensor
from torch.nn import Parameter

from bellnet.errors import SupportError, TensorError
from bellnet.kernels.structs import digest, size_differences
from bellnet.tensors.tracing import no_transforms

SOURCES = Path(__file__).parent
FOLDER_VARIABLE = "BELLNET_KERNELS"
"""The environment variable that names another folder of compiled libraries, as `make sanitize` does."""
DISABLE_VARIABLE = "BELLNET_WITHOUT_KERNELS"
"""The environment variable that disables kernels."""
VARIANTS = ("AVX512", "AVX2", "DEFAULT")
"""The kinds of processors that kernels are built for; each runs the variants after its own as well."""
DTYPES = {torch.float32: "f32", torch.float64: "f64"}
"""The suffix of the functions for a dtype."""


class Switch:
    """The number of active blocks of `disabled`, in all threads."""

    n_blocks = 0


@contextmanager
def disabled() -> Iterator[None]:
    """Run torch operations in place of kernels inside the block, forward and backward, in all threads.

    >>> from bellnet import kernels
    >>> with kernels.disabled():
    ...     print(kernels.are_disabled())
    True
    """
    Switch.n_blocks += 1
    try:
        yield
    finally:
        Switch.n_blocks -= 1


def are_disabled() -> bool:
    """Whether a block of `disabled` is active."""
    return Switch.n_blocks > 0


@cache
def kernels() -> ctypes.CDLL | None:
    """The library of kernels for this processor; None if it was not built or is disabled."""
    if os.environ.get(DISABLE_VARIABLE):
        return None
    try:
        return _load(_best_built())
    except OSError as error:
        warnings.warn(
            f"bellnet runs without its compiled kernels: {error}. Layers on a CPU take about twice as long.\n"
            f"Reinstall it where there is a C compiler, or set {DISABLE_VARIABLE}=1 to silence this warning.",
            stacklevel=2,
        )
        return None


def _folder() -> Path:
    return Path(os.environ.get(FOLDER_VARIABLE) or SOURCES / "built")


def _best_built() -> Path:
    """The library for this processor, or for a lesser one where the compiler could not build that."""
    paths = [_folder() / f"kernels-{name}.so" for name in VARIANTS[VARIANTS.index(processor()) :]]
    return next((path for path in paths if path.exists()), paths[0])


def _load(path: Path) -> ctypes.CDLL:
    if not path.exists():
        raise OSError("there was no C compiler when it was installed")
    # Threads are those of OpenMP, whose library torch has loaded already.
    library = ctypes.CDLL(str(path))
    library.bellnet_sources.restype = ctypes.c_int64
    if library.bellnet_sources() != digest(SOURCES):
        raise OSError("they were built from other sources")
    library.bellnet_most_bytes.restype = ctypes.c_int64
    if wrong := size_differences(library):
        raise OSError(f"the structs of structs.py and of the library differ: {wrong}")
    return library


def processor() -> str:
    """The best variant that torch uses and that this processor has all instructions of."""
    by_torch = torch.backends.cpu.get_cpu_capability()
    wanted = VARIANTS.index(by_torch) if by_torch in VARIANTS else len(VARIANTS) - 1
    return VARIANTS[max(wanted, len(VARIANTS) - 1 - _supported())]


def _supported() -> int:
    """The level of the instruction sets of this processor: 2 for x86-64-v4, 1 for x86-64-v3, else 0.

    AVX-512 or AVX2 alone are not enough: compilers also use BMI, LZCNT and MOVBE, which some machines lack.
    """
    path = _folder() / "kernels-DEFAULT.so"
    if not path.exists():
        return 0
    library = ctypes.CDLL(str(path))
    try:
        return int(library.bellnet_variant())
    except AttributeError:  # built from other sources, which is reported when a variant is loaded
        return 0


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
