"""Compiled kernels: what runs layers and pooling on a CPU, in single and double precision, where they were built.

They are plain C without torch's headers, compiled when the package is installed (`build_kernels.py`), once for each
kind of processor that torch tells apart. Where they are missing torch's operations run instead, and a warning says so.
"""

import ctypes
import os
import warnings
from functools import cache
from pathlib import Path

import torch

from bellnet.kernels.sources import digest

PLACE = Path(__file__).parent
WITHOUT = "BELLNET_WITHOUT_KERNELS"
"""The environment variable that turns kernels off."""
PROCESSORS = ("AVX512", "AVX2", "DEFAULT")
"""The kinds that kernels are built for, each of which knows all that later ones do."""
BETWEEN = ("moments", "between", "between_sums", "between_back")
TYPES = {torch.float32: "f32", torch.float64: "f64"}
"""How the functions for numbers of a type are called."""


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


def _best_built() -> Path:
    """The library for this processor, or for a lesser one where the compiler did not know how to build that."""
    places = [PLACE / "built" / f"kernels-{name}.so" for name in PROCESSORS[PROCESSORS.index(processor()) :]]
    return next((one for one in places if one.exists()), places[0])


def _loaded(place: Path) -> ctypes.CDLL:
    if not place.exists():
        raise OSError("no C compiler was found when it was installed")
    # Threads are those of OpenMP, whose library torch has loaded already.
    library = ctypes.CDLL(str(place))
    library.bellnet_sources.restype = library.bellnet_most_bytes.restype = ctypes.c_int64
    if library.bellnet_sources() != digest(PLACE):
        raise OSError("they were made of other sources than those beside them")
    for kind in TYPES.values():
        for name in ("forward", "backward", "contract", "pool", "unpool", *BETWEEN):
            function = getattr(library, f"bellnet_{name}_{kind}")
            function.restype, function.errcheck = ctypes.c_int64, _check
    return library


def _check(failed: int, *_: object) -> int:
    """What ctypes asks about every call of a kernel."""
    if failed:
        raise MemoryError("bellnet's kernels found no memory for what they need for a moment.")
    return failed


def processor() -> str:
    """What torch calls the abilities of this processor, as far as there are kernels for them."""
    said = torch.backends.cpu.get_cpu_capability()
    return said if said in PROCESSORS else PROCESSORS[-1]
