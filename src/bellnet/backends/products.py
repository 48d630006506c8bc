"""Contractions of dense tensors: by a compiled kernel where there is one, else as batched products of matrices.

The gradient of a factor is a contraction too, of that of the product with the other factor. So the kernel needs nothing
but the factors, and derivatives of every order are more of the same.
"""

from functools import lru_cache
from math import prod
from typing import Any, NamedTuple

import torch
from torch import Tensor

from bellnet.backends.dense_layout import Nodes
from bellnet.backends.transforms import is_batched, is_traced, save, saved
from bellnet.kernels.calling import address, call, can_call, function, n_threads, pointer
from bellnet.kernels.structs import ContractCall
from bellnet.plan import ProductPlan, split_letters
from bellnet.spec import Letters
from bellnet.tensors.tracing import no_transforms


def shape_of_product(letters: Letters, x: Tensor, y: Tensor) -> tuple[int, ...]:
    """That of the contraction of two (batch, *axes, channels) tensors."""
    lengths = dict(zip(letters[0], x.shape[1:], strict=False)) | dict(zip(letters[1], y.shape[1:], strict=False))
    return x.shape[0], *[lengths[letter] for letter in letters[2]], x.shape[-1]


def contract(letters: Letters, x: Tensor, y: Tensor, factor: float) -> Tensor:
    """The contraction of two (batch, *axes, channels) tensors times a number, for tensors that nobody tracks."""
    if set(letters[0]) <= set(letters[2]):
        return _without_sums(letters, x, y, factor)
    prepared = _prepared(letters, tuple(x.shape[1:-1]), tuple(y.shape[1:-1]))
    n_graphs, n_channels = x.shape[0], x.shape[-1] * prepared.n_folded
    shape, n_multiplications = shape_of_product(letters, x, y), n_graphs * n_channels * prepared.n_terms
    if not n_multiplications:
        return x.new_zeros(shape)
    dtype, keep, result = x.dtype, list[object](), x.new_empty(shape)
    arguments = ContractCall(
        tables=address(prepared.tables, keep),
        n_graphs=n_graphs,
        n_channels=n_channels,
        n_threads=n_threads(n_multiplications),
        x=pointer("the first factor", x, x.shape, dtype, keep),
        y=pointer("the second factor", y, (n_graphs, *y.shape[1:-1], x.shape[-1]), dtype, keep),
        result=address(result, keep),
        factor=factor,
    )
    call(function("contract", dtype), arguments)
    return result


def _without_sums(letters: Letters, x: Tensor, y: Tensor, factor: float) -> Tensor:
    """Every number of the result is one product, which torch has no slower."""
    views = []
    for one, tensor in zip(letters, (x, y), strict=False):
        there = [letter for letter in letters[2] if letter in one]
        inner = tensor.permute(0, *[1 + one.index(letter) for letter in there], -1)
        views.append(inner[(slice(None), *[slice(None) if letter in one else None for letter in letters[2]])])
    result = torch.mul(*views, out=x.new_empty(shape_of_product(letters, x, y)))
    return result if factor == 1 else result.mul_(factor)


class _Prepared(NamedTuple):
    """What the kernel has to know of a contraction of tensors with such axes.

    Attributes:
        tables: How many tuples of shared, left, right and summed nodes there are, how many rows x, y and the product
            have, and for every tuple its row in each of the tensors that have its letters.
        n_folded: How many tuples the last letters of all three have, whose nodes are taken for channels.
        n_terms: How many multiplications there are for each graph and channel, such channels included.
    """

    tables: Tensor
    n_folded: int
    n_terms: int


@lru_cache(maxsize=256)
def _prepared(letters: Letters, x_axes: tuple[int, ...], y_axes: tuple[int, ...]) -> _Prepared:
    lengths = dict(zip(letters[0], x_axes, strict=True)) | dict(zip(letters[1], y_axes, strict=True))
    n_folded = 1
    while all(letters) and len({one[-1] for one in letters}) == 1:
        n_folded *= lengths[letters[0][-1]]
        x, y, product = (one[:-1] for one in letters)
        letters = x, y, product
    x, y, product = letters
    groups = split_letters(letters)
    sizes = [prod(lengths[letter] for letter in group) for group in groups]
    n_rows = [prod(lengths[letter] for letter in one) for one in letters]
    owners = ((x, y, product), (x, product), (y, product), (x, y))
    with no_transforms():
        tables = [torch.tensor([*sizes, *n_rows], device="cpu")]
        for group, several in zip(groups, owners, strict=True):
            tables += [_rows(group, owner, lengths) for owner in several]
        return _Prepared(torch.cat(tables), n_folded, prod(sizes))


def _rows(group: str, owner: str, lengths: dict[str, int]) -> Tensor:
    """For every tuple of nodes of some letters its row in a tensor, beside those of the other letters of the tensor."""
    rows = torch.zeros(1, dtype=torch.int64, device="cpu")
    for letter in group:
        stride = prod(lengths[one] for one in owner[owner.index(letter) + 1 :])
        rows = (rows.unsqueeze(1) + torch.arange(lengths[letter], device="cpu") * stride).flatten()
    return rows


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
