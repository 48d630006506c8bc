"""Kernel programs: a plan for given channels and sizes as the structs that kernels run (`kernels/structs.h`)."""

import ctypes
from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate
from math import prod
from typing import Any

import torch
from torch import Tensor

from bellnet.backends.level_matrices import Channels
from bellnet.backends.projections import Incidence, Projections
from bellnet.backends.torch_backend import Means
from bellnet.kernels import structs
from bellnet.kernels.calling import pointer, table_pointer
from bellnet.plan import ContractionTree, Level, RestrictedPlan, StackStep
from bellnet.tensors.tracing import no_transforms

KINDS = {kind: structs.CONSTANTS[kind.upper()] for kind in ("sum", "diagonal", "copy")}


class KernelProgram:
    """The structs of a plan.

    Args:
        restricted: The plan, and which weights belong to it.
        channels: Those of every source and of every target.
        lengths: Of the axes of every node set.

    Attributes:
        head: The struct `Program`, which points to all others.
        sides: For source and target the arrays of stacks and of steps; the steps from one parent are neighbours.
        permutations: For every level those of the backward pass, then those of the forward pass.
        n_saved: The number of values that are saved for backward, for each graph.
        n_multiplications: For each graph.
        summed_columns: For every stack of the source that sums its number and the widths of its columns.
    """

    def __init__(self, restricted: RestrictedPlan, channels: Channels, lengths: tuple[int, ...]) -> None:
        plan = restricted.plan
        trees = plan.source, plan.target
        self.summed_columns = [
            (number, [channels[0][tensor] for tensor in stack.tensors])
            for number, stack in enumerate(plan.source.stacks)
            if any(stack.dropped_sets)
        ]
        *starts, n_factors = accumulate((sum(widths) for _, widths in self.summed_columns), initial=0)
        factor_offsets = dict(zip((number for number, _ in self.summed_columns), starts, strict=True))
        sides = [
            _side(tree, channels[side], lengths, {} if side else factor_offsets) for side, tree in enumerate(trees)
        ]
        self.sides = tuple((_array(structs.Stack, stacks), _array(structs.Step, steps)) for stacks, steps, _ in sides)
        self.n_saved = sides[0][2]
        levels, permutations, blocks, offset, self.n_multiplications = list[Any](), list[Any](), list[Any](), 0, 0
        for number, level in enumerate(plan.levels):
            pair = [tree.levels[number] for tree in trees]
            source, target = (tree.stacks[one] for tree, one in zip(trees, pair, strict=True))
            n_permutations, size = len(level.permutations), source.width(channels[0]) * target.width(channels[1])
            levels.append(structs.Level(tuple(pair), n_permutations, len(permutations), offset))
            for plane in level.index:
                blocks += _blocks(restricted, level, plane, channels, lengths, offset)
                offset += size
            permutations += _permutations(level, source.axis_sets, lengths)
            self.n_multiplications += prod(lengths[one] for one in source.axis_sets) * n_permutations * size
        self.permutations = _array(structs.Permutation, permutations)
        biases = _array(structs.Bias, _biases(restricted, channels[1]))
        self._others = _array(structs.Level, levels), _array(structs.Block, blocks), biases
        self.head = structs.Program(
            n_levels=len(levels),
            n_sets=len(lengths),
            n_factors=n_factors,
            n_matrix_values=offset,
            n_blocks=len(blocks),
            has_gaps=plan.has_gaps,
            n_biases=len(biases),
        )
        for side, tree, (_, _, size) in zip(self.head.side, trees, sides, strict=True):
            side.n_roots, side.n_stacks, side.size = len(tree.roots), len(tree.stacks), size
        self._point()

    def _point(self) -> None:
        """Write the addresses of all arrays into the head."""
        for side, (stacks, steps) in zip(self.head.side, self.sides, strict=True):
            side.stacks, side.steps = ctypes.addressof(stacks), ctypes.addressof(steps)
        self.head.permutations = ctypes.addressof(self.permutations)
        self.head.levels, self.head.blocks, self.head.biases = map(ctypes.addressof, self._others)


kernel_program = lru_cache(maxsize=256)(KernelProgram)
"""The kernel program of a plan, cached."""


