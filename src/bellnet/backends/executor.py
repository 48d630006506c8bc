"""The executor of a layer: runs its plan on a layout, by kernels or torch operations, as a differentiable function.

Both backends have gradients of their own. When a call or its backward pass is traced, transformed or differentiated
itself, functional torch operations run instead.
"""

from collections.abc import Sequence
from typing import Any, Protocol

import torch
from torch import Tensor

from bellnet.backends.kernel_backend import KernelBackend
from bellnet.backends.level_matrices import Channels, Tensors
from bellnet.backends.torch_backend import Means, Primitives, TorchBackend, permute_axes, run_functional
from bellnet.plan import Permutation, Plan, RestrictedPlan, inverse
from bellnet.tensors.tracing import is_batched, is_traced, save, saved

Backend = KernelBackend | TorchBackend


class Layout(Protocol):
    """How values over tuples of nodes are stored; kernels are optional."""

    @property
    def has_axes(self) -> bool:
        """Whether values have an axis for every slot; those are then grouped by node set."""

    def key(self, values: Tensors) -> object:
        """Layouts and values with equal keys share a backend; None for these alone."""

    def restrict(self, plan: Plan) -> RestrictedPlan | None:
        """The maps that stored entries reach; None for all of them."""

    def kernels(
        self, restricted: RestrictedPlan, channels: Channels, values: Tensors, *, mean: bool
    ) -> KernelBackend | None:
        """The kernel backend for these values; None if kernels cannot run on them."""

    def primitives(self, plan: Plan, values: Tensors, *, mean: bool, in_place: bool) -> tuple[Primitives, Means]:
        """The operations, and how their sums become means if requested; by the weights only if they are in place."""


class Executor:
    """Runs a plan with given channels.

    Args:
        plan: The plan.
        in_channels: The channels of every source.
        out_channels: The channels of every target.
        mean: Whether sums are divided by the number of their terms.
    """

    def __init__(self, plan: Plan, in_channels: tuple[int, ...], out_channels: tuple[int, ...], *, mean: bool) -> None:
        self.plan, self.mean, self.channels = plan, mean, (in_channels, out_channels)
        self._all = RestrictedPlan(plan, tuple(range(plan.n_maps)), tuple(range(plan.n_biases)), plan)
        self._last: tuple[object, Backend] | None = None
        # Axes are grouped by node set while a plan runs.
        self._source_orders = _unless_identity([root.kept for root in plan.source.roots])
        self._target_orders = _unless_identity([inverse(root.kept) for root in plan.target.roots])

    def __reduce__(self) -> tuple[object, ...]:
        # Copies and pickles go without the backend, which can be made again.
        return _executor, (self.plan, *self.channels, self.mean)

    def __call__(self, layout: Layout, values: Tensors, weights: Tensors, biases: Tensors | None) -> Tensors:
        """Run the plan.

        Args:
            layout: How the values are stored.
            values: For every source a (batch, *axes, in_channels) tensor that is zero outside the nodes, or the values
                (stored entries, in_channels) of a sparse one.
            weights: For every pair of the plan (n_maps, in_channels, out_channels), in the diagram basis.
            biases: For every target (n_biases, out_channels), or None.

        Returns:
            For every target a tensor in the form of the values, zero outside the nodes.
        """
        if not layout.has_axes:
            return self._run(layout, values, weights, biases)
        if self._source_orders is not None:
            values = _permute_all(values, self._source_orders)
        results = self._run(layout, values, weights, biases)
        return results if self._target_orders is None else _permute_all(results, self._target_orders)

    def run_functional(self, layout: Layout, values: Tensors, weights: Tensors, biases: Tensors | None) -> Tensors:
        """Run the whole plan in operations that can be traced and differentiated; axes are grouped by node set."""
        primitives, means = layout.primitives(self.plan, values, mean=self.mean, in_place=False)
        means = means.over_columns(self.plan.source, self.channels[0])
        return run_functional(self.plan, primitives, values, weights=weights, biases=biases, means=means)

    def _run(self, layout: Layout, values: Tensors, weights: Tensors, biases: Tensors | None) -> Tensors:
        if is_traced():
            return self.run_functional(layout, values, weights, biases)
        backend = self._backend(layout, values, weights[0].device)
        if not backend.accepts(values, weights, biases):
            return self.run_functional(layout, values, weights, biases)
        inputs = (*weights, *(biases or ()), *values)
        if torch.is_grad_enabled() and any(one.requires_grad for one in inputs):
            counts = len(weights), 0 if biases is None else len(biases)
            results: tuple[Tensor, ...] = _Run.apply(  # type: ignore[no-untyped-call]
                backend, self, layout, counts, *inputs
            )
            return results
        return backend.forward(values, weights, biases, needs_values=False)[0]

    def _backend(self, layout: Layout, values: Tensors, device: torch.device) -> Backend:
        """The backend for these values; the last one is cached."""
        key, last = layout.key(values), self._last
        if last is not None and key is not None and last[0] == key:
            return last[1]
        restricted = layout.restrict(self.plan) or self._all
        backend: Backend | None = layout.kernels(restricted, self.channels, values, mean=self.mean)
        if backend is None:
            primitives, means = layout.primitives(restricted.plan, values, mean=self.mean, in_place=True)
            backend = TorchBackend(restricted, self.channels, primitives, means, device)
        if key is not None:
            self._last = key, backend
        return backend


