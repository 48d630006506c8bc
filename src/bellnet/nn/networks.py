"""The paper's two networks: stacks of equivariant layers, to a tensor over nodes or to a vector."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn.modules.module import _has_any_global_hook

from bellnet.backends import can_fuse_norm, fused_norm_relu
from bellnet.errors import OptionError, as_written
from bellnet.nn.inputs import (
    Collection,
    OverNodes,
    Sizes,
    check_channels,
    check_channels_of_all,
    check_choice,
    refuse_more,
)
from bellnet.nn.linear import EquivariantLinear
from bellnet.nn.pointwise import OVER, ChannelDropout, EntryNorm, is_relu, is_unmodified, make_activation
from bellnet.nn.pool import InvariantPool
from bellnet.nn.sparse_validation import Supports
from bellnet.plan import MOST_MAPS
from bellnet.spec import Spec, parse_source, parse_spec, text_of
from bellnet.tensors import Sparse

Channels = int | tuple[int, ...]
"""Of one tensor, or of each of several."""
MakesActivation = str | Callable[[], nn.Module]


class EquivariantNet(nn.Module):
    """Equivariant layers with an activation between them; the last one leads to the target.

    All layers but the last keep the shape of the source. With the default options this is the paper's network.

    Args:
        spec: The shape of input and output, for instance "n n -> n", or of several tensors: "n n, n -> n". Layers
            before the last keep the shape of the input, "{n n}" with braces as well.
        channels: The channels of the input, after each layer, and so of the output: [1, 8, 8, 1] makes three layers.
            For several tensors each entry is a tuple, or one number for all: [(1, 5), 8, 8, 1].
        activation: A name such as "relu", or a callable that makes a module, such as torch.nn.PReLU.
        norm: Normalize before every activation over "batch", "graph" or "channels"; see `EntryNorm`.
        dropout: The probability to drop a channel of a graph after every activation.
        residual: Whether layers between equal numbers of channels add their input to their output.
        bias: As in `EquivariantLinear`, like all that follow.
        basis: The basis of the weights.
        normalize: Whether sums are divided by the number of their terms.
        symmetric: Declares a symmetric input of the first layer.
        hollow: Declares a hollow input of the first layer.
        max_maps: A spec of a layer with more maps is refused.

    >>> net = EquivariantNet("n n -> n", [1, 8, 8, 2])
    >>> net(torch.randn(5, 20, 20, 1)).shape
    torch.Size([5, 20, 2])
    """

    def __init__(
        self,
        spec: str | Spec,
        channels: Sequence[Channels],
        *,
        activation: MakesActivation = "relu",
        norm: str | None = None,
        dropout: float = 0.0,
        residual: bool = False,
        bias: bool = True,
        basis: str = "diagram",
        normalize: str = "mean",
        symmetric: bool = False,
        hollow: bool = False,
        max_maps: int = MOST_MAPS,
    ) -> None:
        super().__init__()
        self.spec = parse_spec(spec)
        call = f'EquivariantNet("{self.spec}", {as_written(list(channels))})'
        advice = "Give the channels of the input and after each layer: [1, 8, 1]."
        channels = check_stack(call, channels, advice, self.spec)
        self.in_channels, self.out_channels = channels[0], channels[-1]
        linear = {"bias": bias, "basis": basis, "normalize": normalize, "max_maps": max_maps}
        first = {"symmetric": symmetric, "hollow": hollow}
        options = StackOptions(call, activation, norm, dropout, residual=residual, linear=linear, first=first)
        self.blocks = options.stack(self.spec, channels[:-1])
        self.last = options.layer(self.spec, channels[-2], channels[-1], is_first=len(channels) == 2)

    def forward(
        self, x: OverNodes | Collection, *more: object, sizes: Sizes = None, support: Supports = None
    ) -> OverNodes | Collection:
        """From (*batch, one axis for each source slot, channels[0]) to (*batch, target slots, channels[-1]).

        Args:
            x: A tensor, `Padded` or `Sparse`, or several as a tuple. All layers but the last keep the support of a
                `Sparse`.
            more: Raises an error: several tensors are one tuple, and options have names.
            sizes: The lengths of the node sets that only targets have.
            support: The support of the result, as in `EquivariantLinear`.
        """
        if more:
            refuse_more(f'EquivariantNet("{self.spec}")', (x, *more), len(self.spec.sources))
        result: OverNodes | Collection = self.last(self.blocks(x), sizes=sizes, support=support)
        return result


class InvariantNet(nn.Module):
    """Equivariant layers with an activation after each, one value for each orbit, fully connected layers.

    With the default options this is the paper's network; for graph classification it takes channels
    [in, 16, 32, 256] and hidden [512, 256]. Where the maximum of ReLU outputs is pooled, the last ReLU is applied after
    the pool, as `net.activation`, with the same result; the last of `net.blocks` then has none.

    Args:
        shape: The node set of every slot of the input, for instance "n n", or of several: "n n, n". Braces stand around
            slots that may be exchanged, in the input and so after every layer: "{n n}".
        channels: The channels of the input and after each equivariant layer; for several tensors each entry is a tuple,
            or one number for all.
        out_channels: The length of the output vector.
        hidden: The widths of the fully connected layers before the last.
        reduce: The reduction of each orbit: "max", "sum" or "mean", or several of them: ("mean", "max").
        pool_over: "all" entries, or those that are "stored" in a `Sparse`; see `InvariantPool`.
        activation: As in `EquivariantNet`, like all that follow but jumping_knowledge.
        norm: The normalization before every activation.
        dropout: The probability to drop a channel of a graph, or a hidden unit, after every activation.
        residual: Whether layers between equal numbers of channels add their input to their output.
        jumping_knowledge: Whether the outputs of all equivariant layers are pooled and concatenated, not only the last.
        bias: Whether layers have a bias.
        basis: The basis of the weights.
        normalize: Whether sums are divided by the number of their terms.
        symmetric: Declares a symmetric input of the first layer.
        hollow: Declares a hollow input of the first layer.
        max_maps: A spec of a layer with more maps is refused.

    >>> net = InvariantNet("n n", [1, 8, 8], 3, hidden=[16])
    >>> net(torch.randn(5, 20, 20, 1)).shape
    torch.Size([5, 3])
    """

    def __init__(
        self,
        shape: str,
        channels: Sequence[Channels],
        out_channels: int,
        *,
        hidden: Sequence[int] = (),
        reduce: str | Sequence[str] = "max",
        pool_over: str = "all",
        activation: MakesActivation = "relu",
        norm: str | None = None,
        dropout: float = 0.0,
        residual: bool = False,
        jumping_knowledge: bool = False,
        bias: bool = True,
        basis: str = "diagram",
        normalize: str = "mean",
        symmetric: bool = False,
        hollow: bool = False,
        max_maps: int = MOST_MAPS,
    ) -> None:
        super().__init__()
        self.spec = parse_source(shape)
        shown = text_of(self.spec.sources, self.spec.unordered)
        call = f'InvariantNet("{shown}", {as_written(list(channels))}, {as_written(out_channels)})'
        advice = "Give the channels of the input and after each layer: [1, 8, 8]."
        channels = check_stack(call, channels, advice, self.spec.to_itself)
        self.in_channels = channels[0]
        self.out_channels = check_channels(call, "out_channels", out_channels)
        widths = check_hidden(call, hidden)
        linear = {"bias": bias, "basis": basis, "normalize": normalize, "max_maps": max_maps}
        first = {"symmetric": symmetric, "hollow": hollow}
        options = StackOptions(call, activation, norm, dropout, residual=residual, linear=linear, first=first)
        self.blocks = options.stack(self.spec, channels)
        self.pool = InvariantPool(text_of(self.spec.sources), reduce, over=pool_over, max_maps=max_maps)
        self.jumping_knowledge = jumping_knowledge
        self.activation: nn.Module = nn.Identity()
        last = cast(Block, self.blocks[-1])
        if self.pool.reduce == "max" and not jumping_knowledge and last.ends_with_relu:
            # The maximum of ReLU outputs is the ReLU of the maximum, which has far fewer entries.
            self.activation, last.activation = last.activation, self.activation
        pooled = sum(map(self.pool.n_pooled, channels[1:] if jumping_knowledge else channels[-1:]))
        self.head = options.fully_connected([pooled, *widths, self.out_channels])

    def forward(self, x: OverNodes | Collection, *more: object) -> Tensor:
        """From (*batch, one axis for each slot, channels[0]) to (*batch, out_channels)."""
        if more:
            refuse_more(f'InvariantNet("{text_of(self.spec.sources)}")', (x, *more), len(self.spec.sources))
        if not self.jumping_knowledge:
            return cast(Tensor, self.head(self.activation(self.pool(self.blocks(x)))))
        pooled = []
        for block in self.blocks:
            x = block(x)
            pooled.append(self.pool(x))
        return cast(Tensor, self.head(torch.cat(pooled, -1)))


@dataclass(frozen=True)
class StackOptions:
    """The options of a network, with those of every `EquivariantLinear` and of the first one.

    Messages name the network by `call`; the other options are those of `EquivariantNet`.
    """

    call: str
    activation: MakesActivation
    norm: str | None
    dropout: float
    residual: bool = False
    linear: Mapping[str, Any] = field(default_factory=dict)
    first: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.norm is not None:
            check_choice(self.call, "norm", self.norm, OVER)
        if not 0 <= self.dropout < 1:
            raise OptionError(f"{self.call}: dropout must be a probability below 1, not {as_written(self.dropout)}.")

    def layer(self, spec: Spec, before: Channels, after: Channels, *, is_first: bool) -> EquivariantLinear:
        """One equivariant layer."""
        return EquivariantLinear(spec, before, after, **self.linear, **(self.first if is_first else {}))

    def norm_layer(self, channels: Channels, shape: str) -> nn.Module:
        """The normalization, or the identity."""
        return nn.Identity() if self.norm is None else EntryNorm(channels, shape, over=self.norm)

    def stack(self, spec: Spec, channels: Sequence[Channels]) -> nn.Sequential:
        """Blocks that keep the shapes of the sources of a spec, from channels[0] to channels[-1]."""
        steps = enumerate(pairwise(channels))
        return nn.Sequential(*(Block(self.layer(spec.to_itself, *pair, is_first=n == 0), self) for n, pair in steps))

    def fully_connected(self, widths: Sequence[int]) -> nn.Sequential:
        """Fully connected layers with an activation between them."""
        modules: list[nn.Module] = []
        for before, after in pairwise(widths):
            linear = nn.Linear(before, after)
            nn.init.kaiming_normal_(linear.weight, nonlinearity="relu")
            nn.init.zeros_(linear.bias)
            modules += [linear, make_activation(self.call, self.activation)]
            if self.dropout:
                modules.append(ChannelDropout(self.dropout, ""))
        return nn.Sequential(*modules[: -2 if self.dropout else -1])


class Block(nn.Module):
    """A layer that keeps the shape of its input, then normalization, activation and dropout."""

    def __init__(self, layer: EquivariantLinear, options: StackOptions) -> None:
        super().__init__()
        shape, channels = text_of(layer.spec.targets), layer.out_channels
        self.layer = layer
        self.norm = options.norm_layer(channels, shape)
        self.activation: nn.Module = make_activation(options.call, options.activation)
        self.dropout = ChannelDropout(options.dropout, shape)
        self.residual = options.residual and layer.in_channels == channels

    @property
    def ends_with_relu(self) -> bool:
        """Whether a ReLU is the last operation."""
        return is_relu(self.activation) and not self.dropout.p and not self.residual

    def forward(self, x: OverNodes | Collection) -> OverNodes | Collection:
        """From (*batch, node axes, channels) to the same with other channels."""
        hidden = self.layer(x)
        if isinstance(hidden, Sparse) and self._can_fuse() and (fused := self._fused(x, hidden)) is not None:
            return fused
        result: OverNodes | Collection = self.dropout(self.activation(self.norm(hidden)))
        if not self.residual:
            return result
        if isinstance(result, tuple):
            return tuple(one + other for one, other in zip(x, result, strict=True))  # type: ignore[arg-type]
        return x + result  # type: ignore[operator]

    def _can_fuse(self) -> bool:
        """Whether one kernel does everything after the layer, and no part has a hook or was replaced."""
        if type(self.norm) is not EntryNorm or not is_relu(self.activation) or _has_any_global_hook():  # type: ignore[no-untyped-call]
            return False
        return type(self.dropout) is ChannelDropout and is_unmodified(self.norm) and is_unmodified(self.dropout)

    def _fused(self, x: OverNodes | Collection, hidden: Sparse) -> Sparse | None:
        """The output of a layer normalized, activated, dropped out and added to x by one kernel; None without one."""
        residual = None
        if self.residual:
            if not isinstance(x, Sparse) or x.support is not hidden.support:
                return None
            if not can_fuse_norm(hidden.values, [x.values]):
                return None
            residual = x.values
        norm = cast(EntryNorm, self.norm)
        moments = norm.update_moments(hidden)
        if moments is None:
            return None
        drops = self.dropout.training and self.dropout.p > 0
        return hidden.with_values(
            fused_norm_relu(
                hidden.values,
                (norm.weight, norm.bias),
                moments,
                eps=norm.eps,
                training=norm.training,
                dropout=self.dropout.draw_mask(hidden) if drops else None,
                residual=residual,
            )
        )


def check_stack(call: str, channels: Sequence[Channels], advice: str, spec: Spec) -> list[Channels]:
    """The channels of a stack of layers: at least two entries, each valid for its tensors; the last is of targets."""
    checked: list[Channels] = []
    for number, value in enumerate(channels):
        shapes = spec.targets if number == len(channels) - 1 and number else spec.sources
        several = check_channels_of_all(call, f"channels[{number}]", value, len(shapes))
        checked.append(several if len(several) > 1 else several[0])
    if len(checked) < 2:
        raise OptionError(f"{call}: channels must have at least 2 entries, not {len(checked)}.\n{advice}")
    return checked


def check_hidden(call: str, hidden: Sequence[int]) -> list[int]:
    """The widths of hidden layers."""
    return [check_channels(call, f"hidden[{number}]", width) for number, width in enumerate(hidden)]
