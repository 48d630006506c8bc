"""The structs of `common.h` for ctypes, and the check that the library of kernels has the same layout."""

import ctypes
from collections.abc import Iterator
from functools import cache
from itertools import takewhile
from typing import Any

MOST_AXES, MOST_SETS = 12, 64
"""The axes and the node sets that kernels have room for."""
SUM, DIAGONAL, COPY = range(3)
"""What a branch does with an axis."""
LARGEST, TOTAL, MEAN = range(3)
"""What pooling takes of an orbit."""

_Integer, _Pointer = ctypes.c_int64, ctypes.c_void_p
_Axes = _Integer * MOST_AXES


class _Struct(ctypes.Structure):
    """A struct whose integer arrays may be given as shorter sequences; what is left is zero."""

    def __init__(self, **values: Any) -> None:
        for name, kind in _arrays(type(self)):
            if name in values:
                values[name] = kind(*values[name])
        super().__init__(**values)


@cache
def _arrays(struct: type[ctypes.Structure]) -> list[tuple[str, Any]]:
    return [(name, kind) for name, kind, *_ in struct._fields_ if issubclass(kind, ctypes.Array)]


class Bundle(_Struct):
    """Contractions of one rank side by side."""

    _fields_ = [
        *((name, _Integer) for name in ("rank", "width", "rows", "place", "factors")),
        *((name, _Integer) for name in ("first_branch", "n_branches", "level")),
        *((name, _Axes) for name in ("length", "set", "stride")),
        *(("row_factors", _Pointer), ("n_row_factors", _Integer), ("factor_width", _Integer)),
    ]


class Branch(_Struct):
    """Columns of a bundle that come from a parent."""

    _fields_ = [
        *((name, _Integer) for name in ("child", "kind", "stays", "goes", "column", "child_column", "width")),
        ("step", _Axes),
        *((name, _Pointer) for name in ("whole", "order", "bounds")),
    ]


class Level(_Struct):
    """The bundles that are mixed at one rank."""

    _fields_ = [("bundle", _Integer * 2), *((name, _Integer) for name in ("n_swaps", "first_swap", "matrices"))]


class Side(ctypes.Structure):
    """All bundles of the inputs, or of the outputs."""

    _fields_ = [
        *((name, _Integer) for name in ("n_roots", "n_bundles", "memory")),
        *(("bundles", _Pointer), ("branches", _Pointer)),
    ]


class Block(ctypes.Structure):
    """The weight of one basis map in the matrices of its level."""

    _fields_ = [(name, _Integer) for name in ("weight", "map", "rows", "columns", "place", "step", "n_terms")]


class Bias(ctypes.Structure):
    """A part of the bias of an output."""

    _fields_ = [(name, _Integer) for name in ("target", "place", "width")]


class Swap(_Struct):
    """The permutation of the axes of a level."""

    _fields_ = [("n_axes", _Axes), ("found", _Pointer)]


class Program(_Struct):
    """A plan for so many channels and nodes."""

    _fields_ = [
        ("side", Side * 2),
        *((name, _Integer) for name in ("n_levels", "n_sets", "n_factors", "is_listed")),
        *((name, _Integer) for name in ("n_matrices", "n_blocks", "has_gaps", "n_biases")),
        *((name, _Pointer) for name in ("levels", "swaps", "blocks", "biases")),
    ]


class Prefix(_Struct):
    """A node of the tree of equality patterns."""

    _fields_ = [("n_blocks", _Integer), ("axis", _Axes), ("child", _Integer * (MOST_AXES + 1))]


class Orbits(_Struct):
    """The orbits of a shape."""

    _fields_ = [
        *((name, _Integer) for name in ("n_axes", "n_orbits")),
        *(("length", _Axes), ("set", _Axes), ("prefixes", _Pointer)),
    ]


class RunCall(ctypes.Structure):
    """The arguments of a layer's kernels."""

    _fields_ = [
        ("program", _Pointer),
        *((name, _Integer) for name in ("n_graphs", "n_threads", "mean")),
        *((name, _Pointer) for name in ("counts", "factors", "read", "sources", "targets", "weights", "biases")),
        *((name, _Pointer) for name in ("of_weights", "of_biases", "of_sources")),
    ]


class ContractCall(ctypes.Structure):
    """The arguments of a product's kernel."""

    _fields_ = [
        ("tables", _Pointer),
        *((name, _Integer) for name in ("n_graphs", "n_channels", "n_threads")),
        *((name, _Pointer) for name in ("x", "y", "result")),
        ("factor", ctypes.c_double),
    ]


class PoolCall(ctypes.Structure):
    """The arguments of pooling and its gradient."""

    _fields_ = [
        ("orbits", _Pointer),
        *((name, _Integer) for name in ("n_graphs", "n_threads", "channels", "reduce")),
        *((name, _Pointer) for name in ("counts", "rows", "pooled", "divisors", "gradient", "of_rows")),
    ]


class BetweenCall(ctypes.Structure):
    """The arguments of normalisation, ReLU, dropout and residual."""

    _fields_ = [
        *((name, _Integer) for name in ("n_rows", "channels", "n_threads")),
        *((name, _Pointer) for name in ("graphs", "rows", "factor", "shift", "kept", "before", "gradient", "mean")),
        *((name, _Pointer) for name in ("slope", "offset", "result", "sums", "products")),
    ]


STRUCTS: tuple[type[ctypes.Structure], ...] = (
    *(Bundle, Branch, Level, Side, Block, Bias, Swap, Program, Prefix, Orbits),
    *(RunCall, ContractCall, PoolCall, BetweenCall),
)
CONSTANTS = ("MOST_AXES", "MOST_SETS", "SUM", "DIAGONAL", "COPY", "LARGEST", "TOTAL", "MEAN")


class _Entry(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("value", _Integer)]


def declared_layout() -> dict[str, int]:
    """The constants, the size of each struct and the offset of each field, as declared here."""
    layout = {name: int(globals()[name]) for name in CONSTANTS}
    for struct in STRUCTS:
        layout[struct.__name__] = ctypes.sizeof(struct)
        layout |= {f"{struct.__name__}.{name}": getattr(struct, name).offset for name, *_ in struct._fields_}
    return layout


def exported_layout(library: ctypes.CDLL) -> dict[str, int]:
    """The same as compiled into a library of kernels."""
    entries = ctypes.cast(ctypes.addressof(_Entry.in_dll(library, "bellnet_layout")), ctypes.POINTER(_Entry))

    def named() -> Iterator[_Entry]:
        number = 0
        while True:
            yield entries[number]
            number += 1

    return {entry.name.decode(): entry.value for entry in takewhile(lambda one: one.name is not None, named())}


def layout_differences(library: ctypes.CDLL) -> str:
    """What is declared differently here and in a library; empty if nothing is."""
    here, there = declared_layout(), exported_layout(library)
    wrong = sorted(name for name in here.keys() | there.keys() if here.get(name) != there.get(name))
    return ", ".join(f"{name} ({here.get(name)} here, {there.get(name)} there)" for name in wrong)
