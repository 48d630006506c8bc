"""Provably powerful graph networks: blocks with matrix products, which sum over paths of two steps."""

from collections.abc import Sequence
from itertools import pairwise
from typing import cast

import torch
from torch import Tensor, nn

from bellnet.errors import as_written
from bellnet.nn.inputs import OverNodes, check_channels
from bellnet.nn.networks import MakesActivation, StackOptions, check_hidden, check_stack
from bellnet.nn.pointwise import ChannelDropout, Pointwise, make_activation
from bellnet.nn.pool import InvariantPool
from bellnet.nn.product import Product
from bellnet.plan import MOST_MAPS
from bellnet.spec import Spec, parse_shape


class PPGN(nn.Module):
    """Blocks of two pointwise networks, the product of their outputs and a skip connection; then a readout.

    The provably powerful graph networks of Maron, Ben-Hamu, Serviansky and Lipman (2019): over "n n" they distinguish
    the graphs that 2-FWL (= 3-WL) does, for which linear layers need triples. A first equivariant layer marks the
    diagonal; after it all operations but the products are pointwise.

    Args:
        shape: The node set of every slot, for instance "n n".
        channels: The channels of the input and after each block: [1, 32, 32] makes two blocks.
        out_channels: The length of the output vector.
        hidden: The widths of the fully connected layers before the last.
        depth: The number of layers of the pointwise networks.
        reduce: The reduction of each orbit, as in `InvariantPool`.
        pool_over: "all" entries, or those that are "stored" in a `Sparse`; see `InvariantPool`.
        activation: A name such as "relu", or a callable that makes a module, such as torch.nn.PReLU.
        norm: Normalize both factors of every product over "batch", "graph" or "channels"; see `EntryNorm`. Without it
            a constant that all entries of a factor share dominates: in sums of n terms it grows n times as fast.
        dropout: The probability to drop a channel of a graph after a block, or a hidden unit.
        jumping_knowledge: Whether the outputs of all blocks are pooled and concatenated, not only the last.
        normalize: The normalization of products, as in `Product`. The first layer takes means over all nodes in any
            case; replace it for others, `net.first = EquivariantLinear("n n -> n n", 1, 8, normalize="sum")`.
        contraction: The contraction of products, as in `Product`.
        max_maps: A first layer with more maps is refused.

    >>> net = PPGN("n n", [1, 8, 8], 3, hidden=[16])
    >>> net(torch.randn(5, 20, 20, 1)).shape
    torch.Size([5, 3])
    """

    def __init__(
        self,
        shape: str,
        channels: Sequence[int],
        out_channels: int,
        *,
        hidden: Sequence[int] = (),
        depth: int = 2,
        reduce: str | Sequence[str] = "max",
        pool_over: str = "all",
        activation: MakesActivation = "relu",
        norm: str | None = "batch",
        dropout: float = 0.0,
        jumping_knowledge: bool = True,
        normalize: str = "root",
        contraction: str | None = None,
        max_maps: int = MOST_MAPS,
    ) -> None:
        super().__init__()
        slots = parse_shape(shape)
        self.spec = Spec(slots, ())
        call = f'PPGN("{" ".join(slots)}", {as_written(list(channels))}, {as_written(out_channels)})'
        advice = "Give the channels of the input and after each block: [1, 32, 32]."
        widths = cast(list[int], check_stack(call, channels, advice, self.spec.to_itself))
        self.in_channels = widths[0]
        self.out_channels = check_channels(call, "out_channels", out_channels)
        depth, fully = check_channels(call, "depth", depth), check_hidden(call, hidden)
        options = StackOptions(call, activation, norm, dropout, linear={"max_maps": max_maps})
        self.first = options.layer(self.spec.to_itself, widths[0], widths[1], is_first=True)
        products = [Product(Spec((slots, slots), slots), contraction, normalize=normalize) for _ in widths[1:]]
        pairs = pairwise([widths[1], *widths[1:]])
        self.blocks = nn.ModuleList(
            ProductBlock(product, before, after, depth=depth, options=options)
            for product, (before, after) in zip(products, pairs, strict=True)
        )
        self.pool = InvariantPool(" ".join(slots), reduce, over=pool_over, max_maps=max_maps)
        self.jumping_knowledge = jumping_knowledge
        pooled = sum(map(self.pool.n_pooled, widths[1:] if jumping_knowledge else widths[-1:]))
        self.head = options.fully_connected([pooled, *fully, self.out_channels])

    def forward(self, x: OverNodes) -> Tensor:
        """From (*batch, one axis for each slot, channels[0]) to (*batch, out_channels)."""
        x = self.first(x)
        pooled = []
        for block in self.blocks:
            x = block(x)
            if self.jumping_knowledge:
                pooled.append(self.pool(x))
        return cast(Tensor, self.head(torch.cat(pooled, -1) if self.jumping_knowledge else self.pool(x)))


class ProductBlock(nn.Module):
    """Two pointwise networks, the product of their outputs, and a skip connection."""

    def __init__(self, product: Product, before: int, after: int, *, depth: int, options: StackOptions) -> None:
        super().__init__()
        shape = " ".join(product.spec.target)
        self.left, self.right = (_pointwise_network(before, after, depth, options) for _ in range(2))
        self.product = product
        self.norms = nn.ModuleList(options.norm_layer(after, shape) for _ in range(2))
        self.of_input, self.of_product = Pointwise(nn.Linear(before, after)), Pointwise(nn.Linear(after, after))
        for part in (self.of_input, self.of_product):
            _draw(cast(nn.Linear, part.module), 0.5)  # their sum keeps the second moment
        self.dropout = ChannelDropout(options.dropout, shape)

    def forward(self, x: OverNodes) -> OverNodes:
        """From (*batch, node axes, channels) to the same with other channels."""
        left, right = self.norms
        product = self.product(left(self.left(x)), right(self.right(x)))
        result: OverNodes = self.dropout(self.of_input(x) + self.of_product(product))
        return result


def _pointwise_network(before: int, after: int, depth: int, options: StackOptions) -> nn.Sequential:
    """Pointwise linear layers with an activation between them."""
    modules: list[nn.Module] = []
    for number in range(depth):
        linear = nn.Linear(before if number == 0 else after, after)
        _draw(linear, 1.0 if number == 0 else 2.0)
        modules += [Pointwise(linear), make_activation(options.call, options.activation)]
    return nn.Sequential(*modules[:-1])


def _draw(linear: nn.Linear, gain: float) -> None:
    """Draw weights that multiply the second moment by the gain."""
    nn.init.normal_(linear.weight, std=(gain / linear.in_features) ** 0.5)
    nn.init.zeros_(linear.bias)
