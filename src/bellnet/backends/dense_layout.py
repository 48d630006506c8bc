"""The layout of dense tensors, padded or not; their axes are grouped by node set."""

from collections.abc import Sequence
from math import inf, prod
from typing import Any

import torch
from torch import Tensor

from bellnet.backends.kernel_backend import KernelBackend, can_compile
from bellnet.backends.kernel_program import Program, program
from bellnet.backends.level_matrices import Channels, constant
from bellnet.backends.torch_backend import NO_MEANS, Means, in_order, inverse
from bellnet.backends.transforms import is_batched, is_traced
from bellnet.kernels.calling import needs_torch_operations
from bellnet.plan import ContractionStack, Plan, RestrictedPlan, StackStep
from bellnet.tensors.tracing import no_transforms, transforms_active


class Nodes:
    """The length of the axes of every node set and, for padded batches, how many of them are nodes.

    Args:
        lengths: For every node set, the length of its axes.
        counts: (n_sets, batch) integers, the number of nodes of every set in every graph; None without padding.

    Attributes:
        kept: What walks find out about them.
    """

    def __init__(self, lengths: tuple[int, ...], counts: Tensor | None = None) -> None:
        self.lengths = lengths
        self.counts = counts
        self._inside: dict[tuple[tuple[int, ...], torch.dtype], Tensor] = {}
        self._kept_factors: dict[tuple[object, ...], Tensor] = {}
        self.kept: dict[Any, Any] = {}

    def inside(self, sets: tuple[int, ...]) -> Tensor | None:
        """Where a (batch, axes over these sets, 1) tensor has a node in every slot; None if it has them everywhere."""
        return self._found(sets, torch.bool)

    def bits(self, sets: tuple[int, ...], dtype: torch.dtype) -> Tensor | None:
        """The same as the bits that numbers of a type keep."""
        return self._found(sets, BITS[dtype.itemsize])

    def below_all(self, sets: tuple[int, ...], dtype: torch.dtype) -> Tensor | None:
        """What is added to zeros outside so that no maximum takes them: minus infinity there, and zero inside."""
        return self._found(sets, dtype)

    def _found(self, sets: tuple[int, ...], kind: torch.dtype) -> Tensor | None:
        if self.counts is None or not sets:
            return None
        if transforms_active():
            return self._find(sets, kind, self.counts)
        found = self._inside.get((sets, kind))
        if found is None:
            with no_transforms():
                found = self._inside[sets, kind] = self._find(sets, kind, self.counts)
        return found

    def _find(self, sets: tuple[int, ...], kind: torch.dtype, counts: Tensor) -> Tensor:
        by_set = {}
        for node_set in set(sets):
            positions = torch.arange(self.lengths[node_set], device=counts.device)
            there = positions < counts[node_set].unsqueeze(-1)
            if kind.is_floating_point:
                by_set[node_set] = torch.zeros_like(there, dtype=kind).masked_fill(~there, -inf)
            else:
                by_set[node_set] = there if kind == torch.bool else there.to(kind).neg_()
        found: Tensor | None = None
        for axis, node_set in enumerate(sets):
            around = [1] * len(sets)
            around[axis] = self.lengths[node_set]
            there = by_set[node_set].reshape(counts.shape[1], *around, 1)
            found = there if found is None else found + there if kind.is_floating_point else found & there
        assert found is not None
        return found

    def clean(self, tensor: Tensor, sets: tuple[int, ...]) -> Tensor:
        """The tensor with zeros where it has no node."""
        if is_traced() or not tensor.is_floating_point():
            inside = self.inside(sets)
            return tensor if inside is None else tensor.masked_fill(~inside, 0)
        bits = self.bits(sets, tensor.dtype)
        return tensor if bits is None else cleaned(tensor, bits)

    def factors(self, plan: Plan, like: Tensor) -> Means:
        """What turns the sums of a plan into means."""
        return Means(None, tuple([self._factors(stack, like) for stack in plan.source.stacks]))

    def _factors(self, stack: ContractionStack, like: Tensor) -> Tensor | None:
        """What turns the sums of a stack into means, (batch or 1, ones, columns, 1); None if nothing is summed."""
        summed = stack.dropped_sets
        if not any(summed):
            return None
        dtype = torch.promote_types(like.dtype, torch.float32)
        if transforms_active():
            return self._find_factors(stack, dtype, like.device)
        key = summed, len(stack.axis_sets), dtype
        found = self._kept_factors.get(key)
        if found is None:
            with no_transforms():
                found = self._kept_factors[key] = self._find_factors(stack, dtype, like.device)
        return found

    def _find_factors(self, stack: ContractionStack, dtype: torch.dtype, device: torch.device) -> Tensor:
        if self.counts is None:
            numbers = [prod(max(self.lengths[one], 1) for one in summed) for summed in stack.dropped_sets]
            factors = torch.tensor([1 / number for number in numbers], dtype=dtype, device=device).unsqueeze(0)
        else:
            dropped, n_sets = stack.dropped_sets, len(self.lengths)
            several = constant(
                ("dropped", dropped, n_sets, dtype),
                self.counts,
                lambda: torch.tensor(
                    [[one.count(a) for one in dropped] for a in range(n_sets)], dtype=dtype, device=device
                ),
            )
            inverses = self.counts.clamp(min=1).to(dtype).reciprocal()
            factors = inverses[0].unsqueeze(-1) ** several[0]
            for inverse, times in zip(inverses[1:], several[1:], strict=True):
                factors = factors * inverse.unsqueeze(-1) ** times
        return factors.reshape(len(factors), *[1] * len(stack.axis_sets), len(stack.contractions), 1)


