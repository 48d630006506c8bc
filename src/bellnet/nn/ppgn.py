"""Networks with products: pairs of nodes see what two steps lead from one to the other."""

from collections.abc import Sequence
from itertools import pairwise
from typing import cast

import torch
from torch import Tensor, nn

from bellnet.errors import as_written
from bellnet.nn.arguments import check_channels
from bellnet.nn.inputs import OverNodes
from bellnet.nn.networks import MakesActivation, StackOptions, check_stack
from bellnet.nn.norm import EntryNorm
from bellnet.nn.pointwise import ChannelDropout, Pointwise, make_activation
from bellnet.nn.pool import InvariantPool
from bellnet.nn.product import Product
from bellnet.plan import MOST_MAPS
from bellnet.spec import Spec, parse_shape


class PPGN(nn.Module):
    """Blocks that multiply: two pointwise networks, the product of what they give, and a skip; then a readout.

    These are the provably powerful graph networks of Maron, Ben-Hamu, Serviansky and Lipman (2019): over "n n" they
    tell graphs apart as the folklore Weisfeiler-Leman test on pairs does, which linear layers need triples for. A first
    equivariant layer marks the diagonal; all that follows acts on pairs alone, but for the products.

    Args:
        shape: The node set of every slot, for instance "n n".
        channels: The channels of the input and after each block: [1, 32, 32] makes two blocks.
        out_channels: The length of the vector that comes out.
        hidden: The widths of the fully connected layers before the last.
        depth: The number of layers of the pointwise networks.
        reduce: What is taken of each orbit, as in `InvariantPool`.
        pool_over: "all" tuples of nodes, or those that are "stored" in a `Sparse`; see `InvariantPool`.
        activation: A name such as "relu", or something that makes a module, such as torch.nn.PReLU.
        norm: Normalise both factors of every product over "batch", "graph" or "channels"; see `EntryNorm`. A constant
            that all entries of a factor have in common would hide the rest: of n terms it grows n times as fast.
        dropout: The probability to drop a channel of a graph after a block, or a hidden unit.
        jumping_knowledge: Whether the outputs of all blocks are pooled and concatenated, not only the last.
        normalize: By what products are divided, as in `Product`. It is about them alone: the first layer takes means
            over all nodes, whatever it says. Another one takes its place for sums, or for means over listed tuples:
            `net.first = EquivariantLinear("n n -> n n", channels[0], channels[1], normalize="sum")`.
        contraction: What is multiplied with what, as in `Product`.
        max_maps: A first layer with more maps is refused before any work.

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
        widths = cast(list[int], check_stack(call, channels, 2, advice, self.spec.to_itself))
        self.in_channels = widths[0]
        self.out_channels = check_channels(call, "out_channels", out_channels)
        fully = [check_channels(call, f"hidden[{place}]", width) for place, width in enumerate(hidden)]
        options = StackOptions(
            call=call,
            activation=activation,
            norm=norm,
            dropout=dropout,
            residual=False,
            bias=True,
            basis="diagram",
            normalize="mean",
            symmetric=False,
            hollow=False,
            max_maps=max_maps,
        )
        depth = check_channels(call, "depth", depth)
        self.first = options.layer(self.spec.to_itself, widths[0], widths[1], first=True)
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
    """Two pointwise networks, the product of what they give, and a skip."""

    def __init__(self, product: Product, before: int, after: int, *, depth: int, options: StackOptions) -> None:
        super().__init__()
        shape = " ".join(product.spec.target)
        self.left, self.right = (_pointwise_network(before, after, depth, options) for _ in range(2))
        self.product = product
        self.norms = nn.ModuleList(_norm(shape, after, options.norm) for _ in range(2))
        self.of_input, self.of_product = Pointwise(nn.Linear(before, after)), Pointwise(nn.Linear(after, after))
        for part in (self.of_input, self.of_product):
            _draw(cast(nn.Linear, part.module), 0.5)  # both together keep the second moment
        self.dropout = ChannelDropout(options.dropout, shape)

    def forward(self, x: OverNodes) -> OverNodes:
        """From (*batch, node axes, channels) to the same with other channels."""
        left, right = self.norms
        product = self.product(left(self.left(x)), right(self.right(x)))
        result: OverNodes = self.dropout(self.of_input(x) + self.of_product(product))
        return result


def _norm(shape: str, channels: int, over: str | None) -> nn.Module:
    return nn.Identity() if over is None else EntryNorm(channels, shape, over=over)


def _pointwise_network(before: int, after: int, depth: int, options: StackOptions) -> nn.Sequential:
    """Linear layers on every entry alone, with an activation between them."""
    modules: list[nn.Module] = []
    for number in range(depth):
        linear = nn.Linear(before if number == 0 else after, after)
        _draw(linear, 1.0 if number == 0 else 2.0)
        modules += [Pointwise(linear), make_activation(options.call, options.activation)]
    return nn.Sequential(*modules[:-1])


def _draw(linear: nn.Linear, gain: float) -> None:
    """Weights that multiply the second moment by a number."""
    nn.init.normal_(linear.weight, std=(gain / linear.in_features) ** 0.5)
    nn.init.zeros_(linear.bias)
