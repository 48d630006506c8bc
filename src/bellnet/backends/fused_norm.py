"""The steps between two sparse layers in one function: batch normalisation, ReLU, channel dropout and residual.

Operation by operation they take a dozen passes over the rows, forward and backward, and save three such tensors.
Kernels take four passes and save the rows (`kernels/norm_relu.h`).
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from bellnet.errors import SupportError
from bellnet.kernels.calling import call, can_call, function, n_threads, pointer
from bellnet.kernels.structs import NormCall
from bellnet.tensors.tracing import is_batched, is_traced, save, saved

VALUES_PER_THREAD = 2**16
MANY_VALUES = 2**18
"""With fewer values the call of a kernel takes as long as the passes that it saves."""


class DropoutMask(NamedTuple):
    """The factors of the channels of every graph, and the graph of every row.

    Attributes:
        factors: (graphs, channels).
        graphs: (rows,) int64; None for one graph.
    """

    factors: Tensor
    graphs: Tensor | None


class Moments(NamedTuple):
    """Mean and variance of every channel, in double precision."""

    mean: Tensor
    variance: Tensor


def can_fuse_norm(rows: Tensor, others: Sequence[Tensor]) -> bool:
    """Whether kernels run on (rows, channels) values and further tensors."""
    is_jit_traced = torch.jit.is_tracing()  # type: ignore[attr-defined,no-untyped-call]
    if is_jit_traced or is_traced() or len(rows) < 2 or rows.numel() < MANY_VALUES:
        return False
    return all(one.dtype == rows.dtype and one.device == rows.device for one in others) and can_call([rows, *others])


def moments_of(rows: Tensor) -> Moments:
    """The moments of (rows, channels) values with at least one row."""
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
    """Normalise by moments, scale and shift; then ReLU, dropout and the addition of a residual.

    Args:
        rows: (rows, channels).
        scale: The learned factor and shift of every channel.
        moments: Of every channel.
        eps: Added to the variance.
        training: Whether the moments are those of the rows, so that the gradient goes through them.
        dropout: The dropout mask; None for no dropout.
        residual: (rows, channels); None for no residual.
    """
    result: Tensor = _FusedNorm.apply(rows, *scale, residual, moments, dropout, eps, training)  # type: ignore[no-untyped-call]
    return result


class _FusedNorm(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        rows: Tensor,
        weight: Tensor,
        bias: Tensor,
        residual: Tensor | None,
        moments: Moments,
        dropout: DropoutMask | None,
        eps: float,
        training: bool,
    ) -> Tensor:
        save(ctx, rows, weight)
        # Not for hooks on saved tensors: short ones, and one of a support. The bias may change before backward.
        ctx.bias, ctx.moments, ctx.dropout = bias.detach().clone(), moments, dropout
        ctx.eps, ctx.training = eps, training
        result = torch.empty_like(rows, memory_format=torch.contiguous_format)
        factor, shift = _affine(weight, bias, moments, eps)
        _call("norm_relu", rows, dropout, factor=factor, shift=shift, residual=residual, result=result)
        return result

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> tuple[Tensor | None, ...]:
        (gradient,) = gradients
        rows, weight = saved(ctx)
        bias, (mean, variance), dropout = ctx.bias, ctx.moments, ctx.dropout
        *needs, needs_residual = ctx.needs_input_grad[:4]
        rest = (gradient if needs_residual else None, None, None, None, None)
        create_graph = torch.is_grad_enabled()
        if create_graph or is_batched(gradient) or not can_fuse_norm(rows, [gradient, weight, bias]):
            with torch.enable_grad():
                own = [rows.view_as(rows), weight.view_as(weight), bias.clone().requires_grad_()]
                again = _functional(own[0], own[1], own[2], None if ctx.training else ctx.moments, ctx.eps, dropout)
                wanted = [one for one, needed in zip(own, needs, strict=True) if needed]
                found = torch.autograd.grad(again, wanted, gradient, create_graph=create_graph) if wanted else ()
            remaining = iter(found)
            return (*[next(remaining) if needed else None for needed in needs], *rest)
        factor, shift = _affine(weight, bias, ctx.moments, ctx.eps)
        given = {"factor": factor, "shift": shift, "gradient": gradient}
        sums, products = rows.new_empty(2, rows.shape[1], dtype=torch.float64).unbind()
        _call("norm_relu_sums", rows, dropout, **given, mean=mean.to(rows.dtype), sums=sums, products=products)
        inverse = _inverse(variance, ctx.eps)
        result = None
        if needs[0]:
            result = torch.empty_like(rows, memory_format=torch.contiguous_format)
            slope = offset = None
            if ctx.training:  # every row changes the moments
                slope = -weight.double() * inverse**3 * products / len(rows)
                offset = (-weight.double() * inverse * sums / len(rows) - slope * mean).to(rows.dtype)
                slope = slope.to(rows.dtype)
            _call("norm_relu_backward", rows, dropout, **given, slope=slope, offset=offset, result=result)
        return result, (products * inverse).to(weight.dtype), sums.to(bias.dtype), *rest


def _functional(
    rows: Tensor, weight: Tensor, bias: Tensor, moments: Moments | None, eps: float, dropout: DropoutMask | None
) -> Tensor:
    """The same without residual in torch operations; None for the moments of the rows."""
    if moments is None:
        mean = rows.mean(0)
        moments = Moments(mean, (rows - mean).square().mean(0))
    mean, variance = (one.to(rows.dtype) for one in moments)
    result = torch.relu((rows - mean) * _inverse(variance, eps) * weight + bias)
    if dropout is None:
        return result
    return result * (dropout.factors if dropout.graphs is None else dropout.factors.index_select(0, dropout.graphs))


def _affine(weight: Tensor, bias: Tensor, moments: Moments, eps: float) -> tuple[Tensor, Tensor]:
    """Normalisation, learned factor and shift as one factor and one shift of every channel."""
    factor = weight.detach().double() * _inverse(moments.variance, eps)
    return factor.to(weight.dtype), (bias.detach() - moments.mean * factor).to(weight.dtype)


def _inverse(variance: Tensor, eps: float) -> Tensor:
    """One over the standard deviation; zero for a constant channel with eps zero."""
    return torch.where(variance + eps == 0, 0.0, torch.rsqrt(variance + eps))


def _check_graphs(dropout: DropoutMask | None, n_rows: int) -> Tensor | None:
    """The graph of every row, checked: its memory may have been overwritten."""
    if dropout is None or dropout.graphs is None:
        return None
    least, most = (int(one) for one in dropout.graphs.aminmax())
    if len(dropout.graphs) != n_rows or least < 0 or most >= len(dropout.factors):
        raise SupportError(
            "the index of a Sparse was changed after it was made.\n"
            f"The graphs of its {n_rows} tuples must be from 0 to {len(dropout.factors) - 1}, "
            f"but {len(dropout.graphs)} are from {least} to {most}.\n"
            "Leave index as it is, and make another one: Sparse(index, values, sizes)."
        )
    return dropout.graphs.contiguous()


def _call(name: str, rows: Tensor, dropout: DropoutMask | None = None, **tensors: Tensor | None) -> None:
    """Call a kernel; tensors are named as in the struct."""
    dtype, owners, n_channels = rows.dtype, list[object](), rows.shape[1]
    graphs, mask = _check_graphs(dropout, len(rows)), None if dropout is None else dropout.factors
    arguments = NormCall(
        n_rows=len(rows),
        n_channels=n_channels,
        n_threads=n_threads(rows.numel(), VALUES_PER_THREAD),
        graphs=pointer("the graph of each row", graphs, (len(rows),), torch.int64, owners),
        rows=pointer("the rows", rows, rows.shape, dtype, owners),
        mask=pointer("the dropout mask", mask, (0 if mask is None else len(mask), n_channels), dtype, owners),
        **{
            one: pointer(
                f"{one!r} of a block",
                tensor,
                rows.shape if one in ("residual", "gradient", "result") else (n_channels,),
                torch.float64 if one in ("sums", "products") else dtype,
                owners,
            )
            for one, tensor in tensors.items()
        },
    )
    call(function(name, dtype), arguments)
