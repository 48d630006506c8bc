"""Contractions of dense tensors, as batched matrix products.

A few graphs at a time, while the cache holds them, both factors are copied channel by channel, multiplied, and the
product is copied back; the gradients likewise. Whoever wants to see the operations themselves is shown plain ones.
"""

from collections.abc import Sequence
from math import ceil, prod
from typing import Any

import torch
from torch import Tensor

from bellnet.execute.matrices import Lying, known_roles, roles
from bellnet.execute.moved import moved
from bellnet.execute.nodes import Nodes
from bellnet.execute.scratch import scratch
from bellnet.execute.transforms import is_batched, wants_plain
from bellnet.plan import Contraction
from bellnet.spec import Letters

Shape = tuple[int, ...]

CHUNK_BYTES, WHOLE_BYTES = 3 * 2**19, 2**22
"""For every thread so many bytes of the largest of three tensors are multiplied at a time; or all, if it has so few."""


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
    result = _contracted(contraction.letters, x, y, _common_factor(contraction, nodes, power))
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


def _contracted(letters: Letters, x: Tensor, y: Tensor, factor: float) -> Tensor:
    """The contraction of two tensors times a number."""
    if wants_plain() or is_batched(x) or is_batched(y):
        return _contracted_plainly(letters, x, y, factor)
    if torch.is_grad_enabled() and (x.requires_grad or y.requires_grad):
        result: Tensor = _Contracted.apply(x, y, letters, factor)[0]  # type: ignore[no-untyped-call]
        return result
    return _forward(letters, x, y, factor)[0]


def _contracted_plainly(letters: Letters, x: Tensor, y: Tensor, factor: float) -> Tensor:
    first, second, product = roles(letters)
    matrices = torch.bmm(first.matrices_plainly(x), second.matrices_plainly(y)) * factor
    return product.tensor_plainly(matrices, _shape(letters, x, y))


def _forward(
    letters: Letters, x: Tensor, y: Tensor, factor: float, *, keep: tuple[bool, bool] = (False, False)
) -> tuple[Tensor, list[slice], list[Tensor | None]]:
    """The contraction, the chunks of graphs it was made in, and for each of them those of both matrices to keep."""
    first, second, product = known_roles(letters)
    result = _Result(product, _shape(letters, x, y), factor)
    chunks, kept = _chunks(letters, (x.shape, y.shape, result.shape), x), []
    for graphs in chunks:
        matrices = first.matrices(x[graphs]), second.matrices(y[graphs])
        result.multiply(graphs, *matrices)
        kept += [one.detach() if wanted else None for one, wanted in zip(matrices, keep, strict=True)]
    return result.tensor, chunks, kept


