"""The layout of dense tensors, padded or not, whose axes are grouped by node set."""

from collections.abc import Callable, Hashable
from functools import partial
from math import prod
from typing import Any

import torch
from torch import Tensor

from bellnet.backends.kernel_backend import KernelBackend, can_run
from bellnet.backends.kernel_program import KernelProgram, kernel_program
from bellnet.backends.level_matrices import Channels, Tensors, constant
from bellnet.backends.torch_backend import Means, permute_axes
from bellnet.kernels.calling import needs_torch_operations
from bellnet.plan import ContractionStack, Plan, RestrictedPlan, StackStep, inverse
from bellnet.tensors.tracing import Cached, Made, is_batched, is_traced, transforms_active

BITS = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
"""The integers of as many bytes: -1 has all bits, 0 none."""


class Nodes(Cached):
    """The length of the axes of every node set and, for padded batches, how many of them are nodes.

    Args:
        lengths: For every node set, the length of its axes.
        counts: (n_sets, batch) integers, the number of nodes of every set in every graph; None without padding.
    """

    def __init__(self, lengths: tuple[int, ...], counts: Tensor | None = None) -> None:
        self.lengths, self.counts = lengths, counts

    def cached(self, key: Hashable, make: Callable[[], Made]) -> Made:
        """The result of this key, computed again while a transform is active."""
        return make() if transforms_active() else super().cached(key, make)

    def inside(self, sets: tuple[int, ...]) -> Tensor | None:
        """Where a (batch, axes over these sets, 1) tensor has a node in every slot; None if it has them everywhere."""
        if self.counts is None or not sets:
            return None
        return self.cached(sets, partial(self._find_inside, sets, self.counts))

    def _find_inside(self, sets: tuple[int, ...], counts: Tensor) -> Tensor:
        found: Tensor | None = None
        for axis, node_set in enumerate(sets):
            shape = [1] * len(sets)
            shape[axis] = self.lengths[node_set]
            positions = torch.arange(self.lengths[node_set], device=counts.device)
            there = (positions < counts[node_set].unsqueeze(-1)).reshape(counts.shape[1], *shape, 1)
            found = there if found is None else found & there
        assert found is not None
        return found

    def bits(self, sets: tuple[int, ...], dtype: torch.dtype) -> Tensor | None:
        """The same as integers with all bits, or none, of the size of a dtype."""
        inside = self.inside(sets)
        if inside is None:
            return None
        kind = BITS[dtype.itemsize]
        return self.cached((sets, kind), lambda: inside.to(kind).neg_())

    def clean(self, tensor: Tensor, sets: tuple[int, ...]) -> Tensor:
        """The tensor with zeros where it has no node."""
        if is_traced() or not tensor.is_floating_point():
            inside = self.inside(sets)
            return tensor if inside is None else tensor.masked_fill(~inside, 0)
        bits = self.bits(sets, tensor.dtype)
        if bits is None:
            return tensor
        cleaned: Tensor = _Cleaned.apply(tensor, bits)  # type: ignore[no-untyped-call]
        return cleaned

    def clean_(self, tensor: Tensor, sets: tuple[int, ...]) -> None:
        """The same in place, without gradient."""
        bits = self.bits(sets, tensor.dtype)
        if bits is not None:
            tensor.view(bits.dtype).bitwise_and_(bits)

    def means(self, plan: Plan, like: Tensor) -> Means:
        """How the sums of a plan become means in its contractions."""
        return Means(None, tuple([self._factors(stack, like) for stack in plan.source.stacks]))

    def _factors(self, stack: ContractionStack, like: Tensor) -> Tensor | None:
        """One over the number of terms of the sums of a stack, (batch or 1, ones, columns, 1); None without sums."""
        if not any(stack.dropped_sets):
            return None
        dtype = torch.promote_types(like.dtype, torch.float32)
        make = partial(self._find_factors, stack, dtype, like.device)
        return self.cached((stack.dropped_sets, len(stack.axis_sets), dtype), make)

    def _find_factors(self, stack: ContractionStack, dtype: torch.dtype, device: torch.device) -> Tensor:
        dropped, n_sets = stack.dropped_sets, len(self.lengths)
        if self.counts is None:
            n_terms = [prod(max(self.lengths[one], 1) for one in node_sets) for node_sets in dropped]
            factors = torch.tensor([1 / number for number in n_terms], dtype=dtype, device=device).unsqueeze(0)
        else:

            def make() -> Tensor:
                powers = [[node_sets.count(one) for node_sets in dropped] for one in range(n_sets)]
                return torch.tensor(powers, dtype=dtype, device=device)

            powers = constant(("dropped", dropped, n_sets, dtype), self.counts, make)
            inverses = self.counts.clamp(min=1).to(dtype).reciprocal()
            factors = inverses[0].unsqueeze(-1) ** powers[0]
            for one, power in zip(inverses[1:], powers[1:], strict=True):
                factors = factors * one.unsqueeze(-1) ** power
        return factors.reshape(len(factors), *[1] * len(stack.axis_sets), len(dropped), 1)


