"""Stacks of equivariant layers that keep the shape of their input, with what stands between them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import cast

from torch import nn

from bellnet.backends import can_fuse_norm, fused_norm_relu
from bellnet.errors import OptionError, as_written
from bellnet.nn.linear import EquivariantLinear
from bellnet.nn.norm import OVER, EntryNorm
from bellnet.nn.options import check_channels_of_all, check_choice
from bellnet.nn.pointwise import ChannelDropout, is_rectifying, is_untouched, make_activation, nobody_looks
from bellnet.nn.several import Collection, OverNodes
from bellnet.spec import Spec, text_of
from bellnet.tensors import Sparse

Channels = int | tuple[int, ...]
"""Of one tensor, or of each of several."""

MakesActivation = str | Callable[[], nn.Module]


@dataclass(frozen=True, kw_only=True)
class StackOptions:
    """The options of a network, for all of its layers; `call` is how messages name the network."""

    call: str
    activation: MakesActivation
    norm: str | None
    dropout: float
    residual: bool
    bias: bool
    basis: str
    normalize: str
    symmetric: bool
    hollow: bool
    max_maps: int

    def __post_init__(self) -> None:
        if self.norm is not None:
            check_choice(self.call, "norm", self.norm, OVER)
        if not 0 <= self.dropout < 1:
            raise OptionError(f"{self.call}: dropout must be a probability below 1, not {as_written(self.dropout)}.")

    def layer(self, spec: Spec, before: Channels, after: Channels, *, first: bool) -> EquivariantLinear:
        """One layer; what was declared of the input concerns the first."""
        return EquivariantLinear(
            spec,
            before,
            after,
            bias=self.bias,
            basis=self.basis,
            normalize=self.normalize,
            symmetric=self.symmetric and first,
            hollow=self.hollow and first,
            max_maps=self.max_maps,
        )

    def stack(self, spec: Spec, channels: Sequence[Channels]) -> nn.Sequential:
        """Blocks that keep the shapes of the sources of a spec, from channels[0] to channels[-1]."""
        steps = enumerate(pairwise(channels))
        layers = [self.layer(spec.to_itself, before, after, first=number == 0) for number, (before, after) in steps]
        return nn.Sequential(*(Block(layer, self) for layer in layers))

    def fully_connected(self, widths: Sequence[int]) -> nn.Sequential:
        """DenseLayout layers with an activation between them."""
        modules: list[nn.Module] = []
        for before, after in pairwise(widths):
            dense = nn.Linear(before, after)
            nn.init.kaiming_normal_(dense.weight, nonlinearity="relu")
            nn.init.zeros_(dense.bias)
            modules += [dense, make_activation(self.call, self.activation)]
            if self.dropout:
                modules.append(ChannelDropout(self.dropout, 0))
        return nn.Sequential(*modules[: -2 if self.dropout else -1])


class Block(nn.Module):
    """A layer that keeps the shape of its input, then normalisation, activation and dropout."""

    def __init__(self, layer: EquivariantLinear, options: StackOptions) -> None:
        super().__init__()
        shape, channels = text_of(layer.spec.targets), layer.out_channels
        self.layer = layer
        self.norm = nn.Identity() if options.norm is None else EntryNorm(shape, channels, over=options.norm)
        self.activation: nn.Module = make_activation(options.call, options.activation)
        self.dropout = ChannelDropout(options.dropout, layer.spec.targets)
        self.residual = options.residual and layer.in_channels == channels

    @property
    def ends_rectified(self) -> bool:
        """Whether rectifying is the last that is done."""
        return is_rectifying(self.activation) and not self.dropout.p and not self.residual

    def forward(self, x: OverNodes | Collection) -> OverNodes | Collection:
        """From (*batch, node axes, channels) to the same with other channels."""
        of_layer = self.layer(x)
        if isinstance(of_layer, Sparse) and self._is_usual() and (at_once := self._at_once(x, of_layer)) is not None:
            return at_once
        result: OverNodes | Collection = self.dropout(self.activation(self.norm(of_layer)))
        if not self.residual:
            return result
        if isinstance(result, tuple):
            return tuple(one + other for one, other in zip(x, result, strict=True))  # type: ignore[arg-type]
        return x + result  # type: ignore[operator]

    def _is_usual(self) -> bool:
        """Whether all that follows the layer is what kernels do at once, and nobody looks at the parts."""
        if type(self.norm) is not EntryNorm or not is_rectifying(self.activation) or not nobody_looks():
            return False
        return type(self.dropout) is ChannelDropout and is_untouched(self.norm) and is_untouched(self.dropout)

    def _at_once(self, x: OverNodes | Collection, of_layer: Sparse) -> Sparse | None:
        """Everything after the layer by kernels; None where they do not do it."""
        residual = None
        if self.residual:
            if not isinstance(x, Sparse) or x.support is not of_layer.support:
                return None
            if not can_fuse_norm(of_layer.values, [x.values]):
                return None
            residual = x.values
        norm = cast(EntryNorm, self.norm)
        moments = norm.moments(of_layer)
        if moments is None:
            return None
        drops = self.dropout.training and self.dropout.p > 0
        return of_layer.with_values(
            fused_norm_relu(
                of_layer.values,
                (norm.weight, norm.bias),
                moments,
                eps=norm.eps,
                training=norm.training,
                dropout=self.dropout.of_listed(of_layer) if drops else None,
                residual=residual,
            )
        )


def check_stack(call: str, channels: Sequence[Channels], at_least: int, advice: str, spec: Spec) -> list[Channels]:
    """The channels, if there are enough of them and each can be those of its tensors: the last are of the targets."""
    checked: list[Channels] = []
    for place, value in enumerate(channels):
        shapes = spec.targets if place == len(channels) - 1 and place else spec.sources
        several = check_channels_of_all(call, f"channels[{place}]", value, len(shapes))
        checked.append(several if len(several) > 1 else several[0])
    if len(checked) < at_least:
        raise OptionError(f"{call}: channels must have at least {at_least} entries, not {len(checked)}.\n{advice}")
    return checked
