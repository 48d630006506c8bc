"""Compiled kernels: what runs layers and pooling on a CPU, in single and double precision, where they were built.

They are plain C without torch's headers, compiled when the package is installed (`build_kernels.py`), once for each
kind of processor that torch tells apart. Where they are missing torch's operations run instead, and a warning says so.
"""

import ctypes
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import torch

from bellnet.kernels.sources import digest
from bellnet.kernels.structs import layout_differences

PLACE = Path(__file__).parent
OTHERS = "BELLNET_KERNELS"
"""The environment variable that names another folder of compiled libraries, as `make sanitize` does."""
WITHOUT = "BELLNET_WITHOUT_KERNELS"
"""The environment variable that turns kernels off."""
PROCESSORS = ("AVX512", "AVX2", "DEFAULT")
"""The kinds that kernels are built for, each of which knows all that later ones do."""
TYPES = {torch.float32: "f32", torch.float64: "f64"}
"""How the functions for numbers of a type are called."""


class _Switch:
    n_blocks = 0  # of `disabled` that are active, in all threads


@contextmanager
def disabled() -> Iterator[None]:
    """Run torch operations in place of kernels inside the block, forward and backward, in all threads.

    >>> from bellnet import kernels
    >>> with kernels.disabled():
    ...     print(kernels.are_disabled())
    True
    """
    _Switch.n_blocks += 1
    try:
        yield
    finally:
        _Switch.n_blocks -= 1


def are_disabled() -> bool:
    """Whether a block of `disabled` is active."""
    return _Switch.n_blocks > 0


@cache
def kernels() -> ctypes.CDLL | None:
    """The library of kernels for this processor; None if it was not built or is not wanted."""
    if os.environ.get(WITHOUT):
        return None
    try:
        return _loaded(_best_built())
    except OSError as error:
        warnings.warn(
            f"bellnet runs without its compiled kernels: {error}. Layers on a CPU take about twice as long.\n"
            f"Install it again where there is a C compiler, or set {WITHOUT}=1 to have it so.",
            stacklevel=2,
        )
        return None


def _folder() -> Path:
    return Path(os.environ.get(OTHERS) or PLACE / "built")


def _best_built() -> Path:
    """The library for this processor, or for a lesser one where the compiler did not know how to build that."""
    places = [_folder() / f"kernels-{name}.so" for name in PROCESSORS[PROCESSORS.index(processor()) :]]
    return next((one for one in places if one.exists()), places[0])


def _loaded(place: Path) -> ctypes.CDLL:
    if not place.exists():
        raise OSError("no C compiler was found when it was installed")
    # Threads are those of OpenMP, whose library torch has loaded already.
    library = ctypes.CDLL(str(place))
    library.bellnet_sources.restype = ctypes.c_int64
    if library.bellnet_sources() != digest(PLACE):
        raise OSError("they were made of other sources than those beside them")
    library.bellnet_most_bytes.restype = ctypes.c_int64
    if wrong := layout_differences(library):
        raise OSError(f"structs.py declares other structs than the library: {wrong}")
    return library


def processor() -> str:
    """The best variant that torch uses and that this processor has all instructions of."""
    by_torch = torch.backends.cpu.get_cpu_capability()
    wanted = PROCESSORS.index(by_torch) if by_torch in PROCESSORS else len(PROCESSORS) - 1
    return PROCESSORS[max(wanted, len(PROCESSORS) - 1 - _supported())]


def _supported() -> int:
    """The level of the instruction sets of this processor: 2 for x86-64-v4, 1 for x86-64-v3, else 0.

    AVX-512 or AVX2 alone are not enough: compilers also use BMI, LZCNT and MOVBE, which some machines lack.
    """
    place = _folder() / "kernels-DEFAULT.so"
    if not place.exists():
        return 0
    library = ctypes.CDLL(str(place))
    try:
        return int(library.bellnet_variant())
    except AttributeError:  # built from other sources, which is reported when a variant is loaded
        return 0
