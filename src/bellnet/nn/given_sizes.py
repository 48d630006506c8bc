"""Sizes that are given in a call, for node sets that the input does not have."""

from collections.abc import Mapping

import torch
from torch import Tensor

from bellnet.errors import SizesError, as_written
from bellnet.tensors import is_concrete

LARGEST = 2**31
"""Sizes from here on are refused, since a target has an entry for each node."""
GivenSizes = Mapping[str, int | Tensor] | None


def check_given(
    call: str, sizes: object, node_sets: tuple[str, ...], expected: tuple[str, ...]
) -> Mapping[str, int | Tensor]:
    """The sizes, if they are whole numbers from 0 up for node sets of the layer; `expected` are those it needs."""
    if not isinstance(sizes, Mapping):
        example = f"{{{', '.join(f'{name!r}: 10' for name in expected)}}}"
        raise SizesError(
            f"{call}: sizes must be a dict from node sets to numbers of nodes, not {as_written(sizes)}.\n"
            + (f"Pass for instance sizes={example}." if expected else "This layer needs none: leave sizes out.")
        )
    for name, size in sizes.items():
        if name not in node_sets:
            raise SizesError(
                f"{call}: sizes has an entry for {name!r}, but the node sets are {', '.join(map(repr, node_sets))}."
            )
        if not _is_whole(size):
            shown = f"a tensor of {size.dtype}" if isinstance(size, Tensor) else as_written(size)
            raise SizesError(
                f"{call}: the size of node set {name!r} must be a whole number, or a tensor with one for each graph, "
                f"not {shown}."
            )
        if (smallest := _smallest(size)) is not None and smallest < 0:
            raise SizesError(f"{call}: the size of node set {name!r} is negative: {as_written(smallest)}.")
        if (largest := _largest(size)) is not None and largest >= LARGEST:
            raise SizesError(
                f"{call}: the size of node set {name!r} is {as_written(largest)}: a tensor over so many nodes does "
                f"not fit into memory.\nSizes are numbers of nodes, below {LARGEST:,}."
            )
    return sizes


def check_repeated(call: str, name: str, size: int | Tensor, length: int) -> None:
    """Refuse a size for a node set of the input, unless it is the length that the input has."""
    if isinstance(size, Tensor) or size != length:
        shown = "a tensor" if isinstance(size, Tensor) else as_written(size)
        raise SizesError(
            f"{call}: sizes[{name!r}] is {shown}, but the input already has {length} nodes of that set.\n"
            "The call gives lengths only for node sets that the input does not have; for graphs of different "
            "sizes pass bellnet.Padded(values, sizes)."
        )


def _is_whole(size: object) -> bool:
    if isinstance(size, Tensor):
        return not (size.is_floating_point() or size.is_complex() or size.dtype == torch.bool)
    return isinstance(size, int | torch.SymInt) and not isinstance(size, bool)


def _largest(size: int | Tensor) -> int | None:
    """The largest size, or None if it cannot be looked at now."""
    if not isinstance(size, Tensor):
        return size if type(size) is int else None
    return int(size.max()) if is_concrete(size) and size.numel() else None


def _smallest(size: int | Tensor) -> int | None:
    """The smallest size, or None if it cannot be looked at now."""
    if not isinstance(size, Tensor):
        return size
    return int(size.min()) if is_concrete(size) and size.numel() else None
