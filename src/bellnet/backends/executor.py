"""The engine of a layer: its plan, prepared for the channels it has, as a differentiable function.

Left to itself, autograd would undo every step on its own and add up full-size gradients one by one. Whoever wants to
see the operations themselves, to trace, transform or differentiate them once more, is shown plain ones.
"""

from collections.abc import Sequence
from typing import Any, Protocol

import torch
from torch import Tensor

from bellnet.backends.kernel_backend import KernelBackend
from bellnet.backends.level_matrices import Channels
from bellnet.backends.torch_backend import (
    Means,
    Needs,
    Primitives,
    TorchBackend,
    in_order,
    inverse,
    run_plain,
)
from bellnet.backends.transforms import is_batched, is_traced, save, saved
from bellnet.plan import Permutation, Plan, RestrictedPlan

Backend = KernelBackend | TorchBackend


class Layout(Protocol):
    """How values are held. Its moves are enough to run."""

    @property
    def has_axes(self) -> bool:
        """Whether values have an axis for every slot; those are then grouped by node set."""

    def key(self, values: Sequence[Tensor]) -> object:
        """What is prepared for one layout and its values serves all with an equal key; None for these alone."""

    def present(self, plan: Plan) -> RestrictedPlan | None:
        """The maps that have something to do; None for all of them."""

    def compiled(
        self, left: RestrictedPlan, channels: Channels, values: Sequence[Tensor], *, mean: bool
    ) -> Backend | None:
        """What runs a plan with so many channels on these values by kernels; None if there are none for them."""

    def moves(self, plan: Plan, values: Sequence[Tensor], *, mean: bool, in_place: bool) -> tuple[Primitives, Means]:
        """The moves, perhaps in place, and how the sums of these values become means if they are wanted.

        The weights may see to means only if moves are in place.
        """


