"""Normalisation of activations that does not depend on the numbering of nodes and does not see padding."""

from typing import Any

import torch
from torch import Tensor, nn

from bellnet.backends import Moments, can_fuse_norm, is_traced, moments_of
from bellnet.errors import as_written
from bellnet.nn.arguments import NotScripted, check_channels_of_all, check_choice, refuse_more
from bellnet.nn.each import as_they_were, check_several
from bellnet.nn.inputs import Reception
from bellnet.nn.listed import check_sparse, sums_by_graph, tuples_by_graph
from bellnet.nn.several import Collection, OverNodes
from bellnet.spec import Spec, parse_shapes, text_of
from bellnet.tensors import Padded, Sparse
from bellnet.tensors.padded import zero_padded

OVER = ("batch", "graph", "channels")


class EntryNorm(NotScripted, nn.Module):
    """Shift and scale every channel to mean zero and variance one, then by learned factors.

    Padding is not counted, and of a `Sparse` the listed tuples alone are. Several tensors are normalised one by one.

    Args:
        shape: The node set of every slot, for instance "n n", or "n n, n" for two tensors.
        channels: The number of channels; of several tensors, a tuple with one for each, or one for all.
        over: What a mean and a variance is taken over: "batch", all entries of all graphs (batch normalisation, with
            running statistics for evaluation); "graph", all entries of one graph; "channels", the channels of one
            entry (layer normalisation).
        eps: Added to the variance.
        momentum: How fast running statistics follow.
    """

    running_mean: Tensor
    running_var: Tensor

    def __init__(
        self,
        shape: str,
        channels: int | tuple[int, ...],
        *,
        over: str = "batch",
        eps: float = 1e-5,
        momentum: float = 0.1,
    ) -> None:
        super().__init__()
        self.shapes = parse_shapes(shape)
        call = f'EntryNorm("{text_of(self.shapes)}", {as_written(channels)})'
        several = check_channels_of_all(call, "channels", channels, len(self.shapes))
        self.over = check_choice(call, "over", over, OVER)
        self.eps, self.momentum = eps, momentum
        self._call = call
        self.parts: nn.ModuleList | None = None
        if len(several) > 1:
            self.channels: Any = several
            alike: dict[str, Any] = {"over": over, "eps": eps, "momentum": momentum}
            pairs = zip(map(" ".join, self.shapes), several, strict=True)
            self.parts = nn.ModuleList(EntryNorm(one, width, **alike) for one, width in pairs)
            return
        (self.axes,), (channels,) = self.shapes, several
        self.channels = channels
        self.weight = nn.Parameter(torch.ones(channels))
        self.bias = nn.Parameter(torch.zeros(channels))
        if over == "batch":
            self.register_buffer("running_mean", torch.zeros(channels))
            self.register_buffer("running_var", torch.ones(channels))
        self._reception = Reception(call, Spec(self.axes, ()), channels)

    def reset_parameters(self) -> None:
        """Forget what was learned and seen: factors one, shifts zero."""
        if self.parts is not None:
            for part in self.parts:
                part.reset_parameters()  # type: ignore[operator]
            return
        nn.init.ones_(self.weight)
        nn.init.zeros_(self.bias)
        if self.over == "batch":
            nn.init.zeros_(self.running_mean)
            nn.init.ones_(self.running_var)

    def forward(self, x: OverNodes | Collection, *more: object) -> OverNodes | Collection:
        """Normalise the entries of (*batch, one axis for each slot, channels), or of several."""
        if more:
            refuse_more(f'EntryNorm("{text_of(self.shapes)}")', (x, *more), len(self.shapes))
        if self.parts is not None:
            given = check_several(self._call, x, self.shapes)
            return as_they_were([part(one) for part, one in zip(self.parts, given, strict=True)], x)  # type: ignore[arg-type]
        return self._normalised(x)  # type: ignore[arg-type]

    def _normalised(self, x: OverNodes) -> OverNodes:
        if isinstance(x, Sparse):
            return x.with_values(self._normalise_listed(x))
        given = self._reception.receive(x)
        sets = self._reception.source_sets
        result = given.nodes.clean(self._normalise(given.tensor, given.nodes.inside(sets)), sets)
        result = result.reshape(*given.batch, *result.shape[1:])
        return zero_padded(result, x, self.axes) if isinstance(x, Padded) else result

    def _normalise_listed(self, x: Sparse) -> Tensor:
        """The values of a Sparse: its tuples are a batch of entries without node axes, unless graphs are apart."""
        check_sparse(self._reception.call, x, self.axes, self.channels)
        if self.over != "graph":
            return self._normalise(x.values, None)
        graphs, values = x.support.graphs, _widened(x.values)
        count = tuples_by_graph(x.support).clamp(min=1)
        centred = values - (sums_by_graph(values, x.support) / count)[graphs]
        variance = sums_by_graph(centred.square(), x.support) / count
        return self._scaled(centred * torch.rsqrt(variance + self.eps)[graphs], x.values.dtype)

    def moments(self, x: Sparse) -> Moments | None:
        """What kernels normalise listed rows by; None where they do not. Running statistics follow, as in a call."""
        if self.over != "batch" or self.parts is not None or self.running_mean is None:
            return None
        check_sparse(self._reception.call, x, self.axes, self.channels)
        own = (self.weight, self.bias, self.running_mean, self.running_var)
        if any(one.shape != (self.channels,) for one in own) or not can_fuse_norm(x.values, own):
            return None
        if not self.training:
            seen = (self.running_mean, self.running_var)
            # Copies, since others may follow before a gradient is asked for.
            return Moments(*(one.detach().to(torch.float64, copy=True) for one in seen))
        found = moments_of(x.values)
        self._follow(found.mean.new_tensor(len(x.values)), *found)
        return found

    def _normalise(self, tensor: Tensor, inside: Tensor | None) -> Tensor:
        if self._is_plain_batch(tensor, inside):
            entries = tensor.reshape(-1, self.channels)
            normalised = torch.batch_norm(
                entries,
                self.weight,
                self.bias,
                self.running_mean,
                self.running_var,
                self.training,
                self.momentum,
                self.eps,
                torch.backends.cudnn.enabled,
            )
            return normalised.view(tensor.shape)
        wide = _widened(tensor)
        mean, variance = self._statistics(wide, inside)
        return self._scaled((wide - mean) * torch.rsqrt(variance + self.eps), tensor.dtype)

    def _is_plain_batch(self, tensor: Tensor, inside: Tensor | None) -> bool:
        """Whether torch's own batch normalisation does the same, which takes a third of the time."""
        if self.over != "batch" or inside is not None or tensor.dtype not in (torch.float32, torch.float64):
            return False
        if is_traced():  # whoever traces may leave the number of entries open
            return False
        return tensor.dtype == self.weight.dtype and tensor.shape[:-1].numel() > 1

    def _scaled(self, normalised: Tensor, dtype: torch.dtype) -> Tensor:
        """The learned factors applied to what came from entries of a type."""
        return (normalised * self.weight + self.bias).to(torch.promote_types(dtype, self.weight.dtype))

    def _statistics(self, tensor: Tensor, inside: Tensor | None) -> tuple[Tensor, Tensor]:
        """Mean and variance, shaped to broadcast to the (batch, *axes, channels) tensor, which is zero outside."""
        if self.over == "channels":
            mean = tensor.mean(-1, keepdim=True)
            return mean, (tensor - mean).square().mean(-1, keepdim=True)
        if self.over == "batch" and not self.training:
            return self.running_mean, self.running_var
        axes = tuple(range(0 if self.over == "batch" else 1, tensor.ndim - 1))
        count, mean, variance = _moments(tensor, inside, axes)
        if self.over == "batch":
            self._follow(count, mean, variance)
        return mean, variance

    def _follow(self, count: Tensor, mean: Tensor, variance: Tensor) -> None:
        with torch.no_grad():
            unbiased = variance * (count / (count - 1).clamp(min=1))
            pace = self.momentum * (count > 0).to(count.dtype).reshape(-1)  # a batch without nodes says nothing
            self.running_mean += pace * (mean.reshape(-1) - self.running_mean)
            self.running_var += pace * (unbiased.reshape(-1) - self.running_var)

    def extra_repr(self) -> str:
        """The options, as they would be written in a call."""
        return f'"{text_of(self.shapes)}", {self.channels}, over="{self.over}"'


def _widened(tensor: Tensor) -> Tensor:
    """In single precision at least: half-precision sums and counts of many entries overflow."""
    return tensor.to(torch.promote_types(tensor.dtype, torch.float32))


def _moments(tensor: Tensor, inside: Tensor | None, axes: tuple[int, ...]) -> tuple[Tensor, Tensor, Tensor]:
    """How many entries there are, their mean and their variance; zero for none."""
    there = torch.ones_like(tensor[..., :1]) if inside is None else inside.to(tensor.dtype)
    there = there.expand(*tensor.shape[:-1], 1)
    count = there.sum(axes, keepdim=True) if axes else there
    mean = (tensor.sum(axes, keepdim=True) if axes else tensor) / count.clamp(min=1)
    squares = (tensor - mean).square() * there
    return count, mean, (squares.sum(axes, keepdim=True) if axes else squares) / count.clamp(min=1)