class SparseKernelProgram(KernelProgram):
    """The structs of a plan between supports: with the rows of stored entries, and the tables that connect them.

    Args:
        restricted: The plan, and which weights belong to it.
        channels: Those of every source and of every target.
        sides: The projected supports of source and target.
        lookups: For every level the permuted rows, backward and then forward; None for rows that are the same.
        means: How sums become means.
        dtype: Of the values.
    """

    def __init__(
        self,
        restricted: RestrictedPlan,
        channels: Channels,
        sides: tuple[Projections, Projections],
        lookups: Sequence[Incidence | None],
        means: Means,
        dtype: torch.dtype,
    ) -> None:
        plan = restricted.plan
        lengths = means.lengths or (1,) * len(restricted.whole.levels[0].rank)
        vars(self).update(vars(kernel_program(restricted, channels, lengths)))
        self.sides = tuple((_copied(stacks), _copied(steps)) for stacks, steps in self.sides)
        self.permutations, self.head = _copied(self.permutations), _copied(self.head)
        self._point()
        self._owners: list[object] = []  # of the memory that the structs point to
        self.head.is_sparse = 1
        for number, side in enumerate(sides):
            self._set_rows(number, side)
            self._set_steps(number, side)
        self.n_saved = self.head.side[0].size
        for incidence, permutation in zip(lookups, self.permutations, strict=True):
            if incidence is not None:
                permutation.rows = self._table(incidence.table, incidence.n_rows, incidence.n_segments)
        source, target = (stacks for stacks, _ in self.sides)
        if means.factors is not None:
            several = means if len(channels[0]) == 1 else means.over_columns(plan.source, channels[0])
            for stack, factors in zip(source, several.factors or (), strict=False):
                if factors is not None:
                    self._set_factors(stack, factors, dtype)
        self.n_multiplications = sum(
            target[level.stack[1]].n_rows
            * (level.n_permutations * source[level.stack[0]].width * target[level.stack[1]].width)
            for level in self._others[0]
        )

    def _set_rows(self, number: int, side: Projections) -> None:
        offset = 0
        for stack, projection in zip(self.sides[number][0], side.stacks, strict=True):
            stack.n_rows = projection.n_rows
            if stack.offset >= 0:
                stack.offset = offset
                offset += stack.n_rows * stack.width
        self.head.side[number].size = offset

    def _set_steps(self, number: int, side: Projections) -> None:
        steps = [(step.parent, child, step) for child, stack in enumerate(side.tree.stacks) for step in stack.steps]
        ordered = sorted(steps, key=lambda one: one[0])
        for entry, (_, child, step) in zip(self.sides[number][1], ordered, strict=True):
            incidence = side.incidences[child, step.start]
            if incidence.is_identity:
                continue
            order, bounds = incidence.grouped
            n_ordered = incidence.n_rows if order is None else len(order)
            entry.segment = self._table(incidence.table, incidence.n_rows, incidence.n_segments)
            entry.order = None if order is None else self._table(order, n_ordered, incidence.n_rows)
            entry.bounds = self._table(bounds, incidence.n_segments + 1, n_ordered + 1)

    def _set_factors(self, stack: Any, factors: Tensor, dtype: torch.dtype) -> None:
        """The factors of the rows of a stack, (rows, columns, 1), or (rows, width) for columns that differ."""
        with no_transforms():
            table = factors.flatten(1).to(dtype).contiguous()
        stack.row_factors = pointer("the factors of means", table, (stack.n_rows, table.shape[1]), dtype, self._owners)
        stack.n_row_factors, stack.factor_width = table.shape[1], stack.width // table.shape[1]

    def _table(self, table: Tensor, length: int, limit: int) -> int | None:
        return table_pointer("a table of a support", table, length, limit, self._owners)


def _array(kind: Any, several: Sequence[Any]) -> Any:
    """Structs one after the other in memory."""
    return (kind * len(several))(*several)


def _copied(struct: Any) -> Any:
    return type(struct).from_buffer_copy(struct)


def _strides(axis_sets: Sequence[int], lengths: tuple[int, ...]) -> tuple[int, ...]:
    """The number of rows from one index of every axis to the next."""
    return tuple(prod(lengths[one] for one in axis_sets[axis + 1 :]) for axis in range(len(axis_sets)))


