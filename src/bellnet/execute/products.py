"""Contractions of dense tensors, as batched matrix products.

Channels come last in a tensor, but matrix products want the numbers of one channel side by side. So both factors are
copied channel by channel, multiplied, and the product is copied back. Whoever wants to see the operations themselves
is shown plain ones.
"""

from math import prod
from typing import Any

import torch
from torch import Tensor

from bellnet.execute.moved import moved
from bellnet.execute.nodes import Nodes
from bellnet.execute.transforms import is_batched, wants_plain
from bellnet.plan import Contraction

BATCH, CHANNELS = "0", "1"
"""Stand for the axes that have no letters."""


def multiply_dense(contraction: Contraction, x: Tensor, y: Tensor, nodes: Nodes, power: float) -> Tensor:
    """The product of two tensors, channel by channel.

    Args:
        contraction: What is multiplied with what.
        x: (batch, *axes, channels), zero outside the nodes.
        y: The same for the second factor.
        nodes: How many there are.
        power: Sums are divided by the number of their terms to this power: 0 for sums, 1 for means.

    Returns:
        (batch, *axes, channels), zero outside the nodes.
    """
    of_x, of_y, of_result = contraction.letters
    shared, rows, columns = contraction.shared, contraction.left, contraction.right
    first, second = (x, of_x), (y, of_y)
    if "".join(letter for letter in of_result if letter not in shared) == columns + rows:  # a product stands turned
        rows, columns, first, second = columns, rows, second, first
    product = _product(
        _matrices(*first, shared, rows, contraction.summed),
        _matrices(*second, shared, contraction.summed, columns),
        _common_factor(contraction, nodes, power),
    )
    lengths = {BATCH: x.shape[0], CHANNELS: x.shape[-1]}
    lengths |= dict(zip(of_x, x.shape[1:], strict=False)) | dict(zip(of_y, y.shape[1:], strict=False))
    stands, wanted = BATCH + shared + CHANNELS + rows + columns, BATCH + of_result + CHANNELS
    result = moved(product.reshape([lengths[letter] for letter in stands]), tuple(map(stands.index, wanted)))
    if nodes.counts is None:
        return result
    if contraction.summed and power:
        n_terms = nodes.counts[list(contraction.summed_sets)].prod(0).clamp(min=1).to(result.dtype)
        result = result * n_terms.pow(-power).reshape(-1, *[1] * (result.ndim - 1))
    return nodes.clean(result, contraction.target_sets)


def _common_factor(contraction: Contraction, nodes: Nodes, power: float) -> float:
    """What sums are multiplied by where all graphs have the same number of nodes."""
    if nodes.counts is not None or not power:
        return 1.0
    factor: float = max(prod([nodes.lengths[node_set] for node_set in contraction.summed_sets]), 1) ** -power
    return factor


def _matrices(factor: Tensor, letters: str, shared: str, rows: str, columns: str) -> Tensor:
    """(batch * shared * channels, rows, columns): the matrices of a factor; in memory columns may come first."""
    turned = "".join(letter for letter in letters if letter not in shared) == columns + rows
    inner = columns + rows if turned else rows + columns
    stands, outer = BATCH + letters + CHANNELS, BATCH + shared + CHANNELS
    lengths = dict(zip(stands, factor.shape, strict=True))
    # Lists, since torch.compile does not know products of generators.
    n_outer, n_rows, n_columns = [prod([lengths[letter] for letter in part]) for part in (outer, rows, columns)]
    matrices = moved(factor, tuple(map(stands.index, outer + inner)))
    if turned:
        return matrices.reshape(n_outer, n_columns, n_rows).transpose(1, 2)
    return matrices.reshape(n_outer, n_rows, n_columns)


def _product(x: Tensor, y: Tensor, factor: float) -> Tensor:
    """The product of every pair of matrices, times a number."""
    if wants_plain() or is_batched(x) or is_batched(y):
        return torch.bmm(x, y) * factor
    return _Product.apply(x, y, factor)  # type: ignore[no-any-return,no-untyped-call]


class _Product(torch.autograd.Function):
    """Its derivatives are such products again, each of them times the number in the same pass."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, y: Tensor, factor: float) -> Tensor:
        ctx.save_for_backward(x, y)
        ctx.factor = factor
        return x.new_empty(len(x), x.shape[1], y.shape[2]).baddbmm_(x, y, beta=0, alpha=factor)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> tuple[Tensor | None, Tensor | None, None]:
        x, y = ctx.saved_tensors
        of_x, of_y, _ = ctx.needs_input_grad
        return (
            _product(gradients[0], y.transpose(1, 2), ctx.factor) if of_x else None,
            _product(x.transpose(1, 2), gradients[0], ctx.factor) if of_y else None,
            None,
        )
