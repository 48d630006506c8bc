"""Products of dense tensors: by a kernel where possible, else as batched matrix products.

The gradient of a factor is a product as well, of the gradient of the result with the other factor.
"""

from functools import lru_cache
from math import prod
from typing import Any, NamedTuple

import torch
from torch import Tensor

from bellnet.backends.dense_layout import Nodes
from bellnet.kernels.calling import address, call, can_call, function, n_threads, pointer
from bellnet.kernels.structs import ProductCall
from bellnet.plan import ProductPlan, split_letters
from bellnet.spec import Letters
from bellnet.tensors.tracing import is_batched, is_traced, no_transforms, save, saved


def multiply_dense(plan: ProductPlan, x: Tensor, y: Tensor, nodes: Nodes, power: float) -> Tensor:
    """The product of two tensors, channel by channel.

    Args:
        plan: The letters of the factors and the result.
        x: (batch, *axes, channels), zero outside the nodes.
        y: The same for the second factor.
        nodes: The numbers of nodes.
        power: Sums are divided by the number of their terms to this power: 0 for sums, 1 for means.

    Returns:
        (batch, *axes, channels), zero outside the nodes.
    """
    if nodes.counts is None:
        n_terms = max(prod([nodes.lengths[node_set] for node_set in plan.summed_sets]), 1) if power else 1
        return _product(plan.letters, x, y, n_terms**-power)
    result = _product(plan.letters, x, y, 1.0)
    if plan.summed and power:
        counts = nodes.counts[list(plan.summed_sets)].prod(0).clamp(min=1).to(result.dtype)
        result = result * counts.pow(-power).reshape(-1, *[1] * (result.ndim - 1))
    return nodes.clean(result, plan.target_sets)


def _product(letters: Letters, x: Tensor, y: Tensor, factor: float) -> Tensor:
    """The product of two tensors times a factor."""
    if is_traced() or is_batched(x) or is_batched(y) or not can_call((x, y)):
        return _functional_product(letters, x, y, factor)
    if torch.is_grad_enabled() and (x.requires_grad or y.requires_grad):
        result: Tensor = _Product.apply(x, y, letters, factor)  # type: ignore[no-untyped-call]
        return result
    return kernel_product(letters, x, y, factor)