def _side(
    tree: ContractionTree, channels: Sequence[int], lengths: tuple[int, ...], factor_offsets: dict[int, int]
) -> tuple[list[Any], list[Any], int]:
    """All stacks, all steps, and the size of all stacks but the roots."""
    children: list[list[tuple[int, StackStep]]] = [[] for _ in tree.stacks]
    for number, stack in enumerate(tree.stacks):
        for step in stack.steps:
            children[step.parent].append((number, step))
    stacks, steps, size = list[Any](), list[Any](), 0
    for number, stack in enumerate(tree.stacks):
        axis_lengths = tuple(lengths[one] for one in stack.axis_sets)
        n_rows, width, is_root = prod(axis_lengths), stack.width(channels), number < len(tree.roots)
        stacks.append(
            structs.Stack(
                rank=len(axis_lengths),
                width=width,
                n_rows=n_rows,
                offset=-1 - number if is_root else size,
                factor_offset=factor_offsets.get(number, -1),
                first_step=len(steps),
                n_steps=len(children[number]),
                level=tree.levels.index(number) if number in tree.levels else -1,
                length=axis_lengths,
                set=stack.axis_sets,
                stride=_strides(stack.axis_sets, lengths),
            )
        )
        size += 0 if is_root else n_rows * width
        steps += [_step(tree, child, step, channels, lengths) for child, step in children[number]]
    return stacks, steps, size


def _step(tree: ContractionTree, child: int, step: StackStep, channels: Sequence[int], lengths: tuple[int, ...]) -> Any:
    above, below = tree.stacks[step.parent], tree.stacks[child]
    dropped = step.axes[-1] if step.axes else len(above.axis_sets)
    strides = _strides(below.axis_sets, lengths)
    return structs.Step(
        child=child,
        kind=KINDS[step.kind],
        kept_axis=step.axes[0] if step.kind == "diagonal" else 0,
        dropped_axis=dropped if step.axes else 0,
        column=above.width(channels, 0, step.parent_start),
        child_column=below.width(channels, 0, step.start),
        width=above.width(channels, step.parent_start, step.parent_start + step.n_columns),
        stride=(*strides[:dropped], 0, *strides[dropped:]) if step.axes else strides,
    )


def _permutations(level: Level, axis_sets: tuple[int, ...], lengths: tuple[int, ...]) -> list[Any]:
    """The strides of the permuted axes of a level: those of the backward pass, then those of the forward pass."""
    strides = _strides(axis_sets, lengths)
    backward = [[strides[one.index(axis)] for axis in range(len(one))] for one in level.permutations]
    forward = [[strides[axis] for axis in one] for one in level.permutations]
    return [structs.Permutation(stride=tuple(one)) for one in (*backward, *forward)]


def _biases(restricted: RestrictedPlan, widths: Sequence[int]) -> list[Any]:
    """All biases: the target, where each begins among those of the target, and its width."""
    targets = [target for target, _ in restricted.whole.numbered_biases]
    return [
        structs.Bias(targets[one], (one - targets.index(targets[one])) * widths[targets[one]], widths[targets[one]])
        for one in restricted.biases
    ]


def _blocks(
    restricted: RestrictedPlan,
    level: Level,
    plane: Sequence[Sequence[int | None]],
    channels: Channels,
    lengths: tuple[int, ...],
    offset: int,
) -> list[Any]:
    """All maps with one permutation, whose matrix begins at an offset."""
    widths = [channels[1][broadcast.tensor] for broadcast in level.broadcasts]
    blocks, stride = list[Any](), sum(widths)
    for contraction, numbers in zip(level.contractions, plane, strict=True):
        height = channels[0][contraction.tensor]
        n_terms = prod(max(lengths[one], 1) for one in contraction.dropped_sets)
        for broadcast, column, width, number in zip(
            level.broadcasts, accumulate(widths, initial=0), widths, numbers, strict=False
        ):
            if number is not None:
                pair = contraction.tensor * len(restricted.plan.target.roots) + broadcast.tensor
                own = restricted.maps[number] - restricted.whole.pairs[pair].start
                blocks.append(structs.Block(pair, own, height, width, offset + column, stride, n_terms))
        offset += height * stride
    return blocks
