"""Contractions of dense tensors, as batched matrix products.

Channels come last in a tensor, but matrix products want the numbers of one channel side by side. So factors are copied
channel by channel, multiplied, and the product is copied back, some graphs after the others, while the cache holds
them. Whoever wants to see the operations themselves is shown plain ones.
"""

from collections.abc import Iterator
from math import prod
from typing import Any, NamedTuple

import torch
from torch import Tensor

from bellnet.execute.moved import Order, moved
from bellnet.execute.nodes import Nodes
from bellnet.execute.transforms import is_batched, wants_plain
from bellnet.execute.zeros import zero_, zeroed
from bellnet.plan import Contraction

CHUNK_BYTES, FEWEST_GRAPHS = 2**21, 2
"""About so many bytes of a tensor are multiplied at once, but at least so many graphs: one for each of two threads."""

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
    if wants_plain() or is_batched(x) or is_batched(y):
        return _multiply_plainly(contraction, x, y, nodes, power)
    return _Multiply.apply(contraction, x, y, nodes, power)  # type: ignore[no-any-return,no-untyped-call]


def _multiply_plainly(contraction: Contraction, x: Tensor, y: Tensor, nodes: Nodes, power: float) -> Tensor:
    """The same in operations that can be traced and differentiated."""
    of_x, of_y, of_result = _forms(contraction)
    product = torch.bmm(_matrices(x.permute(of_x.order), of_x), _matrices(y.permute(of_y.order), of_y))
    lengths = _lengths(contraction, x, y)
    inner = product.transpose(1, 2) if of_result.is_turned else product
    result = inner.reshape([lengths[letter] for letter in of_result.stands]).permute(of_result.back)
    if nodes.counts is None:
        return result * _common_factor(contraction, nodes, power)
    factors = _factors(contraction, nodes, power, result)
    return nodes.clean(result if factors is None else result * factors, contraction.target_sets)


class _Multiply(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, contraction: Contraction, x: Tensor, y: Tensor, nodes: Nodes, power: float) -> Tensor:
        ctx.contraction, ctx.nodes, ctx.power = contraction, nodes, power
        ctx.save_for_backward(x, y)
        of_x, of_y, of_result = _forms(contraction)
        lengths = _lengths(contraction, x, y)
        result = x.new_empty([lengths[letter] for letter in (BATCH, *contraction.letters[2], CHANNELS)])
        same = _common_factor(contraction, nodes, power)
        ends = _Ends(contraction, nodes, power, result)
        for graphs in _chunks(x, y, result):
            first, second = (_matrices(moved(one[graphs], form.order), form) for one, form in ((x, of_x), (y, of_y)))
            part = result[graphs]
            _write(part, of_result, first, second, same)
            ends.finish(part, graphs)
        return result

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> tuple[None, Tensor | None, Tensor | None, None, None]:
        x, y = ctx.saved_tensors
        gradient, contraction, nodes, power = gradients[0], ctx.contraction, ctx.nodes, ctx.power
        needs = ctx.needs_input_grad[1:3]
        if torch.is_grad_enabled() or wants_plain() or is_batched(gradient):  # somebody looks at this pass, too
            of_first, of_second = _plain_gradients(ctx, x, y, gradient)
            return None, of_first, of_second, None, None
        of_x, of_y, of_result = _forms(contraction)
        results = [torch.empty_like(one) if needed else None for one, needed in zip((x, y), needs, strict=True)]
        same = _common_factor(contraction, nodes, power)
        ends = _Ends(contraction, nodes, power, gradient)
        for graphs in _chunks(x, y, gradient):
            pulled = _matrices(moved(ends.begin(gradient[graphs], graphs), of_result.order), of_result)
            if results[0] is not None:
                second = _matrices(moved(y[graphs], of_y.order), of_y)
                _write(results[0][graphs], of_x, pulled, second.transpose(1, 2), same)
            if results[1] is not None:
                first = _matrices(moved(x[graphs], of_x.order), of_x)
                _write(results[1][graphs], of_y, first.transpose(1, 2), pulled, same)
        return None, results[0], results[1], None, None


def _plain_gradients(ctx: Any, x: Tensor, y: Tensor, gradient: Tensor) -> list[Tensor | None]:
    needs = ctx.needs_input_grad[1:3]
    with torch.enable_grad():
        # Views of their own: what is asked for is the derivative of this product alone.
        own = (x.view_as(x), y.view_as(y))
        again = _multiply_plainly(ctx.contraction, own[0], own[1], ctx.nodes, ctx.power)
        wanted = [one for one, needed in zip(own, needs, strict=True) if needed]
        found = iter(torch.autograd.grad(again, wanted, gradient, create_graph=True))
    return [next(found) if needed else None for needed in needs]