class _Product(torch.autograd.Function):
    """The product by the kernel; each factor is saved for the gradient of the other."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, y: Tensor, letters: Letters, factor: float) -> Tensor:
        ctx.set_materialize_grads(False)
        needs_x, needs_y, *_ = ctx.needs_input_grad
        ctx.letters, ctx.factor = letters, factor
        save(ctx, x if needs_y else None, y if needs_x else None)
        return kernel_product(letters, x, y, factor)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> tuple[Tensor | None, ...]:
        (gradient,), (x, y), (first, second, result) = gradients, saved(ctx), ctx.letters
        if gradient is None:
            return None, None, None, None
        grad_x = None if y is None else _product((result, second, first), gradient, y, ctx.factor)
        grad_y = None if x is None else _product((first, result, second), x, gradient, ctx.factor)
        return grad_x, grad_y, None, None


def _functional_product(letters: Letters, x: Tensor, y: Tensor, factor: float) -> Tensor:
    shared, left, right, summed = split_letters(letters)
    rows, columns = _matrices(letters[0], x, shared, left, summed), _matrices(letters[1], y, shared, summed, right)
    shape, axes, wanted = _result_shape(letters, x, y), f"G{letters[2]}C", f"G{shared}C{left}{right}"
    product = torch.bmm(rows, columns).mul(factor).reshape([shape[axes.index(one)] for one in wanted])
    return product.permute([wanted.index(one) for one in axes]).contiguous()


def _matrices(letters: str, tensor: Tensor, shared: str, rows: str, columns: str) -> Tensor:
    """A matrix for every graph, shared node and channel. Not einsum, which vmap does not support."""
    axes = f"G{letters}C"
    outer, inner = 2 + len(shared), 2 + len(shared + rows)
    permuted = tensor.permute([axes.index(one) for one in f"G{shared}C{rows}{columns}"])
    shape = list(permuted.shape)  # torch.compile does not support products of slices of a torch.Size
    return permuted.reshape(prod(shape[:outer]), prod(shape[outer:inner]), prod(shape[inner:]))


def _result_shape(letters: Letters, x: Tensor, y: Tensor) -> tuple[int, ...]:
    lengths = dict(zip(letters[0], x.shape[1:], strict=False)) | dict(zip(letters[1], y.shape[1:], strict=False))
    return x.shape[0], *[lengths[letter] for letter in letters[2]], x.shape[-1]


# ---- kernels


def kernel_product(letters: Letters, x: Tensor, y: Tensor, factor: float) -> Tensor:
    """The product of two (batch, *axes, channels) tensors times a factor, without gradient."""
    shape = _result_shape(letters, x, y)
    if set(letters[0]) <= set(letters[2]):
        return _product_without_sums(letters, x, y, factor, x.new_empty(shape))
    prepared = _prepare(letters, tuple(x.shape[1:-1]), tuple(y.shape[1:-1]))
    n_graphs, n_channels = x.shape[0], x.shape[-1] * prepared.n_folded
    n_multiplications = n_graphs * n_channels * prepared.n_terms
    if not n_multiplications:
        return x.new_zeros(shape)
    dtype, owners, result = x.dtype, list[object](), x.new_empty(shape)
    arguments = ProductCall(
        tables=address(prepared.tables, owners),
        n_graphs=n_graphs,
        n_channels=n_channels,
        n_threads=n_threads(n_multiplications),
        x=pointer("the first factor", x, x.shape, dtype, owners),
        y=pointer("the second factor", y, (n_graphs, *y.shape[1:-1], x.shape[-1]), dtype, owners),
        result=address(result, owners),
        factor=factor,
    )
    call(function("product", dtype), arguments)
    return result


def _product_without_sums(letters: Letters, x: Tensor, y: Tensor, factor: float, out: Tensor) -> Tensor:
    """Entry by entry, for which torch is as fast."""
    views = []
    for own, tensor in zip(letters, (x, y), strict=False):
        permuted = tensor.permute(0, *[1 + own.index(letter) for letter in letters[2] if letter in own], -1)
        views.append(permuted[(slice(None), *[slice(None) if letter in own else None for letter in letters[2]])])
    result = torch.mul(*views, out=out)
    return result if factor == 1 else result.mul_(factor)


class _Prepared(NamedTuple):
    """The arguments of the kernel for letters and lengths.

    Attributes:
        tables: The numbers of tuples of shared, left, right and summed nodes, the numbers of rows of x, y and the
            result, and for every tuple its row in each of the tensors that have its letters.
        n_folded: The number of tuples of the last letters that all three have, which are treated as channels.
        n_terms: The number of multiplications for each graph and channel.
    """

    tables: Tensor
    n_folded: int
    n_terms: int


@lru_cache(maxsize=256)
def _prepare(letters: Letters, x_axes: tuple[int, ...], y_axes: tuple[int, ...]) -> _Prepared:
    lengths = dict(zip(letters[0], x_axes, strict=True)) | dict(zip(letters[1], y_axes, strict=True))
    n_folded = 1
    while all(letters) and len({one[-1] for one in letters}) == 1:
        n_folded *= lengths[letters[0][-1]]
        letters = letters[0][:-1], letters[1][:-1], letters[2][:-1]
    x, y, result = letters
    groups = split_letters(letters)
    sizes = [prod(lengths[letter] for letter in group) for group in groups]
    n_rows = [prod(lengths[letter] for letter in one) for one in letters]
    owners = ((x, y, result), (x, result), (y, result), (x, y))
    with no_transforms():
        tables = [torch.tensor([*sizes, *n_rows], device="cpu")]
        for group, several in zip(groups, owners, strict=True):
            tables += [_rows(group, owner, lengths) for owner in several]
        return _Prepared(torch.cat(tables), n_folded, prod(sizes))


def _rows(group: str, owner: str, lengths: dict[str, int]) -> Tensor:
    """For every tuple of nodes of some letters its row in a tensor with these and other letters."""
    rows = torch.zeros(1, dtype=torch.int64, device="cpu")
    for letter in group:
        stride = prod(lengths[one] for one in owner[owner.index(letter) + 1 :])
        rows = (rows.unsqueeze(1) + torch.arange(lengths[letter], device="cpu") * stride).flatten()
    return rows