BITS = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
"""By the bytes of a number, as what its bits are taken: -1 has all of them, 0 none."""


def zero_(tensor: Tensor, bits: Tensor) -> None:
    """Make zeros in place."""
    tensor.view(bits.dtype).bitwise_and_(bits)


def cleaned(tensor: Tensor, bits: Tensor) -> Tensor:
    """A copy with zeros."""
    result: Tensor = _Cleaned.apply(tensor, bits)  # type: ignore[no-untyped-call]
    return result


class _Cleaned(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, tensor: Tensor, bits: Tensor) -> Tensor:
        ctx.bits = bits
        return torch.bitwise_and(tensor.resolve_neg().view(bits.dtype), bits).view(tensor.dtype)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> tuple[Tensor, None]:
        if is_batched(gradients[0]):
            return gradients[0].masked_fill(ctx.bits == 0, 0), None
        return cleaned(gradients[0], ctx.bits), None


class DensePrimitives:
    """For tensors over so many nodes whose axes are grouped by node set.

    Args:
        plan: The plan.
        nodes: How many nodes there are.
        takes_means: Whether contractions are means already, not sums: a tracer may not know the number of nodes, but
            torch can take means over it.
        in_place: Whether to write in place.
    """

    def __init__(self, plan: Plan, nodes: Nodes, *, takes_means: bool = False, in_place: bool = False) -> None:
        self.plan, self.nodes = plan, nodes
        self.trees = plan.source, plan.target
        self.takes_means, self.in_place = takes_means, in_place

    def contraction(self, side: int, number: int, branch: StackStep, parent: Tensor) -> Tensor:
        """The contractions of a branch of a stack, from those of its parent."""
        if branch.kind == "copy":
            return parent
        if branch.kind == "diagonal":
            first, second = (axis + 1 for axis in branch.axes)
            return parent.diagonal(0, first, second).movedim(-1, first)
        axis, wide = branch.axes[0] + 1, torch.promote_types(parent.dtype, torch.float32)
        if self.takes_means and self.nodes.lengths[branch.node_set] > 0:
            return parent.mean(axis, dtype=wide)
        return parent.sum(axis, dtype=wide)

    def spread(self, side: int, number: int, branch: StackStep, child: Tensor, onto: Tensor | None) -> Tensor:
        """What the parent of a contraction gets from it, and what that has already."""
        if onto is not None and self.in_place:
            if branch.kind == "copy":
                return onto.add_(child)
            if branch.kind == "sum":
                return onto.add_(child.unsqueeze(branch.axes[0] + 1))
            first, second = (axis + 1 for axis in branch.axes)
            onto.diagonal(0, first, second).movedim(-1, first).add_(child)
            return onto
        term = self._spread(side, branch, child)
        if onto is not None:
            return onto + term
        is_new = branch.kind == "diagonal" or not self.in_place
        return term if is_new else term.clone(memory_format=torch.contiguous_format)

    def _spread(self, side: int, branch: StackStep, child: Tensor) -> Tensor:
        if branch.kind == "copy":
            return child
        if branch.kind == "sum":
            sets = self.trees[side].stacks[branch.parent].axis_sets
            lengths = [self.nodes.lengths[node_set] for node_set in sets]
            return child.unsqueeze(branch.axes[0] + 1).expand(child.shape[0], *lengths, child.shape[-1])
        first, second = (axis + 1 for axis in branch.axes)
        return torch.diag_embed(child.movedim(first, -1), 0, first, second)

    def permuted(self, level: int, number: int, rows: Tensor, *, back: bool) -> Tensor:
        """What was read on a level, for one of its permutations."""
        permutation = self.plan.levels[level].permutations[number]
        return in_order(rows, inverse(permutation) if back else permutation) if number else rows

    def zeros(self, side: int, root: int, like: Tensor, width: int) -> Tensor:
        """A whole tensor without values."""
        axes = self.trees[side].stacks[root].axis_sets
        return like.new_zeros(len(like), *[self.nodes.lengths[one] for one in axes], width)

    def clean(self, side: int, root: int, whole: Tensor) -> Tensor:
        """A whole tensor with zeros where there is no node."""
        return self.nodes.clean(whole, self.trees[side].stacks[root].axis_sets)


