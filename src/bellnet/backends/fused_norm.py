"""What stands between two layers on listed rows: normalise over the batch, rectify, drop channels, add what was before.

Operation by operation that takes a dozen passes over the rows, forwards and backwards, and keeps three tensors of their
size. Kernels take four and keep the rows that came (`kernels/between.h`). Whoever traces or transforms operations, or
dispatches them, is shown them.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from bellnet.backends.transforms import is_batched, is_traced, save, saved
from bellnet.errors import SupportError
from bellnet.kernels.calling import call, can_call, function, n_threads, pointer
from bellnet.kernels.structs import BetweenCall

VALUES_PER_THREAD = 2**16
"""A thread takes part in a call for so many values."""
WORTH = 2**18
"""From so many numbers on. Of fewer, what is prepared for a kernel takes as long as the passes that it saves."""


class DropoutMask(NamedTuple):
    """What channels of every graph are multiplied by, and which graph every row is of.

    Attributes:
        factors: (graphs, channels).
        graphs: (rows,) int64; None if there is one graph.
    """

    factors: Tensor
    graphs: Tensor | None


class Moments(NamedTuple):
    """Mean and variance of every channel, in double precision."""

    mean: Tensor
    variance: Tensor


def can_fuse_norm(rows: Tensor, others: Sequence[Tensor]) -> bool:
    """Whether kernels do it for (rows, channels) numbers, beside others of the same type."""
    is_jit_traced = torch.jit.is_tracing()  # type: ignore[attr-defined,no-untyped-call]
    if is_jit_traced or is_traced() or len(rows) < 2 or rows.numel() < WORTH:
        return False
    return all(one.dtype == rows.dtype and one.device == rows.device for one in others) and can_call([rows, *others])


def moments_of(rows: Tensor) -> Moments:
    """Those of (rows, channels) numbers, at least one row."""
    found = Moments(*rows.new_empty(2, rows.shape[1], dtype=torch.float64).unbind())
    _call("moments", rows.detach(), sums=found.mean, products=found.variance)
    return found


def fused_norm_relu(
    rows: Tensor,
    scale: tuple[Tensor, Tensor],
    moments: Moments,
    *,
    eps: float,
    training: bool,
    dropout: DropoutMask | None,
    residual: Tensor | None,
) -> Tensor:
    """Shift and scale to mean zero and variance one, then by learned factors; rectify, drop, add.

    Args:
        rows: (rows, channels).
        scale: The learned factor and shift of every channel.
        moments: Of every channel.
        eps: Added to the variance.
        training: Whether moments are those of the rows, so that the gradient goes through them.
        dropout: What is dropped; None for nothing.
        residual: (rows, channels) to add to; None for nothing.
    """
    result: Tensor = _Between.apply(rows, *scale, residual, moments, dropout, eps, training)  # type: ignore[no-untyped-call]
    return result


class _Between(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        rows: Tensor,
        weight: Tensor,
        bias: Tensor,
        before: Tensor | None,
        moments: Moments,
        dropped: DropoutMask | None,
        eps: float,
        learned: bool,
    ) -> Tensor:
        save(ctx, rows, weight)
        # Short ones, and one that a support has: whoever looks at what is saved need not see them. A shift may change
        # before the gradient is asked for, and is not asked for then.
        ctx.bias, ctx.moments, ctx.dropped = bias.detach().clone(), moments, dropped
        ctx.eps, ctx.learned = eps, learned
        result = torch.empty_like(rows, memory_format=torch.contiguous_format)
        factor, shift = _affine(weight, bias, moments, eps)
        _call("between", rows, dropped, factor=factor, shift=shift, before=before, result=result)
        return result

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> tuple[Tensor | None, ...]:
        (gradient,) = gradients
        rows, weight = saved(ctx)
        bias, (mean, variance), dropped = ctx.bias, ctx.moments, ctx.dropped
        *asked, asks_before = ctx.needs_input_grad[:4]
        of_before = gradient if asks_before else None
        nothing = (None, None, None, None)
        # Somebody may look at this pass, too, or have made something else of what was saved.
        further = torch.is_grad_enabled()
        is_watched = further or is_batched(gradient)
        if is_watched or not can_fuse_norm(rows, [gradient, weight, bias]):
            with torch.enable_grad():
                own = [rows.view_as(rows), weight.view_as(weight), bias.clone().requires_grad_()]
                again = _plainly(own[0], own[1], own[2], None if ctx.learned else ctx.moments, ctx.eps, dropped)
                wanted = [one for one, is_asked in zip(own, asked, strict=True) if is_asked]
                found = iter(torch.autograd.grad(again, wanted, gradient, create_graph=further) if wanted else ())
            return (*[next(found) if is_asked else None for is_asked in asked], of_before, *nothing)
        factor, shift = _affine(weight, bias, ctx.moments, ctx.eps)
        given = {"factor": factor, "shift": shift, "gradient": gradient}
        sums, products = rows.new_empty(2, rows.shape[1], dtype=torch.float64).unbind()
        _call("between_sums", rows, dropped, **given, mean=mean.to(rows.dtype), sums=sums, products=products)
        inverse = _inverse(variance, ctx.eps)
        result = None
        if asked[0]:
            result = torch.empty_like(rows, memory_format=torch.contiguous_format)
            moving: tuple[Tensor | None, Tensor | None] = (None, None)
            if ctx.learned:  # every row moves the moments
                slope = -weight.double() * inverse**3 * products / len(rows)
                offset = -weight.double() * inverse * sums / len(rows) - slope * mean
                moving = slope.to(rows.dtype), offset.to(rows.dtype)
            _call("between_back", rows, dropped, **given, slope=moving[0], offset=moving[1], result=result)
        return result, (products * inverse).to(weight.dtype), sums.to(bias.dtype), of_before, *nothing


def _plainly(
    rows: Tensor, weight: Tensor, bias: Tensor, moments: Moments | None, eps: float, dropped: DropoutMask | None
) -> Tensor:
    """The same in torch's operations, without adding; moments are those of the rows if None."""
    if moments is None:
        mean = rows.mean(0)
        moments = Moments(mean, (rows - mean).square().mean(0))
    mean, variance = (one.to(rows.dtype) for one in moments)
    result = torch.relu((rows - mean) * _inverse(variance, eps) * weight + bias)
    if dropped is None:
        return result
    return result * (dropped.factors if dropped.graphs is None else dropped.factors.index_select(0, dropped.graphs))


