"""A linear module written out as a matrix."""

from collections.abc import Callable, Mapping
from math import prod
from typing import Any

import torch
from torch import Tensor

from bellnet.nn.inputs import check_channels_of_all
from bellnet.spec import Spec, parse_spec


def matrix_of(
    module: Callable[..., Any],
    spec: str | Spec,
    sizes: int | Mapping[str, int],
    *,
    in_channels: int | tuple[int, ...] = 1,
    dtype: torch.dtype | None = None,
    device: torch.device | str | None = None,
) -> Tensor:
    """The matrix of the linear part of a module, found by calling the module on the standard basis of its inputs.

    Args:
        module: Takes (batch, one axis for each source slot, channels) to (batch, one axis for each target slot,
            channels). A bias is left out.
        spec: The node sets of source and target. Of several tensors, "n n, n -> n n, n", the module takes, and returns,
            a tuple.
        sizes: The number of nodes, of all node sets or of each.
        in_channels: The number of channels of the input; of several tensors, a tuple, or one number for all.
        dtype: The dtype of the input; that of the module's parameters if not given, or float64 if it has none.
        device: The device of the input.

    Returns:
        (target entries * out_channels, source entries * in_channels). Entries are numbered like those of a contiguous
        tensor, the last slot fastest, channels faster still; those of several tensors one tensor after the other.

    >>> matrix_of(lambda x: x + x.sum(-2, keepdim=True), "n -> n", 2)
    tensor([[2., 1.],
            [1., 2.]], dtype=torch.float64)
    """
    spec = parse_spec(spec)
    given = dict.fromkeys(spec.node_sets, sizes) if isinstance(sizes, int) else sizes
    channels = check_channels_of_all(f'matrix_of(module, "{spec}")', "in_channels", in_channels, len(spec.sources))
    shapes = [(*(given[name] for name in shape), width) for shape, width in zip(spec.sources, channels, strict=True)]
    if dtype is None:
        parameters = module.parameters() if isinstance(module, torch.nn.Module) else iter(())
        dtype = next((parameter.dtype for parameter in parameters), torch.float64)
    # One row more than columns: the last input is zero, and its output is the bias.
    lengths = [prod(shape) for shape in shapes]
    basis = torch.eye(sum(lengths) + 1, sum(lengths), dtype=dtype, device=device)
    parts = zip(torch.split(basis, lengths, 1), shapes, strict=True)
    inputs = [part.reshape(len(basis), *shape) for part, shape in parts]
    options = {"sizes": {name: given[name] for name in spec.target_only}} if spec.target_only else {}
    found = module(inputs[0] if len(inputs) == 1 else tuple(inputs), **options)
    outputs = torch.cat([one.flatten(1) for one in ([found] if len(spec.targets) == 1 else found)], 1)
    return (outputs[:-1] - outputs[-1]).T
