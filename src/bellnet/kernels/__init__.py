"""Compiled kernels: what runs layers, products and pooling on a CPU, in float32 and float64.

They are plain C, compiled for each kind of processor when the package is installed (`build_kernels.py`). Without them
torch operations run, and a warning is issued.
"""

import ctypes
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import torch

from bellnet.kernels.structs import digest, size_differences

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
            f"Install it again where there is a C compiler, or set {DISABLE_VARIABLE}=1 to have it so.",
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
        raise OSError("no C compiler was found when it was installed")
    # Threads are those of OpenMP, whose library torch has loaded already.
    library = ctypes.CDLL(str(path))
    library.bellnet_sources.restype = ctypes.c_int64
    if library.bellnet_sources() != digest(SOURCES):
        raise OSError("they were made of other sources than those beside them")
    library.bellnet_most_bytes.restype = ctypes.c_int64
    if wrong := size_differences(library):
        raise OSError(f"structs.py reads other structs than the library has: {wrong}")
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
