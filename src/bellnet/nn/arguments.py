"""Checks of arguments that several modules share: options and channels, memory for weights, the number of inputs."""

from collections.abc import Mapping, Sequence
from math import prod
from operator import index
from typing import NoReturn

import torch
from torch import Tensor

from bellnet._utils.memory import machine_memory
from bellnet.errors import OptionError, TensorError, as_written

MAX_CHANNELS = 2**31
"""Numbers of channels are below this, so that products of two of them do not overflow."""
MAX_BYTES = 2**63 - 1
INITIALIZATION_BYTES = 8
"""Scratch memory per entry of a weight while it is initialized: two values in float32."""


def check_choice(call: str, argument: str, value: object, choices: tuple[str, ...]) -> str:
    """The value, if it is one of the choices."""
    for choice in choices:
        if value == choice:
            return choice
    raise OptionError(f"{call}: {argument} must be one of {', '.join(map(repr, choices))}, not {as_written(value)}.")


def check_channels_of_all(call: str, argument: str, value: object, n_tensors: int) -> tuple[int, ...]:
    """The number of channels of each of several tensors, from one number for each or one for all."""
    if not isinstance(value, Sequence) or isinstance(value, str):
        return (check_channels(call, argument, value),) * n_tensors
    if n_tensors == 1 or len(value) != n_tensors:
        wanted = "one number" if n_tensors == 1 else f"{n_tensors} numbers, one for each tensor, or one for all"
        raise OptionError(f"{call}: {argument} must be {wanted}, not {as_written(value)}.")
    return tuple(check_channels(call, f"{argument}[{number}]", one) for number, one in enumerate(value))


def check_channels(call: str, argument: str, value: object) -> int:
    """The value, if it can be a number of channels."""
    try:
        number = 0 if isinstance(value, bool) else index(value)  # type: ignore[arg-type]
    except TypeError:
        number = 0
    if number >= MAX_CHANNELS:
        raise OptionError(f"{call}: {argument} must be below 2**31; it is larger.")
    if number >= 1:
        return number
    raise OptionError(f"{call}: {argument} must be an integer from 1 up, not {as_written(value)}.")


def check_memory(
    call: str, shape: tuple[int, ...], *, device: torch.device | str | None, dtype: torch.dtype | None
) -> None:
    """Refuse a weight whose initialization does not fit into the memory of this machine; on "meta" every weight fits.

    The error of an allocator would not name the argument that is too large.
    """
    like = torch.empty(0, device=device, dtype=dtype)
    needed = prod(shape) * (like.element_size() + INITIALIZATION_BYTES * (not like.is_meta))
    available = None if like.is_meta else machine_memory()
    limit = MAX_BYTES if available is None else available
    if needed > limit:
        raise OptionError(
            f"{call}: its weight of {' x '.join(map(str, shape))} numbers needs {needed:,} bytes; "
            f"{'torch counts up to' if available is None else 'this machine has'} {limit:,}.\n"
            'Take fewer channels, or a spec with fewer maps. On the meta device (device="meta") layers need no memory.'
        )


def refuse_more(call: str, args: tuple[object, ...], n_tensors: int | None) -> NoReturn:
    """Raise because of several positional arguments, with the remedy for what they seem to be.

    Args:
        call: How the message names the module.
        args: All positional arguments.
        n_tensors: The number of tensors that the module takes; None for any number.
    """
    expected = {None: "one tensor, or several as one tuple", 1: "one tensor"}.get(
        n_tensors, f"{n_tensors} tensors as one tuple"
    )
    if any(_is_edge_index(one) for one in args):
        advice = (
            "bellnet.data.sparse_inputs.from_edge_index(edge_index, edge_attr) makes one Sparse of edge_index and "
            "edge_attr,\nand bellnet.data.sparse_inputs.from_pyg(batch) one of a batch of PyTorch Geometric."
        )
    elif any(one is None or isinstance(one, Mapping) for one in args[1:]):
        advice = "Options have names: layer(x, sizes=..., support=...)."
    elif n_tensors == 1:
        advice = 'For several tensors write commas in the spec, "n n, n -> n n", and pass them as one tuple.'
    else:
        advice = f"Put parentheses around them: module(({', '.join('xyz'[: len(args)])}{', ...' * (len(args) > 3)}))."
    raise TensorError(f"{call}: expected {expected}, got {len(args)} positional arguments.\n{advice}")


def _is_edge_index(value: object) -> bool:
    """Whether it looks like the edges of a graph in PyTorch Geometric: integers (2, edges)."""
    return isinstance(value, Tensor) and value.ndim == 2 and len(value) == 2 and not value.is_floating_point()


class NotScripted:
    """A module that torch.jit.script cannot compile, since its forward takes several kinds of tensors."""

    def __prepare_scriptable__(self) -> NoReturn:
        # torch.jit.script calls this for every module, from the outermost inwards, before it reads any source.
        raise TensorError(
            f"{type(self).__name__} cannot be compiled by torch.jit.script, which reads source code and knows tensors "
            "alone.\nUse torch.export.export(module, (x,), dynamic_shapes=...), or torch.compile(module)."
        )