def _executor(plan: Plan, in_channels: tuple[int, ...], out_channels: tuple[int, ...], mean: bool) -> Executor:
    return Executor(plan, in_channels, out_channels, mean=mean)


def _unless_identity(orders: Sequence[Permutation]) -> list[Permutation | None] | None:
    """The orders, None for the identity; or None if all are."""
    found = [None if order == tuple(range(len(order))) else order for order in orders]
    return found if any(order is not None for order in found) else None


def _permute_all(tensors: Tensors, orders: Sequence[Permutation | None]) -> list[Tensor]:
    return [one if order is None else permute_axes(one, order) for one, order in zip(tensors, orders, strict=True)]


class _Run(torch.autograd.Function):
    """A backend with its gradient, from weights, biases and values; the results are not views."""

    @staticmethod
    def forward(
        ctx: Any, backend: Backend, executor: Executor, layout: Layout, counts: tuple[int, int], *inputs: Tensor
    ) -> tuple[Tensor, ...]:
        weights, biases, values = _split(inputs, counts)
        needs_values = any(_split(ctx.needs_input_grad[4:], counts)[2])
        results, intermediate = backend.forward(values, weights, biases or None, needs_values=needs_values)
        ctx.executor, ctx.layout, ctx.backend, ctx.counts = executor, layout, backend, counts
        # Intermediate tensors are saved as well, so that autograd frees them and checkpointing sees them.
        save(ctx, *inputs, *intermediate)
        return tuple(results)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> tuple[Tensor | None, ...]:
        needs = ctx.needs_input_grad[4:]
        tensors = saved(ctx)
        inputs, intermediate = tensors[: len(needs)], tensors[len(needs) :]
        weights, biases, values = groups = _split(inputs, ctx.counts)
        is_functional = torch.is_grad_enabled() or is_traced() or any(map(is_batched, gradients))
        if is_functional or not (
            ctx.backend.accepts(values, weights, biases) and ctx.backend.accepts_gradients(gradients, intermediate)
        ):
            return None, None, None, None, *_functional_gradients(ctx, inputs, gradients, needs)
        any_needs = tuple(any(group) for group in _split(needs, ctx.counts))
        found = ctx.backend.backward(gradients, values, weights, biases, intermediate, any_needs)
        parts = zip(found, groups, strict=True)
        return None, None, None, None, *[one for part, group in parts for one in part or [None] * len(group)]


def _split(inputs: Sequence[Any], counts: tuple[int, int]) -> tuple[Sequence[Any], Sequence[Any], Sequence[Any]]:
    """Weights, biases and values, given the numbers of weights and biases."""
    first, second = counts[0], sum(counts)
    return inputs[:first], inputs[first:second], inputs[second:]


def _functional_gradients(
    ctx: Any, inputs: Tensors, gradients: Tensors, needs: tuple[bool, ...]
) -> list[Tensor | None]:
    """The gradients of the inputs in functional operations."""
    with torch.enable_grad():
        own = [one.view_as(one) for one in inputs]  # views, so that only this layer is differentiated
        weights, biases, values = _split(own, ctx.counts)
        results = ctx.executor.run_functional(ctx.layout, values, weights, biases or None)
        wanted = [one for one, needed in zip(own, needs, strict=True) if needed]
        # Without stored entries a result may depend on nothing.
        pairs = [pair for pair in zip(results, gradients, strict=True) if pair[0].requires_grad]
        if not pairs:
            return [torch.zeros_like(one) if needed else None for one, needed in zip(own, needs, strict=True)]
        reached, given = zip(*pairs, strict=True)
        found = iter(torch.autograd.grad(reached, wanted, given, create_graph=True, materialize_grads=True))
    return [next(found) if needed else None for needed in needs]