class _Form(NamedTuple):
    """How a tensor with letters is a batch of matrices.

    Attributes:
        stands: The axes of the matrices in memory: batch, shared letters, channels, then the letters of both sides.
        order: From the tensor to that.
        back: From that to the tensor.
        n_outer: How many axes number the matrices.
        n_first: How many axes stand on the first side of a matrix in memory.
        is_turned: Whether that side has the columns, and not the rows.
    """

    stands: str
    order: Order
    back: Order
    n_outer: int
    n_first: int
    is_turned: bool

    @classmethod
    def of(cls, letters: str, shared: str, rows: str, columns: str) -> "_Form":
        is_turned = "".join(letter for letter in letters if letter not in shared) == columns + rows
        sides = (columns, rows) if is_turned else (rows, columns)
        tensor, outer = BATCH + letters + CHANNELS, BATCH + shared + CHANNELS
        stands = outer + sides[0] + sides[1]
        order, back = tuple(map(tensor.index, stands)), tuple(map(stands.index, tensor))
        return cls(stands, order, back, len(outer), len(sides[0]), is_turned)


def _forms(contraction: Contraction) -> tuple[_Form, _Form, _Form]:
    """Those of both factors and of the product."""
    x, y, result = contraction.letters
    shared, left, right, summed = contraction.shared, contraction.left, contraction.right, contraction.summed
    return (
        _Form.of(x, shared, left, summed),
        _Form.of(y, shared, summed, right),
        _Form.of(result, shared, left, right),
    )


def _lengths(contraction: Contraction, x: Tensor, y: Tensor) -> dict[str, int]:
    """The length of every axis."""
    of_x, of_y, _ = contraction.letters
    pairs = [*zip(of_x, x.shape[1:-1], strict=True), *zip(of_y, y.shape[1:-1], strict=True)]
    return {BATCH: x.shape[0], CHANNELS: x.shape[-1], **dict(pairs)}


def _matrices(ordered: Tensor, form: _Form) -> Tensor:
    """(matrices, rows, columns) of a tensor whose axes are in the order of a form."""
    shape, inner = ordered.shape, form.n_outer + form.n_first
    matrices = ordered.reshape(prod(shape[: form.n_outer]), prod(shape[form.n_outer : inner]), prod(shape[inner:]))
    return matrices.transpose(1, 2) if form.is_turned else matrices


def _write(into: Tensor, form: _Form, one: Tensor, other: Tensor, factor: float) -> None:
    """Write the products of matrices, times a number, to a tensor of a form."""
    if form.is_turned:
        one, other = other.transpose(1, 2), one.transpose(1, 2)
    product = one.new_empty(len(one), one.shape[1], other.shape[2]).baddbmm_(one, other, beta=0, alpha=factor)
    into.copy_(moved(product.view([into.shape[axis] for axis in form.order]), form.back))


def _chunks(x: Tensor, y: Tensor, result: Tensor) -> Iterator[slice]:
    """Some graphs after the others."""
    n_graphs, largest = len(x), max(x.numel(), y.numel(), result.numel()) * x.element_size()
    some = max(CHUNK_BYTES * n_graphs // max(largest, 1), FEWEST_GRAPHS) if x.device.type == "cpu" else n_graphs
    return (slice(start, start + some) for start in range(0, n_graphs, some))


def _common_factor(contraction: Contraction, nodes: Nodes, power: float) -> float:
    """What sums are multiplied by where all graphs have the same number of nodes."""
    if nodes.counts is not None or not power:
        return 1.0
    # A list, since torch.compile does not know products of generators.
    factor: float = max(prod([nodes.lengths[node_set] for node_set in contraction.summed_sets]), 1) ** -power
    return factor


def _factors(contraction: Contraction, nodes: Nodes, power: float, like: Tensor) -> Tensor | None:
    """What sums are multiplied by where graphs differ in the number of nodes, for every graph."""
    if nodes.counts is None or not power or not contraction.summed:
        return None
    n_terms = nodes.counts[list(contraction.summed_sets)].prod(0).clamp(min=1).to(like.dtype)
    return n_terms.pow(-power).reshape(-1, *[1] * (like.ndim - 1))


class _Ends:
    """What happens to a product in the end: graphs divide by their own numbers, and padding is zero."""

    def __init__(self, contraction: Contraction, nodes: Nodes, power: float, like: Tensor) -> None:
        self.factors = _factors(contraction, nodes, power, like)
        self.bits = nodes.bits(contraction.target_sets, like.dtype)

    def finish(self, part: Tensor, graphs: slice) -> None:
        """Divide some graphs, and clear their padding, in place."""
        if self.factors is not None:
            part.mul_(self.factors[graphs])
        if self.bits is not None:
            zero_(part, self.bits[graphs])

    def begin(self, part: Tensor, graphs: slice) -> Tensor:
        """The gradient of what was before."""
        if self.bits is not None:
            part = zeroed(part, self.bits[graphs])
        return part if self.factors is None else part * self.factors[graphs]
