"""The paper's two networks: stacks of equivariant layers, to a tensor over nodes or to a vector."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import cast

import torch
from torch import Tensor, nn

from bellnet.backends import can_fuse_norm, fused_norm_relu
from bellnet.errors import OptionError, as_written
from bellnet.nn.arguments import check_channels, check_channels_of_all, check_choice, refuse_more
from bellnet.nn.inputs import Collection, OverNodes, Sizes
from bellnet.nn.linear import EquivariantLinear
from bellnet.nn.norm import OVER, EntryNorm
from bellnet.nn.pointwise import ChannelDropout, is_rectifying, is_untouched, make_activation, nobody_looks
from bellnet.nn.pool import InvariantPool
from bellnet.nn.sparse_validation import Supports
from bellnet.plan import MOST_MAPS
from bellnet.spec import Spec, parse_source, parse_spec, text_of
from bellnet.tensors import Sparse

Channels = int | tuple[int, ...]
"""Of one tensor, or of each of several."""
MakesActivation = str | Callable[[], nn.Module]


class EquivariantNet(nn.Module):
    """Equivariant layers with an activation between them; the last one goes to the target.

    All layers but the last keep the shape of the source. With the default options this is the paper's network.

    Args:
        spec: The shape of input and output, for instance "n n -> n", or of several: "n n, n -> n". Layers
            before the last keep the shape of the input, "{n n}" with braces as well.
        channels: The channels of the input, after each layer, and so of the output: [1, 8, 8, 1] makes three layers.
            For several tensors each entry is a tuple, or one number for all: [(1, 5), 8, 8, 1].
        activation: A name such as "relu", or something that makes a module, such as torch.nn.PReLU.
        norm: Normalise before every activation over "batch", "graph" or "channels"; see `EntryNorm`.
        dropout: The probability to drop a channel of a graph after every activation.
        residual: Whether layers between equal numbers of channels add their input to their output.
        bias: As in `EquivariantLinear`, like all that follow.
        basis: What the weights are coefficients of.
        normalize: Whether sums are divided by the number of their terms.
        symmetric: Declared of the input; concerns the first layer.
        hollow: Declared of the input; concerns the first layer.
        max_maps: A layer with more maps is refused before any work.

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
        channels = check_stack(call, channels, 2, advice, self.spec)
        self.in_channels, self.out_channels = channels[0], channels[-1]
        options = StackOptions(
            call=call,
            activation=activation,
            norm=norm,
            dropout=dropout,
            residual=residual,
            bias=bias,
            basis=basis,
            normalize=normalize,
            symmetric=symmetric,
            hollow=hollow,
            max_maps=max_maps,
        )
        self.blocks = options.stack(self.spec, channels[:-1])
        self.last = options.layer(self.spec, channels[-2], channels[-1], first=len(channels) == 2)

    def forward(
        self, x: OverNodes | Collection, *more: object, sizes: Sizes = None, support: Supports = None
    ) -> OverNodes | Collection:
        """From (*batch, one axis for each source slot, channels[0]) to (*batch, target slots, channels[-1]).

        Args:
            x: A tensor, `Padded` or `Sparse`, or several as a tuple. All layers but the last list the tuples of a
                `Sparse`.
            more: Nothing; several tensors are one tuple, and options have names.
            sizes: The lengths of the node sets that only the target has.
            support: The tuples that the result is to list, as in `EquivariantLinear`.
        """
        if more:
            refuse_more(f'EquivariantNet("{self.spec}")', (x, *more), len(self.spec.sources))
        result: OverNodes | Collection = self.last(self.blocks(x), sizes=sizes, support=support)
        return result


class InvariantNet(nn.Module):
    """Equivariant layers with an activation after each, one value for each orbit, fully connected layers.

    With the default options this is the paper's network; for graph classification it takes channels
    [in, 16, 32, 256] and hidden [512, 256]. Where the maximum of rectified numbers is pooled, the last layer's ReLU
    stands behind the pool as `net.activation`, which gives the same; `net.blocks` end without it then, and whoever
    changes the activations of a network changes that one as well.

    Args:
        shape: The node set of every slot of the input, for instance "n n", or of several: "n n, n". Braces stand around
            slots that may be exchanged, in the input and so after every layer: "{n n}".
        channels: The channels of the input and after each equivariant layer; for several tensors each entry is a tuple,
            or one number for all.
        out_channels: The length of the vector that comes out.
        hidden: The widths of the fully connected layers before the last.
        reduce: What is taken of each orbit: "max", "sum" or "mean", or several of them: ("mean", "max").
        pool_over: "all" tuples of nodes, or those that are "stored" in a `Sparse`; see `InvariantPool`.
        activation: A name such as "relu", or something that makes a module, such as torch.nn.PReLU.
        norm: Normalise before every activation over "batch", "graph" or "channels"; see `EntryNorm`.
        dropout: The probability to drop a channel of a graph, or a hidden unit, after every activation.
        residual: Whether layers between equal numbers of channels add their input to their output.
        jumping_knowledge: Whether the outputs of all equivariant layers are pooled and concatenated, not only the last.
        bias: As in `EquivariantLinear`, like all that follow.
        basis: What the weights are coefficients of.
        normalize: Whether sums are divided by the number of their terms.
        symmetric: Declared of the input; concerns the first layer.
        hollow: Declared of the input; concerns the first layer.
        max_maps: A layer with more maps is refused before any work.

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
        channels = check_stack(call, channels, 2, advice, self.spec.to_itself)
        self.in_channels = channels[0]
        self.out_channels = check_channels(call, "out_channels", out_channels)
        widths = [check_channels(call, f"hidden[{place}]", width) for place, width in enumerate(hidden)]
        options = StackOptions(
            call=call,
            activation=activation,
            norm=norm,
            dropout=dropout,
            residual=residual,
            bias=bias,
            basis=basis,
            normalize=normalize,
            symmetric=symmetric,
            hollow=hollow,
            max_maps=max_maps,
        )
        self.blocks = options.stack(self.spec, channels)
        self.pool = InvariantPool(text_of(self.spec.sources), reduce, over=pool_over, max_maps=max_maps)
        self.jumping_knowledge = jumping_knowledge
        self.activation: nn.Module = nn.Identity()
        last = cast(Block, self.blocks[-1])
        if self.pool.reduce == "max" and not jumping_knowledge and last.ends_rectified:
            # The largest of rectified numbers is their largest one, rectified; and that is far fewer to rectify.
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
                modules.append(ChannelDropout(self.dropout, ""))
        return nn.Sequential(*modules[: -2 if self.dropout else -1])


class Block(nn.Module):
    """A layer that keeps the shape of its input, then normalisation, activation and dropout."""

    def __init__(self, layer: EquivariantLinear, options: StackOptions) -> None:
        super().__init__()
        shape, channels = text_of(layer.spec.targets), layer.out_channels
        self.layer = layer
        self.norm = nn.Identity() if options.norm is None else EntryNorm(channels, shape, over=options.norm)
        self.activation: nn.Module = make_activation(options.call, options.activation)
        self.dropout = ChannelDropout(options.dropout, shape)
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
        moments = norm.update_moments(of_layer)
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
                dropout=self.dropout.draw_mask(of_layer) if drops else None,
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