class DenseLayout:
    """The layout of tensors that hold a value for every tuple of nodes."""

    has_axes = True

    def __init__(self, nodes: Nodes) -> None:
        self.nodes = nodes

    def key(self, values: Sequence[Tensor]) -> object:
        """What is prepared depends on lengths and values of a kind; on the sizes of padded graphs as well."""
        nodes, first = self.nodes, values[0]
        if nodes.counts is not None:
            return None
        return nodes.lengths, first.shape, first.dtype, first.device, needs_torch_operations(values)

    def present(self, plan: Plan) -> None:
        """All maps have something to do."""

    def compiled(
        self, left: RestrictedPlan, channels: Channels, values: Sequence[Tensor], *, mean: bool
    ) -> KernelBackend | None:
        """What runs a plan with so many channels on these values by kernels; None if there are none for them."""
        if not can_compile(left.plan, values):
            return None
        nodes, like, found = self.nodes, values[0], program(left, channels, self.nodes.lengths)
        sources, targets = (
            [
                (len(like), *[nodes.lengths[node_set] for node_set in root.axis_sets], width)
                for root, width in zip(tree.roots, widths, strict=True)
            ]
            for tree, widths in zip((left.plan.source, left.plan.target), channels, strict=True)
        )
        # Where all graphs are of one size the weights are divided, elsewhere what was read.
        counts = None if nodes.counts is None else nodes.counts.to(torch.int64).contiguous()
        factors = _factors(found, left.plan, nodes, like) if mean and counts is not None else None
        return KernelBackend(
            found,
            left,
            channels,
            like,
            sources,
            targets,
            mean=mean and counts is None,
            n_graphs=len(like),
            counts=counts,
            factors=factors,
        )

    def moves(
        self, plan: Plan, values: Sequence[Tensor], *, mean: bool, in_place: bool
    ) -> tuple[DensePrimitives, Means]:
        """The moves, perhaps in place, and how the sums of these values become means if they are wanted."""
        like, are_equal = values[0], self.nodes.counts is None
        takes_means = mean and are_equal and not in_place
        moves = DensePrimitives(plan, self.nodes, takes_means=takes_means, in_place=in_place)
        if not mean or takes_means:
            return moves, NO_MEANS
        if are_equal and like.dtype in (torch.float32, torch.float64):
            return moves, Means(self.nodes.lengths)
        return moves, self.nodes.factors(plan, like)


def _factors(kernel_program: Program, plan: Plan, nodes: Nodes, like: Tensor) -> Tensor:
    """(graphs, numbers): what every number of a row of the stacks that are means is multiplied by."""
    key = kernel_program, like.dtype
    if key not in nodes.kept:
        with no_transforms():
            by_bundle, parts = nodes.factors(plan, like).factors or (), [like.new_zeros(len(like), 0)]
            for number, widths in kernel_program.factored:
                found = by_bundle[number]
                assert found is not None
                columns = found.reshape(len(like), len(widths))
                parts.append(columns.repeat_interleave(torch.tensor(widths, device="cpu"), 1).to(like.dtype))
            nodes.kept[key] = torch.cat(parts, 1)
    kept: Tensor = nodes.kept[key]
    return kept