class _Cleaned(torch.autograd.Function):
    """Zeros by bits, NaN and infinity included: on a CPU `masked_fill` is slower, since it does not use vectors."""

    @staticmethod
    def forward(ctx: Any, tensor: Tensor, bits: Tensor) -> Tensor:
        ctx.bits = bits
        return torch.bitwise_and(tensor.resolve_neg().view(bits.dtype), bits).view(tensor.dtype)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> tuple[Tensor, None]:
        if is_batched(gradients[0]):
            return gradients[0].masked_fill(ctx.bits == 0, 0), None
        return _Cleaned.apply(gradients[0], ctx.bits), None  # type: ignore[no-untyped-call]


class DensePrimitives:
    """Sums over axes and diagonals, and their transposes, for tensors whose axes are grouped by node set.

    Args:
        plan: The plan.
        nodes: How many nodes there are.
        takes_means: Whether contractions are means instead of sums: while traced, the number of nodes may be unknown.
        in_place: Whether to write in place.
    """

    def __init__(self, plan: Plan, nodes: Nodes, *, takes_means: bool = False, in_place: bool = False) -> None:
        self.plan, self.nodes, self.trees = plan, nodes, (plan.source, plan.target)
        self.takes_means, self.in_place = takes_means, in_place

    def contract(self, side: int, number: int, step: StackStep, parent: Tensor) -> Tensor:
        """The columns of a step of a stack, from those of its parent."""
        if step.kind == "copy":
            return parent
        if step.kind == "diagonal":
            return _diagonal(parent, step)
        axis, dtype = step.axes[0] + 1, torch.promote_types(parent.dtype, torch.float32)
        if self.takes_means and self.nodes.lengths[step.node_set] > 0:
            return parent.mean(axis, dtype=dtype)
        return parent.sum(axis, dtype=dtype)

    def broadcast(self, side: int, number: int, step: StackStep, child: Tensor, onto: Tensor | None) -> Tensor:
        """The transpose for one column, added to `onto` unless it is None."""
        if onto is not None and self.in_place:
            into = _diagonal(onto, step) if step.kind == "diagonal" else onto
            into.add_(child.unsqueeze(step.axes[0] + 1) if step.kind == "sum" else child)
            return onto
        if step.kind == "diagonal":
            first, second = (axis + 1 for axis in step.axes)
            term = torch.diag_embed(child.movedim(first, -1), 0, first, second)
        elif step.kind == "sum":
            sets = self.trees[side].stacks[step.parent].axis_sets
            lengths = [self.nodes.lengths[node_set] for node_set in sets]
            term = child.unsqueeze(step.axes[0] + 1).expand(child.shape[0], *lengths, child.shape[-1])
        else:
            term = child
        if onto is not None:
            return onto + term
        is_new = step.kind == "diagonal" or not self.in_place
        return term if is_new else term.clone(memory_format=torch.contiguous_format)

    def permute(self, level: int, number: int, rows: Tensor, *, back: bool) -> Tensor:
        """The contractions of a level with permuted axes."""
        permutation = self.plan.levels[level].permutations[number]
        return permute_axes(rows, inverse(permutation) if back else permutation) if number else rows

    def zeros(self, side: int, root: int, like: Tensor, width: int) -> Tensor:
        """A source or target of zeros."""
        axes = self.trees[side].stacks[root].axis_sets
        return like.new_zeros(len(like), *[self.nodes.lengths[one] for one in axes], width)

    def clean(self, side: int, root: int, tensor: Tensor) -> Tensor:
        """A source or target with zeros where there is no node."""
        return self.nodes.clean(tensor, self.trees[side].stacks[root].axis_sets)


