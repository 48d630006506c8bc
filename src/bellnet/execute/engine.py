"""The engine of a layer: its plan, prepared for the channels it has, as a differentiable function.

Left to itself, autograd would undo every step on its own and add up full-size gradients one by one. Whoever wants to
see the operations themselves, to trace, transform or differentiate them once more, is shown plain ones.
"""

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
        in_channels: The channels of the source.
        out_channels: The channels of the target.
        mean: Whether to divide every sum by the number of its terms.
    """

    def __init__(self, plan: Plan, in_channels: int, out_channels: int, *, mean: bool) -> None:
        self.plan, self.mean = plan, mean
        self.channels = in_channels, out_channels
        self._all = Present(plan, tuple(range(plan.n_maps)), tuple(range(plan.n_biases)))
        self._matrices: dict[torch.device, dict[Plan, LevelMatrices]] = {}
        self._own: dict[torch.device, LevelMatrices] = {}
        self._last: tuple[object, Prepared] | None = None
        # Axes are grouped by node set on the way.
        order = plan.target.order
        self._source_order = _unless_same(plan.source.order)
        self._target_order = _unless_same(tuple(map(order.index, range(len(order)))))

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
        if not layout.has_axes:
            return self._run(layout, values, weight, bias)
        if self._source_order is not None:
            values = in_order(values, self._source_order)
        result = self._run(layout, values, weight, bias)
        return result if self._target_order is None else in_order(result, self._target_order)

    def plainly(self, layout: Layout, values: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        """Run the whole plan in operations that can be traced and differentiated; axes are grouped by node set."""
        moves, means = layout.moves(self.plan, values, mean=self.mean)
        return moves.clean(run_plain(self.plan, moves, values, weight=weight, bias=bias, means=means))

    def _run(self, layout: Layout, values: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        if wants_plain():
            return self.plainly(layout, values, weight, bias)
        prepared = self._prepared(layout, values, weight)
        if prepared is None:
            return self.plainly(layout, values, weight, bias)
        wanted = weight.requires_grad or values.requires_grad or (bias is not None and bias.requires_grad)
        if wanted and torch.is_grad_enabled():
            result: Tensor = _Run.apply(prepared, self, layout, values, weight, bias)  # type: ignore[no-untyped-call]
            return result
        return prepared.forward(values, weight, bias)[0]

    def _prepared(self, layout: Layout, values: Tensor, weight: Tensor) -> "Prepared | None":
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
                n_biases=self.plan.n_biases,
                shape=(self.plan.n_maps, *self.channels),
                device=device,
            )
        return found


def _engine(plan: Plan, in_channels: int, out_channels: int, mean: bool) -> Engine:
    return Engine(plan, in_channels, out_channels, mean=mean)


def _unless_same(order: Swap) -> Swap | None:
    return None if order == tuple(range(len(order))) else order


class Prepared(NamedTuple):
    """A plan made ready for a layout: what walks through it, with which matrices, and how sums become means."""

    walk: Walk
    matrices: LevelMatrices
    means: Means

    def forward(self, values: Tensor, weight: Tensor, bias: Tensor | None) -> tuple[Tensor, Tensor, list[Tensor]]:
        """The result, all matrices, and what was read."""
        walk, matrices, means = self
        gathered = matrices.gather(weight, means.lengths)
        of_bias = None if bias is None else matrices.gather_bias(bias)
        result, read = walk.forward(values, walk.views(matrices, gathered), bias=of_bias, means=means)
        return result, gathered, read


class _Run(torch.autograd.Function):
    """A walk with its gradient; what it returns is never a view."""

    @staticmethod
    def forward(
        ctx: Any,
        prepared: Prepared,
        engine: Engine,
        layout: Layout,
        values: Tensor,
        weight: Tensor,
        bias: Tensor | None,
    ) -> Tensor:
        result, gathered, read = prepared.forward(values, weight, bias)
        ctx.engine, ctx.layout, ctx.prepared = engine, layout, prepared
        # What was read is small, but for the input itself. All of it goes through autograd's hands, which lets go of
        # it in time and knows of checkpointing. Matrices are small where the input is; else they are made again.
        ctx.save_for_backward(values, weight, bias, gathered if prepared.walk.is_small else None, *read)
        return result

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> tuple[Tensor | None, ...]:
        values, weight, bias, gathered, *read = ctx.saved_tensors
        needs = ctx.needs_input_grad[3:]
        if torch.is_grad_enabled() or wants_plain() or is_batched(gradients[0]):  # somebody looks at this pass, too
            return None, None, None, *_plain_gradients(ctx, [values, weight, bias], gradients[0], needs)
        walk, matrices, means = ctx.prepared
        if needs[0] and gathered is None:
            gathered = matrices.gather(weight, means.lengths)
        of_gathered = matrices.zeros(weight)
        of_bias = matrices.zeros_of_bias(weight) if needs[2] else None
        of_values = walk.backward(
            gradients[0],
            values,
            read,
            matrices=walk.views(matrices, gathered) if needs[0] else None,
            of_matrices=walk.views(matrices, of_gathered),
            of_bias=of_bias,
            means=means,
        )
        of_weight = matrices.scatter(of_gathered, means.lengths) if needs[1] else None
        return None, None, None, of_values, of_weight, None if of_bias is None else matrices.scatter_bias(of_bias)


def _plain_gradients(
    ctx: Any, inputs: list[Tensor | None], gradient: Tensor, needs: tuple[bool, ...]
) -> list[Tensor | None]:
    """The gradients of the inputs in plain operations."""
    with torch.enable_grad():
        # Views of their own: what is asked for is the derivative of this layer alone.
        own = [one if one is None else one.view_as(one) for one in inputs]
        result = ctx.engine.plainly(ctx.layout, *own)
        wanted = [one for one, needed in zip(own, needs, strict=True) if needed and one is not None]
        found = iter(torch.autograd.grad(result, wanted, gradient, create_graph=True))
    return [next(found) if needed else None for needed in needs]
