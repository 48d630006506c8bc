"""A program as a differentiable function of its input, its weights and its bias.

Left to itself, autograd would undo every step on its own and add up full-size gradients one by one. The transposed
program does it in one go. Under `torch.compile` and `torch.export` the loop is traced as it stands.
"""

from typing import Any

import torch
from torch import Tensor

from bellnet.execute.dense import Dense
from bellnet.execute.loop import Reader, apply, pull_weights
from bellnet.execute.nodes import Nodes
from bellnet.plan import Program


def run(program: Program, nodes: Nodes, tensor: Tensor, weights: tuple[Tensor, ...], bias: Tensor | None) -> Tensor:
    """Run a program on a (batch, *axes, in_channels) tensor whose values outside the nodes are zero.

    Returns:
        (batch, *axes, out_channels), zero outside the nodes.
    """
    if torch.compiler.is_compiling():
        return _forward(program, nodes, tensor, weights, bias)
    result: Tensor = _Run.apply(program, nodes.lengths, nodes.counts, tensor, bias, *weights)  # type: ignore[no-untyped-call]
    return result


class _Run(torch.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(
        program: Program,
        lengths: tuple[int, ...],
        counts: Tensor | None,
        tensor: Tensor,
        bias: Tensor | None,
        *weights: Tensor,
    ) -> Tensor:
        return _forward(program, Nodes(lengths, counts), tensor, weights, bias)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        program, lengths, counts, tensor, bias, *weights = inputs
        ctx.program, ctx.lengths, ctx.has_bias = program, lengths, bias is not None
        ctx.save_for_backward(counts, tensor, *weights)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        counts, tensor, *weights = ctx.saved_tensors
        program: Program = ctx.program
        nodes = Nodes(ctx.lengths, counts)
        needs_tensor, needs_bias, *needs_weights = ctx.needs_input_grad[3:]
        backend = Dense(nodes)
        seen = _reader(backend, program.transposed, backend.clean(gradient, program.target))
        pulled: Tensor | None = None
        if needs_tensor:
            turned = [weight.mT for weight in weights]
            pulled = apply(program.transposed, backend, seen, turned, None)
            pulled = backend.clean(backend.restore(pulled, program.source), program.source)
        pulled_bias: Tensor | None = None
        if needs_bias:
            pulled_bias = seen.level(program.transposed.levels[0]).sum(0)
        pulled_weights: list[Tensor | None] = [None] * len(weights)
        if any(needs_weights):
            pulled_weights = [*pull_weights(program, backend, _reader(backend, program, tensor), seen)]
        return None, None, None, pulled, pulled_bias, *pulled_weights


def _forward(
    program: Program, nodes: Nodes, tensor: Tensor, weights: tuple[Tensor, ...], bias: Tensor | None
) -> Tensor:
    backend = Dense(nodes)
    result = apply(program, backend, _reader(backend, program, tensor), weights, bias)
    return backend.clean(backend.restore(result, program.target), program.target)


def _reader(backend: Dense, program: Program, tensor: Tensor) -> Reader:
    return Reader(backend, backend.arrange(tensor, program.source), program.source, mean=program.mean == "reads")
