"""A program as a differentiable function of its input, its weights and its bias.

Left to itself, autograd would undo every step on its own and add up full-size gradients one by one. The transposed
program does it in one go. Where torch transforms the code, the loop is shown to it as it stands.
"""

from typing import Any

import torch
from torch import Tensor

from bellnet.execute.dense import Dense
from bellnet.execute.loop import Reader, apply, pull_weights
from bellnet.execute.nodes import Nodes
from bellnet.execute.transforms import is_transformed
from bellnet.plan import Program


def run(program: Program, nodes: Nodes, tensor: Tensor, weights: tuple[Tensor, ...], bias: Tensor | None) -> Tensor:
    """Run a program on a (batch, *axes, in_channels) tensor that is zero outside the nodes.

    Args:
        program: What to run.
        nodes: The lengths of the axes and, if they are padded, the counts of nodes.
        tensor: The input.
        weights: For every level (swaps, reads * in_channels, writes * out_channels).
        bias: (writes of rank 0 * out_channels), or None.

    Returns:
        (batch, *axes, out_channels), zero outside the nodes.
    """
    if is_transformed():
        return apply(Reader(program, Dense(nodes), tensor), weights, bias)
    result: Tensor = _Run.apply(program, nodes.lengths, nodes.counts, tensor, bias, *weights)  # type: ignore[no-untyped-call]
    return result


class _Run(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        program: Program,
        lengths: tuple[int, ...],
        counts: Tensor | None,
        tensor: Tensor,
        bias: Tensor | None,
        *weights: Tensor,
    ) -> Tensor:
        ctx.program, ctx.nodes = program, Nodes(lengths, counts)
        ctx.save_for_backward(tensor, *weights)
        ctx.save_for_forward(tensor, *weights)
        return apply(Reader(program, Dense(ctx.nodes), tensor), weights, bias)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> tuple[Tensor | None, ...]:
        tensor, *weights = ctx.saved_tensors
        program, backend = ctx.program, Dense(ctx.nodes)
        gradient = Reader(program.transposed, backend, backend.clean(gradients[0], program.target))
        needs_tensor, needs_bias, *needs_weights = ctx.needs_input_grad[3:]
        pulled = apply(gradient, [weight.mT for weight in weights], None) if needs_tensor else None
        pulled_bias = gradient.levels[0].sum(0) if needs_bias else None
        pulled_weights: list[Tensor | None] = [None] * len(weights)
        if any(needs_weights):
            pulled_weights = [*pull_weights(Reader(program, backend, tensor), gradient)]
        return None, None, None, pulled, pulled_bias, *pulled_weights

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Tensor:
        tensor, *weights = ctx.saved_tensors
        along_tensor, along_bias, *along_weights = tangents[3:]
        backend = Dense(ctx.nodes)
        moved = [torch.zeros_like(w) if d is None else d for w, d in zip(weights, along_weights, strict=True)]
        result = apply(Reader(ctx.program, backend, tensor), moved, along_bias)
        if along_tensor is not None:
            result = result + apply(Reader(ctx.program, backend, along_tensor), weights, None)
        return result
