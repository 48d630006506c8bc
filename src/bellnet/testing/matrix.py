"""A linear module written out as a matrix."""

from collections.abc import Callable, Mapping
from math import prod

import torch
from torch import Tensor

from bellnet.spec import Spec, parse_spec


def matrix_of(
    module: Callable[..., Tensor],
    spec: str | Spec,
    sizes: int | Mapping[str, int],
    *,
    in_channels: int = 1,
    dtype: torch.dtype | None = None,
    device: torch.device | str | None = None,
) -> Tensor:
    """The matrix of the linear part of a module, found by calling the module on the standard basis of its inputs.

    Args:
        module: Takes (batch, one axis for each source slot, channels) to (batch, one axis for each target slot,
            channels). A bias is left out.
        spec: The node sets of source and target.
        sizes: The number of nodes, of all node sets or of each.
        in_channels: The number of channels of the input.
        dtype: The type of the input; that of the module's parameters if not given, or float64 if it has none.
        device: Where the input lives.

    Returns:
        (target entries * out_channels, source entries * in_channels). Entries are numbered like those of a contiguous
        tensor, the last slot fastest, channels faster still.

    >>> matrix_of(lambda x: x + x.sum(-2, keepdim=True), "n -> n", 2)
    tensor([[2., 1.],
            [1., 2.]], dtype=torch.float64)
    """
    spec = parse_spec(spec)
    given = dict.fromkeys(spec.node_sets, sizes) if isinstance(sizes, int) else sizes
    shape = (*(given[name] for name in spec.source), in_channels)
    if dtype is None:
        parameters = module.parameters() if isinstance(module, torch.nn.Module) else iter(())
        dtype = next((parameter.dtype for parameter in parameters), torch.float64)
    # One row more than columns: the last input is zero, and its output is the bias.
    inputs = torch.eye(prod(shape) + 1, prod(shape), dtype=dtype, device=device).reshape(prod(shape) + 1, *shape)
    options = {"sizes": {name: given[name] for name in spec.target_only}} if spec.target_only else {}
    outputs = module(inputs, **options).flatten(1)
    return (outputs[:-1] - outputs[-1]).T
