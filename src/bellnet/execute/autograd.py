"""A plan as a differentiable function of its input, its weight and its bias.

Left to itself, autograd would undo every step on its own and add up full-size gradients one by one. The transposed
program does it in one go. Where torch transforms the code, the loop is shown to it as it stands.
"""

from typing import Any

import torch
from torch import Tensor

from bellnet.execute.absent import leave_out
from bellnet.execute.dense import Dense
from bellnet.execute.executor import Executor
from bellnet.execute.loop import Reader, WeightGradient, apply
from bellnet.execute.nodes import Nodes
from bellnet.execute.sparse import Listed, Supports
from bellnet.execute.transforms import is_transformed, is_watched
from bellnet.execute.weights import from_levels, mean_factors, to_levels
from bellnet.plan import Plan, Program


def run(
    plan: Plan, nodes: Nodes | Supports, tensor: Tensor, weight: Tensor, bias: Tensor | None, *, mean: bool
) -> Tensor:
    """Run a plan on a (batch, *axes, in_channels) tensor that is zero outside the nodes, or on rows of listed tuples.

    Args:
        plan: What to run.
        nodes: The lengths of the axes and, if they are padded, the counts of nodes; or the tuples that are listed.
        tensor: The input.
        weight: (n_maps, in_channels, out_channels), for diagrams.
        bias: (n_biases, out_channels), for diagrams, or None.
        mean: Whether to divide every sum by the number of its terms.

    Returns:
        (batch, *axes, out_channels), zero outside the nodes, or (tuples, out_channels).
    """
    if isinstance(nodes, Supports) and not is_transformed():
        plan, weight, bias = leave_out(plan, nodes, weight, bias)
    lengths = nodes.common_lengths
    if mean and lengths is not None and not is_transformed() and tensor.dtype in (torch.float32, torch.float64):
        # All graphs divide by the same numbers, so the small weights can do it, once, instead of everything read.
        weight, mean = weight * mean_factors(plan, lengths, weight), False
    program = plan.program(mean=mean)
    backend = _executor(nodes, program)
    tensor = backend.in_order(tensor, program.source_order)
    if is_transformed():
        reader = Reader.of(program, backend, tensor)
        result = apply(reader, to_levels(plan, weight), None if bias is None else bias.reshape(-1))
    else:
        result = _Run.apply(plan, mean, nodes, tensor, weight, bias)  # type: ignore[no-untyped-call]
    return backend.in_order(result, program.target_order)


def _executor(nodes: Nodes | Supports, program: Program) -> Executor:
    return Dense(nodes) if isinstance(nodes, Nodes) else Listed.on(program, nodes)


class _Run(torch.autograd.Function):
    """The loop with its gradient; axes are grouped by node set on both sides, and what it returns is never a view."""

    @staticmethod
    def forward(
        ctx: Any, plan: Plan, mean: bool, nodes: Nodes | Supports, tensor: Tensor, weight: Tensor, bias: Tensor | None
    ) -> Tensor:
        ctx.plan, ctx.program, ctx.nodes = plan, plan.program(mean=mean), nodes
        reader = Reader.of(ctx.program, _executor(nodes, ctx.program), tensor)
        matrices = to_levels(plan, weight)
        # What was read is small, but for the level that is the input itself. All of it goes through autograd's hands,
        # which lets go of it in time and knows of checkpointing.
        ctx.save_for_backward(tensor, weight, *matrices, *(level for level in reader.levels if level is not tensor))
        ctx.save_for_forward(tensor, weight)
        return apply(reader, matrices, None if bias is None else bias.reshape(-1))

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> tuple[Tensor | None, ...]:
        tensor, weight, *saved = ctx.saved_tensors
        program, backend = ctx.program, _executor(ctx.nodes, ctx.program)
        gradient = Reader.of(program.transposed, backend.transposed, backend.clean(gradients[0], program.target_axes))
        needs_tensor, needs_weight, needs_bias = ctx.needs_input_grad[3:]
        pulled = pulled_weight = pulled_bias = None
        if is_watched():  # this pass is to be differentiated too, from the tensors that autograd knows
            reader, matrices = Reader.of(program, backend, tensor), to_levels(ctx.plan, weight)
        else:
            matrices, levels = saved[: len(program.levels)], iter(saved[len(program.levels) :])
            whole = [reads == (0,) for reads in program.level_reads]
            reader = Reader(program, backend, [tensor if is_whole else next(levels) for is_whole in whole])
        weight_gradient = WeightGradient(reader, gradient) if needs_weight else None
        if needs_tensor:
            pulled = apply(gradient, [matrix.mT for matrix in matrices], None, weight_gradient)
        if weight_gradient is not None:
            pulled_weight = from_levels(ctx.plan, weight_gradient.levels(), weight)
        if needs_bias:
            pulled_bias = gradient.levels[0].sum(0).reshape(-1, weight.shape[-1])
        return None, None, None, pulled, pulled_weight, pulled_bias

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Tensor:
        tensor, weight = ctx.saved_tensors
        along_tensor, along_weight, along_bias = tangents[3:]
        backend = _executor(ctx.nodes, ctx.program)
        moved = to_levels(ctx.plan, torch.zeros_like(weight) if along_weight is None else along_weight)
        constant = None if along_bias is None else along_bias.reshape(-1)
        result = apply(Reader.of(ctx.program, backend, tensor), moved, constant)
        if along_tensor is not None:
            result = result + apply(Reader.of(ctx.program, backend, along_tensor), to_levels(ctx.plan, weight), None)
        return result
