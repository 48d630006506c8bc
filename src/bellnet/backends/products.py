"""Contractions of dense tensors: by a compiled kernel where there is one, else as batched products of matrices.

The gradient of a factor is a contraction too, of that of the product with the other factor. So the kernel needs nothing
but the factors, and derivatives of every order are more of the same.
"""

from math import prod
from typing import Any

import torch
from torch import Tensor

from bellnet.backends.contract import contract, shape_of_product
from bellnet.backends.nodes import Nodes
from bellnet.backends.transforms import is_batched, is_traced, save, saved
from bellnet.kernels.calling import can_call
from bellnet.plan import ProductPlan, split_letters
from bellnet.spec import Letters


def multiply_dense(plan: ProductPlan, x: Tensor, y: Tensor, nodes: Nodes, power: float) -> Tensor:
    """The product of two tensors, channel by channel.

    Args:
        plan: What is multiplied with what.
        x: (batch, *axes, channels), zero outside the nodes.
        y: The same for the second factor.
        nodes: How many there are.
        power: Sums are divided by the number of their terms to this power: 0 for sums, 1 for means.

    Returns:
        (batch, *axes, channels), zero outside the nodes.
    """
    result = _contracted(plan.letters, x, y, _common_factor(plan, nodes, power))
    if nodes.counts is None:
        return result
    if plan.summed and power:
        n_terms = nodes.counts[list(plan.summed_sets)].prod(0).clamp(min=1).to(result.dtype)
        result = result * n_terms.pow(-power).reshape(-1, *[1] * (result.ndim - 1))
    return nodes.clean(result, plan.target_sets)


def _common_factor(plan: ProductPlan, nodes: Nodes, power: float) -> float:
    """What sums are multiplied by where all graphs have the same number of nodes."""
    if nodes.counts is not None or not power:
        return 1.0
    factor: float = max(prod([nodes.lengths[node_set] for node_set in plan.summed_sets]), 1) ** -power
    return factor


def _contracted(letters: Letters, x: Tensor, y: Tensor, factor: float) -> Tensor:
    """The contraction of two tensors times a number."""
    if is_traced() or is_batched(x) or is_batched(y) or not can_call((x, y)):
        return _contracted_plainly(letters, x, y, factor)
    if torch.is_grad_enabled() and (x.requires_grad or y.requires_grad):
        result: Tensor = _Contracted.apply(x, y, letters, factor)  # type: ignore[no-untyped-call]
        return result
    return contract(letters, x, y, factor)


def _contracted_plainly(letters: Letters, x: Tensor, y: Tensor, factor: float) -> Tensor:
    shared, left, right, summed = split_letters(letters)
    rows, columns = _matrices(letters[0], x, shared, left, summed), _matrices(letters[1], y, shared, summed, right)
    shape, stands, wanted = shape_of_product(letters, x, y), f"G{letters[2]}C", f"G{shared}C{left}{right}"
    product = torch.bmm(rows, columns).mul(factor).reshape([shape[stands.index(one)] for one in wanted])
    return product.permute([wanted.index(one) for one in stands]).contiguous()


def _matrices(letters: str, tensor: Tensor, shared: str, rows: str, columns: str) -> Tensor:
    """A matrix for every graph, every node of shared slots and every channel; einsum cannot be mapped over batches."""
    stands = f"G{letters}C"
    outer, inner = 2 + len(shared), 2 + len(shared + rows)
    there = tensor.permute([stands.index(one) for one in f"G{shared}C{rows}{columns}"])
    shape = list(there.shape)  # a list, since torch.compile does not know products of slices
    return there.reshape(prod(shape[:outer]), prod(shape[outer:inner]), prod(shape[inner:]))


class _Contracted(torch.autograd.Function):
    """The contraction by the kernel; each factor is kept for the gradient of the other."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, y: Tensor, letters: Letters, factor: float) -> Tensor:
        ctx.set_materialize_grads(False)
        to_x, to_y, *_ = ctx.needs_input_grad
        ctx.letters, ctx.factor = letters, factor
        save(ctx, x if to_y else None, y if to_x else None)
        return contract(letters, x, y, factor)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> tuple[Tensor | None, ...]:
        (gradient,), (x, y), (first, second, product) = gradients, saved(ctx), ctx.letters
        if gradient is None:
            return None, None, None, None
        to_x = None if y is None else _contracted((product, second, first), gradient, y, ctx.factor)
        to_y = None if x is None else _contracted((first, product, second), x, gradient, ctx.factor)
        return to_x, to_y, None, None