class Executor:
    """What runs a plan with so many channels.

    Args:
        plan: The plan.
        in_channels: The channels of every source.
        out_channels: The channels of every target.
        mean: Whether to divide every sum by the number of its terms.
    """

    def __init__(self, plan: Plan, in_channels: tuple[int, ...], out_channels: tuple[int, ...], *, mean: bool) -> None:
        self.plan, self.mean, self.channels = plan, mean, (in_channels, out_channels)
        self._all = RestrictedPlan(plan, tuple(range(plan.n_maps)), tuple(range(plan.n_biases)), plan)
        self._last: tuple[object, Backend] | None = None
        # Axes are grouped by node set on the way.
        self._source_orders = _unless_same([root.kept for root in plan.source.roots])
        self._target_orders = _unless_same([inverse(root.kept) for root in plan.target.roots])

    def __reduce__(self) -> tuple[object, ...]:
        # What is prepared can be prepared again; a copy or a pickle goes without it.
        return _engine, (self.plan, *self.channels, self.mean)

    def __call__(
        self, layout: Layout, values: Sequence[Tensor], weights: Sequence[Tensor], biases: Sequence[Tensor] | None
    ) -> Sequence[Tensor]:
        """Run the plan.

        Args:
            layout: How the values are held.
            values: For every source a (batch, *axes, in_channels) tensor that is zero outside the nodes, or the values
                (stored entries, in_channels) of a sparse one.
            weights: For every pair of the plan (n_maps, in_channels, out_channels), for diagrams.
            biases: For every target (n_biases, out_channels), or None.

        Returns:
            For every target a tensor in the form of the values, zero outside the nodes.
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
        moves, means = layout.moves(self.plan, values, mean=self.mean, in_place=False)
        means = means.over_columns(self.plan.source, self.channels[0])
        return run_plain(self.plan, moves, values, weights=weights, biases=biases, means=means)

    def _run(
        self, layout: Layout, values: Sequence[Tensor], weights: Sequence[Tensor], biases: Sequence[Tensor] | None
    ) -> Sequence[Tensor]:
        if is_traced():
            return self.plainly(layout, values, weights, biases)
        walk = self._prepared(layout, values, weights[0].device)
        if not walk.takes(values, weights, biases):
            return self.plainly(layout, values, weights, biases)
        inputs = (*weights, *(biases or ()), *values)
        if torch.is_grad_enabled() and any(one.requires_grad for one in inputs):
            counts = len(weights), 0 if biases is None else len(biases)
            results: tuple[Tensor, ...] = _Run.apply(  # type: ignore[no-untyped-call]
                walk, self, layout, counts, *inputs
            )
            return results
        return walk.forward(values, weights, biases, needed=False)[0]

    def _prepared(self, layout: Layout, values: Sequence[Tensor], device: torch.device) -> Backend:
        """What runs, made ready. The last is kept: it often comes again."""
        key, last = layout.key(values), self._last
        if last is not None and key is not None and last[0] == key:
            return last[1]
        left = layout.present(self.plan) or self._all
        walk: Backend | None = layout.compiled(left, self.channels, values, mean=self.mean)
        if walk is None:
            moves, means = layout.moves(left.plan, values, mean=self.mean, in_place=True)
            walk = TorchBackend(left, self.channels, moves, means, device)
        if key is not None:
            self._last = key, walk
        return walk


def _engine(plan: Plan, in_channels: tuple[int, ...], out_channels: tuple[int, ...], mean: bool) -> Executor:
    return Executor(plan, in_channels, out_channels, mean=mean)


def _unless_same(orders: Sequence[Permutation]) -> list[Permutation | None] | None:
    """The orders, None for one that changes nothing; or None if none does."""
    found = [None if order == tuple(range(len(order))) else order for order in orders]
    return found if any(order is not None for order in found) else None


def _in_orders(tensors: Sequence[Tensor], orders: Sequence[Permutation | None]) -> list[Tensor]:
    return [one if order is None else in_order(one, order) for one, order in zip(tensors, orders, strict=True)]


class _Run(torch.autograd.Function):
    """A walk with its gradient, from weights, biases and values; what it returns is never a view."""

    @staticmethod
    def forward(
        ctx: Any, walk: Backend, engine: Executor, layout: Layout, counts: tuple[int, int], *inputs: Tensor
    ) -> tuple[Tensor, ...]:
        weights, biases, values = _three(inputs, counts)
        *_, to_values = _three(ctx.needs_input_grad[4:], counts)
        results, kept = walk.forward(values, weights, biases or None, needed=any(to_values))
        ctx.engine, ctx.layout, ctx.walk, ctx.counts = engine, layout, walk, counts
        # All that is kept goes through autograd's hands, which lets go of it in time and knows of checkpointing.
        save(ctx, *inputs, *kept)
        return tuple(results)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> tuple[Tensor | None, ...]:
        needs = ctx.needs_input_grad[4:]
        tensors = saved(ctx)
        inputs, kept = tensors[: len(needs)], tensors[len(needs) :]
        # Somebody may look at this pass, too, or make gradients of a kind that walks do not know.
        weights, biases, values = _three(inputs, ctx.counts)
        is_watched = torch.is_grad_enabled() or is_traced() or any(map(is_batched, gradients))
        if is_watched or not (ctx.walk.takes(values, weights, biases) and ctx.walk.takes_back(gradients, kept)):
            return None, None, None, None, *_plain_gradients(ctx, inputs, gradients, needs)
        found = ctx.walk.backward(gradients, values, weights, biases, kept, Needs(*map(any, _three(needs, ctx.counts))))
        return (
            *(None, None, None, None),
            *(found.weights or [None] * len(weights)),
            *(found.biases or [None] * len(biases)),
            *(found.values or [None] * len(values)),
        )


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
        # Where nothing is listed, a result may depend on nothing.
        pairs = [pair for pair in zip(results, gradients, strict=True) if pair[0].requires_grad]
        if not pairs:
            return [torch.zeros_like(one) if needed else None for one, needed in zip(own, needs, strict=True)]
        reached, pulled = zip(*pairs, strict=True)
        found = iter(torch.autograd.grad(reached, wanted, pulled, create_graph=True, materialize_grads=True))
    return [next(found) if needed else None for needed in needs]