class _Contracted(torch.autograd.Function):
    """The contraction of two tensors and, for every chunk, the matrices of both, which the gradient needs.

    They are results as well, since autograd then knows where they come from when somebody differentiates the gradient.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, y: Tensor, letters: Letters, factor: float) -> tuple[Tensor | None, ...]:
        ctx.set_materialize_grads(False)
        to_x, to_y, *_ = ctx.needs_input_grad
        result, ctx.chunks, kept = _forward(letters, x, y, factor, keep=(to_y, to_x))
        ctx.letters, ctx.factor, ctx.shapes = letters, factor, (x.shape, y.shape)
        ctx.save_for_backward(*kept)
        return result, *kept

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> tuple[Tensor | None, ...]:
        gradient, *of_kept = gradients
        if _is_watched(gradient) or any(one is not None for one in of_kept):
            return *_gradients_plainly(ctx, gradient, of_kept), None, None
        to_x, to_y, *_ = ctx.needs_input_grad
        first, second, product = known_roles(ctx.letters)
        of_x, of_y = _Result(first, ctx.shapes[0], ctx.factor), _Result(second, ctx.shapes[1], ctx.factor)
        for graphs, x, y in zip(ctx.chunks, *_pair(ctx.saved_tensors), strict=True):
            matrices = product.matrices(gradient[graphs])
            if to_x:
                of_x.multiply(graphs, matrices, y.transpose(1, 2))
            if to_y:
                of_y.multiply(graphs, x.transpose(1, 2), matrices)
        return of_x.tensor if to_x else None, of_y.tensor if to_y else None, None, None


def _is_watched(gradient: Tensor | None) -> bool:
    """Whether somebody looks at the backward pass, too; there may be no gradient of the product then."""
    return gradient is None or torch.is_grad_enabled() or wants_plain() or is_batched(gradient)


def _gradients_plainly(ctx: Any, gradient: Tensor | None, of_kept: Sequence[Tensor | None]) -> list[Tensor | None]:
    """Those of both factors, from that of the product and those of the matrices that were kept, if there are any."""
    first, second, product = roles(ctx.letters)
    x, y, to_x, to_y = map(_joined, (*_pair(ctx.saved_tensors), *_pair(of_kept)))
    if gradient is not None:
        matrices = product.matrices_plainly(gradient) * ctx.factor
        to_x = _sum(to_x, None if y is None else torch.bmm(matrices, y.transpose(1, 2)))
        to_y = _sum(to_y, None if x is None else torch.bmm(x.transpose(1, 2), matrices))
    return [
        lying.tensor_plainly(one, shape) if needed and one is not None else None
        for lying, one, shape, needed in zip(
            (first, second), (to_x, to_y), ctx.shapes, ctx.needs_input_grad[:2], strict=True
        )
    ]


def _pair(several: Sequence[Any]) -> tuple[Sequence[Any], Sequence[Any]]:
    """What there is of the first factor in every chunk, and of the second."""
    return several[::2], several[1::2]


def _joined(several: Sequence[Tensor | None]) -> Tensor | None:
    """Chunk after chunk; either all are there or none."""
    there = [one for one in several if one is not None]
    return torch.cat(there) if there else None


def _sum(one: Tensor | None, other: Tensor | None) -> Tensor | None:
    return one + other if one is not None and other is not None else one if other is None else other


class _Result:
    """A tensor whose matrices are products; some graphs after the others are multiplied.

    Args:
        lying: How its axes make matrices.
        shape: Its own.
        factor: What every product is multiplied by.

    Attributes:
        tensor: What is there of it, after the first graphs.
    """

    tensor: Tensor

    def __init__(self, lying: Lying, shape: Shape, factor: float) -> None:
        self._lying, self.shape, self._factor = lying, shape, factor

    def multiply(self, graphs: slice, x: Tensor, y: Tensor) -> None:
        """Write the products of two batches of matrices for some of the graphs."""
        lying, n_graphs = self._lying, graphs.stop - graphs.start
        in_order = lying.in_order((n_graphs, *self.shape[1:]))
        memory, is_whole = lying.memory(in_order), n_graphs == self.shape[0]
        is_result = is_whole and lying.stays(self.shape)
        there = x.new_empty(memory) if is_result else scratch("product", memory, x)
        there.baddbmm_(*lying.factors(x, y), beta=0, alpha=self._factor)
        part = moved(there.view(in_order), lying.back)
        if is_whole:
            self.tensor = part.contiguous().detach()  # no view, so that it may be changed in place
            return
        if graphs.start == 0:
            self.tensor = x.new_empty(self.shape)
        self.tensor[graphs].copy_(part)


def _shape(letters: Letters, x: Tensor, y: Tensor) -> Shape:
    """That of the product."""
    lengths = dict(zip(letters[0], x.shape[1:], strict=False)) | dict(zip(letters[1], y.shape[1:], strict=False))
    return x.shape[0], *[lengths[letter] for letter in letters[2]], x.shape[-1]


def _chunks(letters: Letters, shapes: Sequence[Shape], like: Tensor) -> list[slice]:
    """Some graphs after the others; all at once where nothing is copied or no cache is at stake."""
    n_graphs, n_bytes = like.shape[0], max(map(prod, shapes)) * like.element_size()
    stay = all(lying.stays(shape) for lying, shape in zip(known_roles(letters), shapes, strict=True))
    if n_bytes <= WHOLE_BYTES or stay or like.device.type != "cpu":
        return [slice(0, n_graphs)]
    # Threads share the graphs of a copy among them, so each of them has equally many, and a cache of its own.
    n_threads, for_each = torch.get_num_threads(), max(n_graphs * CHUNK_BYTES // n_bytes, 1)
    n_chunks = ceil(n_graphs / (n_threads * for_each))
    some = n_threads * ceil(n_graphs / (n_threads * n_chunks))
    return [slice(start, min(start + some, n_graphs)) for start in range(0, n_graphs, some)]