def _affine(weight: Tensor, bias: Tensor, moments: Moments, eps: float) -> tuple[Tensor, Tensor]:
    """Normalising and the learned factors as one factor and one shift of every channel."""
    factor = weight.detach().double() * _inverse(moments.variance, eps)
    return factor.to(weight.dtype), (bias.detach() - moments.mean * factor).to(weight.dtype)


def _inverse(variance: Tensor, eps: float) -> Tensor:
    """One over the root; of a channel that has one value only, if nothing is added to that, zero."""
    return torch.where(variance + eps == 0, 0.0, torch.rsqrt(variance + eps))


def _graphs(dropped: DropoutMask | None, rows: Tensor) -> Tensor | None:
    """The graph of every row, looked at once more: whoever has that memory may have written anything into it."""
    if dropped is None or dropped.graphs is None:
        return None
    least, most = (int(one) for one in dropped.graphs.aminmax())
    if len(dropped.graphs) != len(rows) or least < 0 or most >= len(dropped.factors):
        raise SupportError(
            "the index of a Sparse was changed after it was made.\n"
            f"The graphs of its {len(rows)} tuples must be from 0 to {len(dropped.factors) - 1}, "
            f"but {len(dropped.graphs)} are from {least} to {most}.\n"
            "Leave index as it is, and make another one: Sparse(index, values, sizes)."
        )
    return dropped.graphs.contiguous()


def _call(name: str, rows: Tensor, dropped: DropoutMask | None = None, **tensors: Tensor | None) -> None:
    dtype, keep, channels = rows.dtype, list[object](), rows.shape[1]
    like_rows = {"before", "gradient", "result"}
    double = {"sums", "products"}
    graphs, kept = _graphs(dropped, rows), None if dropped is None else dropped.factors
    n_kept = 0 if kept is None else len(kept)
    arguments = BetweenCall(
        n_rows=len(rows),
        channels=channels,
        n_threads=n_threads(rows.numel(), VALUES_PER_THREAD),
        graphs=pointer("the graph of each row", graphs, (len(rows),), torch.int64, keep),
        rows=pointer("the rows", rows, rows.shape, dtype, keep),
        kept=pointer("the dropout mask", kept, (n_kept, channels), dtype, keep),
        **{
            one: pointer(
                f"{one!r} of a block",
                tensor,
                rows.shape if one in like_rows else (channels,),
                torch.float64 if one in double else dtype,
                keep,
            )
            for one, tensor in tensors.items()
        },
    )
    call(function(name, dtype), arguments)