def _diagonal(tensor: Tensor, step: StackStep) -> Tensor:
    first, second = (axis + 1 for axis in step.axes)
    return tensor.diagonal(0, first, second).movedim(-1, first)


class DenseLayout:
    """The layout of tensors that have a value for every tuple of nodes."""

    has_axes = True

    def __init__(self, nodes: Nodes) -> None:
        self.nodes = nodes

    def key(self, values: Tensors) -> object:
        """A backend serves equal lengths and kinds of values; not those of other padded graphs."""
        nodes, first = self.nodes, values[0]
        if nodes.counts is not None:
            return None
        return nodes.lengths, first.shape, first.dtype, first.device, needs_torch_operations(values)

    def restrict(self, plan: Plan) -> None:
        """All maps are executed."""

    def kernels(
        self, restricted: RestrictedPlan, channels: Channels, values: Tensors, *, mean: bool
    ) -> KernelBackend | None:
        """The kernel backend for these values; None if kernels cannot run on them."""
        plan, nodes, like = restricted.plan, self.nodes, values[0]
        if not can_run(plan, values):
            return None
        program = kernel_program(restricted, channels, nodes.lengths)
        sources, targets = (
            [
                (len(like), *[nodes.lengths[node_set] for node_set in root.axis_sets], width)
                for root, width in zip(tree.roots, widths, strict=True)
            ]
            for tree, widths in zip((plan.source, plan.target), channels, strict=True)
        )
        # The weights are divided if all graphs have one size, else the contractions.
        counts = None if nodes.counts is None else nodes.counts.to(torch.int64).contiguous()
        factors = _factors(program, plan, nodes, like) if mean and counts is not None else None
        return KernelBackend(
            program,
            restricted,
            channels,
            like,
            (sources, targets),
            mean=mean and counts is None,
            n_graphs=len(like),
            counts=counts,
            factors=factors,
        )

    def primitives(self, plan: Plan, values: Tensors, *, mean: bool, in_place: bool) -> tuple[DensePrimitives, Means]:
        """The operations, and how their sums become means if requested."""
        like, are_equal = values[0], self.nodes.counts is None
        takes_means = mean and are_equal and not in_place
        primitives = DensePrimitives(plan, self.nodes, takes_means=takes_means, in_place=in_place)
        if not mean or takes_means:
            return primitives, Means()
        if are_equal and like.dtype in (torch.float32, torch.float64):
            return primitives, Means(self.nodes.lengths)
        return primitives, self.nodes.means(plan, like)


def _factors(program: KernelProgram, plan: Plan, nodes: Nodes, like: Tensor) -> Tensor:
    """(graphs, values): the factors of means, one for every value of a row of the stacks that sum."""

    def make() -> Tensor:
        by_stack, parts = nodes.means(plan, like).factors or (), [like.new_zeros(len(like), 0)]
        for number, widths in program.summed_columns:
            columns = by_stack[number].reshape(len(like), len(widths))  # type: ignore[union-attr]
            parts.append(columns.repeat_interleave(torch.tensor(widths, device="cpu"), 1).to(like.dtype))
        return torch.cat(parts, 1)

    return nodes.cached((program, like.dtype), make)
