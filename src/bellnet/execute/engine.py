"""The engine of a layer: its plan, prepared for the channels it has, as a differentiable function.

Left to itself, autograd would undo every step on its own and add up full-size gradients one by one. Whoever wants to
see the operations themselves, to trace, transform or differentiate them once more, is shown plain ones.
"""

from collections.abc import Sequence
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

FEW_NUMBERS = 2**16
"""Matrices of so many numbers, or of no more than the input has, are kept for the gradient; others are made again."""


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
        return self.several(layout, (values,), (weight,), None if bias is None else (bias,))[0]

    def several(
        self, layout: Layout, values: Sequence[Tensor], weights: Sequence[Tensor], biases: Sequence[Tensor] | None
    ) -> Sequence[Tensor]:
        """The same for several sources and targets.

        Args:
            layout: How the values are held.
            values: For every source.
            weights: For every pair of the plan (n_maps, in, out).
            biases: For every target (n_biases, out), or None.

        Returns:
            For every target.
        """
        if not layout.has_axes:
            return self._run(layout, values, weights, biases)
        if self._source_orders is not None:
            values = _in_orders(values, self._source_orders)
        results = self._run(layout, values, weights, biases)
        return results if self._target_orders is None else _in_orders(results, self._target_orders)

    def plainly(
        self, layout: Layout, values: Sequence[Tensor], weights: Sequence[Tensor], biases: Sequence[Tensor] | None
    ) -> Sequence[Tensor]:
        """Run the whole plan in operations that can be traced and differentiated; axes are grouped by node set."""
        moves, means = layout.moves(self.plan, values, mean=self.mean)
        means = means.over_columns(self.plan.source, self.channels[0])
        return run_plain(self.plan, moves, values, weights=weights, biases=biases, means=means)

    def _run(
        self, layout: Layout, values: Sequence[Tensor], weights: Sequence[Tensor], biases: Sequence[Tensor] | None
    ) -> Sequence[Tensor]:
        if wants_plain():
            return self.plainly(layout, values, weights, biases)
        prepared = self._prepared(layout, values, weights[0].device)
        if prepared is None:
            return self.plainly(layout, values, weights, biases)
        inputs = (*weights, *(biases or ()), *values)
        if torch.is_grad_enabled() and any(one.requires_grad for one in inputs):
            counts = len(weights), 0 if biases is None else len(biases)
            results: tuple[Tensor, ...] = _Run.apply(  # type: ignore[no-untyped-call]
                prepared, self, layout, counts, *inputs
            )
            return results
        return prepared.forward(values, weights, biases)[0]

    def _prepared(self, layout: Layout, values: Sequence[Tensor], device: torch.device) -> "Prepared | None":
        """What runs, and with which matrices; None to go by the moves. The last is kept: it often comes again."""
        key, last = layout.key(values), self._last
        if last is not None and key is not None and last[0] == key:
            return last[1]
        left = layout.present(self.plan)
        walk = layout.walk(self.plan if left is None else left.plan, self.channels, values)
        if walk is None:
            return None
        matrices = self._own.get(device) if left is None else self._level_matrices(left, device)
        if matrices is None:
            matrices = self._own[device] = self._level_matrices(self._all, device)
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
        self, values: Sequence[Tensor], weights: Sequence[Tensor], biases: Sequence[Tensor] | None
    ) -> tuple[Sequence[Tensor], Tensor, list[Tensor]]:
        """The results, all matrices, and what was read."""
        walk, matrices, means = self
        gathered = matrices.gather(weights, means.lengths)
        bias = None if biases is None else matrices.gather_biases(biases)
        results, read = walk.forward(values, walk.views(matrices, gathered), bias=bias, means=means)
        return results, gathered, read


class _Run(torch.autograd.Function):
    """A walk with its gradient, from weights, biases and values; what it returns is never a view."""

    @staticmethod
    def forward(
        ctx: Any, prepared: Prepared, engine: Engine, layout: Layout, counts: tuple[int, int], *inputs: Tensor
    ) -> tuple[Tensor, ...]:
        weights, biases, values = _three(inputs, counts)
        results, gathered, read = prepared.forward(values, weights, biases or None)
        ctx.engine, ctx.layout, ctx.prepared, ctx.counts = engine, layout, prepared, counts
        # What was read is small, but for the input itself, and matrices are kept if they are. All of it goes through
        # autograd's hands, which lets go of it in time and knows of checkpointing.
        *_, to_values = _three(ctx.needs_input_grad[4:], counts)
        are_small = gathered.numel() <= max(values[0].numel(), FEW_NUMBERS)
        ctx.save_for_backward(gathered if are_small and any(to_values) else None, *inputs, *read)
        return tuple(results)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> tuple[Tensor | None, ...]:
        needs = ctx.needs_input_grad[4:]
        gathered, *saved = ctx.saved_tensors
        inputs, read = saved[: len(needs)], saved[len(needs) :]
        if torch.is_grad_enabled() or wants_plain() or is_batched(gradients[0]):  # somebody looks at this pass, too
            return None, None, None, None, *_plain_gradients(ctx, inputs, gradients, needs)
        weights, biases, values = _three(inputs, ctx.counts)
        to_weights, to_biases, to_values = map(any, _three(needs, ctx.counts))
        walk, matrices, means = ctx.prepared
        if to_values and gathered is None:
            gathered = matrices.gather(weights, means.lengths)
        of_gathered = matrices.zeros(weights[0])
        of_bias = matrices.zeros_of_bias(weights[0]) if to_biases else None
        of_values = walk.backward(
            gradients,
            values,
            read,
            matrices=walk.views(matrices, gathered) if to_values else None,
            of_matrices=walk.views(matrices, of_gathered),
            of_bias=of_bias,
            means=means,
        )
        of_weights = matrices.scatter(of_gathered, means.lengths, weights) if to_weights else [None] * len(weights)
        of_biases = [None] * len(biases) if of_bias is None else matrices.scatter_biases(of_bias, biases)
        return None, None, None, None, *of_weights, *of_biases, *(of_values or [None] * len(values))


def _three(inputs: Sequence[Any], counts: tuple[int, int]) -> tuple[Sequence[Any], Sequence[Any], Sequence[Any]]:
    """Weights, biases and values, of so many weights and biases and all that follows."""
    first, second = counts[0], sum(counts)
    return inputs[:first], inputs[first:second], inputs[second:]


def _plain_gradients(
    ctx: Any, inputs: Sequence[Tensor], gradients: Sequence[Tensor], needs: tuple[bool, ...]
) -> list[Tensor | None]:
    """The gradients of the inputs in plain operations."""
    with torch.enable_grad():
        # Views of their own: what is asked for is the derivative of this layer alone.
        own = [one.view_as(one) for one in inputs]
        weights, biases, values = _three(own, ctx.counts)
        results = ctx.engine.plainly(ctx.layout, values, weights, biases or None)
        wanted = [one for one, needed in zip(own, needs, strict=True) if needed]
        found = iter(torch.autograd.grad(results, wanted, gradients, create_graph=True))
    return [next(found) if needed else None for needed in needs]
