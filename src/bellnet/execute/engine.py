"""The engine of a layer: its plan, prepared for the channels it has, as a differentiable function.

Left to itself, autograd would undo every step on its own and add up full-size gradients one by one. Whoever wants to
see the operations themselves, to trace, transform or differentiate them once more, is shown plain ones.
"""

from collections.abc import Sequence
from math import prod
from typing import Any, NamedTuple

import torch
from torch import Tensor

from bellnet.execute.layout import Layout, Walk
from bellnet.execute.level_matrices import LevelMatrices
from bellnet.execute.means import NO_MEANS, Means
from bellnet.execute.orders import in_order
from bellnet.execute.plain import run_plain
from bellnet.execute.transforms import is_batched, wants_plain
from bellnet.plan import Plan, Present, Swap


class Engine:
    """What runs a plan with so many channels.

    Args:
        plan: The plan.
        in_channels: The channels of the source, or of every source.
        out_channels: The channels of the target, or of every target.
        mean: Whether to divide every sum by the number of its terms.
    """

    def __init__(
        self, plan: Plan, in_channels: int | tuple[int, ...], out_channels: int | tuple[int, ...], *, mean: bool
    ) -> None:
        self.plan, self.mean = plan, mean
        inside, outside = (
            (channels,) if isinstance(channels, int) else channels for channels in (in_channels, out_channels)
        )
        self.channels = inside, outside
        self._all = Present(plan, tuple(range(plan.n_maps)), tuple(range(plan.n_biases)))
        self._matrices: dict[torch.device, dict[Plan, LevelMatrices]] = {}
        self._own: dict[torch.device, LevelMatrices] = {}
        self._last: tuple[object, Prepared] | None = None
        # Axes are grouped by node set on the way.
        self._source_orders = _unless_same([root.order for root in plan.source.roots])
        inverses = [tuple(map(root.order.index, range(len(root.order)))) for root in plan.target.roots]
        self._target_orders = _unless_same(inverses)

    def __reduce__(self) -> tuple[object, ...]:
        # What is prepared can be prepared again; a copy or a pickle goes without it.
        return _engine, (self.plan, *self.channels, self.mean)

    def __call__(self, layout: Layout, values: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        """Run the plan on a (batch, *axes, in) tensor that is zero outside the nodes, or on values of listed tuples.

        Args:
            layout: How the values are held.
            values: The input.
            weight: (n_maps, in_channels, out_channels), for diagrams.
            bias: (n_biases, out_channels), for diagrams, or None.

        Returns:
            (batch, *axes, out_channels), zero outside the nodes, or (tuples, out_channels).
        """
        return self._in_orders(layout, (values,), weight, bias)[0]

    def several(
        self, layout: Layout, values: Sequence[Tensor], weights: Sequence[Tensor], biases: Sequence[Tensor] | None
    ) -> Sequence[Tensor]:
        """The same for several sources and targets.

        Args:
            layout: How the values are held.
            values: For every source.
            weights: For every pair of the plan (n_maps, in, out).
            biases: For every target (n_biases, out).

        Returns:
            For every target.
        """
        weight = torch.cat([one.reshape(-1) for one in weights])
        bias = None if biases is None else torch.cat([one.reshape(-1) for one in biases])
        return self._in_orders(layout, values, weight, bias)

    def plainly(
        self, layout: Layout, values: Sequence[Tensor], weight: Tensor, bias: Tensor | None
    ) -> Sequence[Tensor]:
        """Run the whole plan in operations that can be traced and differentiated; axes are grouped by node set."""
        moves, means = layout.moves(self.plan, values, mean=self.mean)
        means = means.over_columns(self.plan.source, self.channels[0])
        weights, biases = self._apart(weight, bias)
        return run_plain(self.plan, moves, values, weights=weights, biases=biases, means=means)

    def _apart(self, weight: Tensor, bias: Tensor | None) -> tuple[Sequence[Tensor], Sequence[Tensor] | None]:
        """Weights pair by pair, and biases target by target."""
        if self.plan.spec.is_single:
            return (weight,), None if bias is None else (bias,)
        inside, outside = self.channels
        shapes = [(pair.n_maps, inside[pair.source], outside[pair.target]) for pair in self.plan.pairs]
        weights = [
            one.view(shape) for one, shape in zip(torch.split(weight, list(map(prod, shapes))), shapes, strict=True)
        ]
        if bias is None:
            return weights, None
        sizes = [len(patterns) * channels for patterns, channels in zip(self.plan.written, outside, strict=True)]
        return weights, torch.split(bias, sizes)

    def _in_orders(
        self, layout: Layout, values: Sequence[Tensor], weight: Tensor, bias: Tensor | None
    ) -> Sequence[Tensor]:
        if not layout.has_axes:
            return self._run(layout, values, weight, bias)
        if self._source_orders is not None:
            values = _in_orders(values, self._source_orders)
        results = self._run(layout, values, weight, bias)
        return results if self._target_orders is None else _in_orders(results, self._target_orders)

    def _run(self, layout: Layout, values: Sequence[Tensor], weight: Tensor, bias: Tensor | None) -> Sequence[Tensor]:
        if wants_plain():
            return self.plainly(layout, values, weight, bias)
        prepared = self._prepared(layout, values, weight)
        if prepared is None:
            return self.plainly(layout, values, weight, bias)
        if torch.is_grad_enabled() and any(one is not None and one.requires_grad for one in (weight, bias, *values)):
            results: tuple[Tensor, ...] = _Run.apply(  # type: ignore[no-untyped-call]
                prepared, self, layout, weight, bias, *values
            )
            return results
        return prepared.forward(values, weight, bias)[0]

    def _prepared(self, layout: Layout, values: Sequence[Tensor], weight: Tensor) -> "Prepared | None":
        """What runs, and with which matrices; None to go by the moves. The last is kept: it often comes again."""
        key, last = layout.key(values), self._last
        if last is not None and key is not None and last[0] == key:
            return last[1]
        left = layout.present(self.plan)
        walk = layout.walk(self.plan if left is None else left.plan, self.channels, values)
        if walk is None:
            return None
        matrices = self._own.get(weight.device) if left is None else self._level_matrices(left, weight.device)
        if matrices is None:
            matrices = self._own[weight.device] = self._level_matrices(self._all, weight.device)
        prepared = Prepared(walk, matrices, walk.means(values) if self.mean else NO_MEANS)
        if key is not None:
            self._last = key, prepared
        return prepared

    def _level_matrices(self, left: Present, device: torch.device) -> LevelMatrices:
        of_device = self._matrices.setdefault(device, {})
        found = of_device.get(left.plan)
        if found is None:
            found = of_device[left.plan] = LevelMatrices(
                left.plan,
                left.maps,
                biases=left.biases,
                whole=self.plan,
                channels=self.channels,
                device=device,
            )
        return found


def _engine(plan: Plan, in_channels: tuple[int, ...], out_channels: tuple[int, ...], mean: bool) -> Engine:
    return Engine(plan, in_channels, out_channels, mean=mean)


def _unless_same(orders: Sequence[Swap]) -> list[Swap | None] | None:
    """The orders, None for one that changes nothing; or None if none does."""
    found = [None if order == tuple(range(len(order))) else order for order in orders]
    return found if any(order is not None for order in found) else None


def _in_orders(tensors: Sequence[Tensor], orders: Sequence[Swap | None]) -> list[Tensor]:
    return [one if order is None else in_order(one, order) for one, order in zip(tensors, orders, strict=True)]


class Prepared(NamedTuple):
    """A plan made ready for a layout: what walks through it, with which matrices, and how sums become means."""

    walk: Walk
    matrices: LevelMatrices
    means: Means

    def forward(
        self, values: Sequence[Tensor], weight: Tensor, bias: Tensor | None
    ) -> tuple[Sequence[Tensor], Tensor, list[Tensor]]:
        """The results, all matrices, and what was read."""
        walk, matrices, means = self
        gathered = matrices.gather(weight, means.lengths)
        of_bias = None if bias is None else matrices.gather_bias(bias)
        results, read = walk.forward(values, walk.views(matrices, gathered), bias=of_bias, means=means)
        return results, gathered, read


class _Run(torch.autograd.Function):
    """A walk with its gradient; what it returns is never a view."""

    @staticmethod
    def forward(
        ctx: Any,
        prepared: Prepared,
        engine: Engine,
        layout: Layout,
        weight: Tensor,
        bias: Tensor | None,
        *values: Tensor,
    ) -> tuple[Tensor, ...]:
        results, gathered, read = prepared.forward(values, weight, bias)
        ctx.engine, ctx.layout, ctx.prepared = engine, layout, prepared
        # What was read is small, but for the input itself. All of it goes through autograd's hands, which lets go of
        # it in time and knows of checkpointing. Matrices are small where the input is; else they are made again.
        ctx.save_for_backward(weight, bias, gathered if prepared.walk.is_small else None, *values, *read)
        return tuple(results)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> tuple[Tensor | None, ...]:
        weight, bias, gathered, *read = ctx.saved_tensors
        n_values = len(ctx.engine.channels[0])
        values, read = read[:n_values], read[n_values:]
        needs = ctx.needs_input_grad[3:]
        if torch.is_grad_enabled() or wants_plain() or is_batched(gradients[0]):  # somebody looks at this pass, too
            return None, None, None, *_plain_gradients(ctx, [weight, bias, *values], gradients, needs)
        walk, matrices, means = ctx.prepared
        to_values = any(needs[2:])
        if to_values and gathered is None:
            gathered = matrices.gather(weight, means.lengths)
        of_gathered = matrices.zeros(weight)
        of_bias = matrices.zeros_of_bias(weight) if needs[1] else None
        of_values = walk.backward(
            gradients,
            values,
            read,
            matrices=walk.views(matrices, gathered) if to_values else None,
            of_matrices=walk.views(matrices, of_gathered),
            of_bias=of_bias,
            means=means,
        )
        of_weight = matrices.scatter(of_gathered, means.lengths, weight.shape) if needs[0] else None
        bias_gradient = None if of_bias is None else matrices.scatter_bias(of_bias, bias.shape)
        return None, None, None, of_weight, bias_gradient, *(of_values or [None] * n_values)


def _plain_gradients(
    ctx: Any, inputs: list[Tensor | None], gradients: Sequence[Tensor], needs: tuple[bool, ...]
) -> list[Tensor | None]:
    """The gradients of the inputs in plain operations."""
    with torch.enable_grad():
        # Views of their own: what is asked for is the derivative of this layer alone.
        own = [one if one is None else one.view_as(one) for one in inputs]
        weight, bias, *values = own
        results = ctx.engine.plainly(ctx.layout, values, weight, bias)
        wanted = [one for one, needed in zip(own, needs, strict=True) if needed and one is not None]
        found = iter(torch.autograd.grad(results, wanted, gradients, create_graph=True))
    return [next(found) if needed else None for needed in needs]
