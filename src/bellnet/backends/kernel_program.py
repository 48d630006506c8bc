"""The kernel program: a plan for so many channels and nodes, as the structs that kernels run (`kernels/common.h`)."""

import ctypes
from collections.abc import Sequence
from copy import copy
from functools import lru_cache
from itertools import accumulate
from math import prod
from typing import Any

import torch
from torch import Tensor

from bellnet.backends.incidence import Incidence
from bellnet.backends.level_matrices import Channels
from bellnet.backends.projections import Projections
from bellnet.backends.torch_backend import Means
from bellnet.kernels import structs
from bellnet.kernels.calling import pointer, table_pointer
from bellnet.kernels.structs import COPY, DIAGONAL, MOST_AXES, MOST_SETS, SUM, Bundle
from bellnet.plan import ContractionTree, Level, Plan, RestrictedPlan, StackStep
from bellnet.tensors.tracing import no_transforms

KINDS = {"sum": SUM, "diagonal": DIAGONAL, "copy": COPY}


class Program:
    """The kernel program of a plan.

    Args:
        left: The plan, and what of the weights belongs to it.
        channels: Those of every source and of every target.
        lengths: Of the axes of every node set.

    Attributes:
        head: The struct that kernels take, which points to all others.
        sides: For source and target the arrays of their stacks and of their branches; those of every parent are
            together.
        permutations: For every level one after the other: the ways back, then the ways there.
        n_read: How many values are read for each graph, but for the source itself.
        n_multiplications: How many there are for each graph.
        factored: The numbers of the stacks of the source that are means, and how wide each of their columns is.
    """

    def __init__(self, left: RestrictedPlan, channels: Channels, lengths: tuple[int, ...]) -> None:
        plan = left.plan
        trees = plan.source, plan.target
        self.factored = [
            (number, [channels[0][tensor] for tensor in stack.tensors])
            for number, stack in enumerate(plan.source.stacks)
            if any(stack.dropped_sets)
        ]
        widths = [sum(several) for _, several in self.factored]
        starts = dict(zip((number for number, _ in self.factored), accumulate(widths, initial=0), strict=False))
        found = [_side(tree, channels[side], lengths, {} if side else starts) for side, tree in enumerate(trees)]
        self.sides = tuple(
            (_array(structs.Bundle, stacks), _array(structs.Branch, branches)) for stacks, branches, _ in found
        )
        self.n_read = found[0][2]
        levels, permutations, blocks, at = list[structs.Level](), list[structs.Swap](), list[structs.Block](), 0
        self.n_multiplications = 0
        for number, level in enumerate(plan.levels):
            both = [tree.levels[number] for tree in trees]
            height, width = (
                tree.stacks[one].width(several) for tree, one, several in zip(trees, both, channels, strict=True)
            )
            levels.append(
                structs.Level(bundle=both, n_swaps=len(level.permutations), first_swap=len(permutations), matrices=at)
            )
            for plane in level.index:
                blocks += _blocks(left, level, plane, channels, lengths, at)
                at += height * width
            permutations += _swaps(level, lengths)
            n_rows = prod(lengths[one] for one in level.axis_sets)
            self.n_multiplications += n_rows * len(level.permutations) * height * width
        self.permutations = _array(structs.Swap, permutations)
        self._others = (
            _array(structs.Level, levels),
            _array(structs.Block, blocks),
            _array(structs.Bias, _biases(left, channels[1])),
        )
        self.head = structs.Program(
            n_levels=len(plan.levels),
            n_sets=len(lengths),
            n_factors=sum(widths),
            n_matrices=at,
            n_blocks=plan.n_maps,
            has_gaps=plan.has_gaps,
            n_biases=len(left.biases),
        )
        for side, (tree, (_, _, memory)) in enumerate(zip(trees, found, strict=True)):
            self.head.side[side].n_roots, self.head.side[side].n_bundles = len(tree.roots), len(tree.stacks)
            self.head.side[side].memory = memory
        self._point()

    def copied(self) -> "Program":
        """A program whose stacks, branches and permutations can be changed; levels and blocks are shared."""
        program = copy(self)
        program.sides = tuple((_duplicate(stacks), _duplicate(branches)) for stacks, branches in self.sides)
        program.permutations, program.head = _duplicate(self.permutations), _duplicate(self.head)
        program._point()
        return program

    def _point(self) -> None:
        """Write the addresses of all arrays into the head."""
        levels, blocks, biases = self._others
        for side, (stacks, branches) in zip(self.head.side, self.sides, strict=True):
            side.bundles, side.branches = ctypes.addressof(stacks), ctypes.addressof(branches)
        self.head.levels, self.head.swaps = ctypes.addressof(levels), ctypes.addressof(self.permutations)
        self.head.blocks, self.head.biases = ctypes.addressof(blocks), ctypes.addressof(biases)


program = lru_cache(maxsize=256)(Program)
"""The program of a plan, cached."""


def fits(plan: Plan) -> bool:
    """Whether kernels have room for so many axes and node sets."""
    trees = plan.source, plan.target
    return len(plan.spec.node_sets) <= MOST_SETS and all(
        len(stack.axis_sets) <= MOST_AXES for tree in trees for stack in tree.stacks
    )


def _array(kind: type[ctypes.Structure], several: Sequence[ctypes.Structure]) -> Any:
    """Structs one after the other in memory."""
    return (kind * len(several))(*several)


def _duplicate(struct: Any) -> Any:
    return type(struct).from_buffer_copy(struct)


def _side(
    tree: ContractionTree, channels: Sequence[int], lengths: tuple[int, ...], factors: dict[int, int]
) -> tuple[list[structs.Bundle], list[structs.Branch], int]:
    """All stacks, all branches, and how much memory stacks take but for whole tensors."""
    children: list[list[tuple[int, StackStep]]] = [[] for _ in tree.stacks]
    for number, stack in enumerate(tree.stacks):
        for branch in stack.steps:
            children[branch.parent].append((number, branch))
    stacks, branches, memory = list[structs.Bundle](), list[structs.Branch](), 0
    for number, stack in enumerate(tree.stacks):
        axis_lengths = [lengths[one] for one in stack.axis_sets]
        n_rows, width = prod(axis_lengths), stack.width(channels)
        is_root = number < len(tree.roots)
        stacks.append(
            structs.Bundle(
                rank=len(axis_lengths),
                width=width,
                rows=n_rows,
                place=-1 - number if is_root else memory,
                factors=factors.get(number, -1),
                first_branch=len(branches),
                n_branches=len(children[number]),
                level=tree.levels.index(number) if number in tree.levels else -1,
                length=axis_lengths,
                set=stack.axis_sets,
                stride=_strides(stack.axis_sets, lengths),
            )
        )
        memory += 0 if is_root else n_rows * width
        branches += [_branch(tree, number, child, branch, channels, lengths) for child, branch in children[number]]
    return stacks, branches, memory


def _branch(
    tree: ContractionTree, parent: int, child: int, branch: StackStep, channels: Sequence[int], lengths: tuple[int, ...]
) -> structs.Branch:
    above, below = tree.stacks[parent], tree.stacks[child]
    goes = branch.axes[-1] if branch.axes else -1
    kept = [axis for axis in range(len(above.axis_sets)) if axis != goes]
    steps = dict(zip(kept, _strides(below.axis_sets, lengths), strict=True))
    return structs.Branch(
        child=child,
        kind=KINDS[branch.kind],
        stays=branch.axes[0] if branch.kind == "diagonal" else 0,
        goes=max(goes, 0),
        column=above.width(channels, 0, branch.parent_start),
        child_column=below.width(channels, 0, branch.start),
        width=above.width(channels, branch.parent_start, branch.parent_start + branch.n_columns),
        step=_on_axes(steps),
    )


def _swaps(level: Level, lengths: tuple[int, ...]) -> list[structs.Swap]:
    """By how many rows the axes of a level move, for every swap: the ways back, then the ways there."""
    strides = _strides(level.axis_sets, lengths)
    back = [_on_axes(dict(zip(permutation, strides, strict=True))) for permutation in level.permutations]
    there = [
        _on_axes({axis: strides[one] for axis, one in enumerate(permutation)}) for permutation in level.permutations
    ]
    return [structs.Swap(n_axes=one) for one in (*back, *there)]


def _biases(left: RestrictedPlan, widths: Sequence[int]) -> list[structs.Bias]:
    """All biases: the target, where it begins among the values of that, and how many it has."""
    numbered = left.whole.numbered_biases
    firsts = {target: number for number, (target, _) in reversed(list(enumerate(numbered)))}
    found = []
    for number in left.biases:
        target = numbered[number][0]
        place = (number - firsts[target]) * widths[target]
        found.append(structs.Bias(target=target, place=place, width=widths[target]))
    return found


def _blocks(
    left: RestrictedPlan,
    level: Level,
    plane: Sequence[Sequence[int | None]],
    channels: Channels,
    lengths: tuple[int, ...],
    at: int,
) -> list[structs.Block]:
    """All maps with one swap, whose matrix begins at a place."""
    heights = [channels[0][contraction.tensor] for contraction in level.contractions]
    widths = [channels[1][contraction.tensor] for contraction in level.broadcasts]
    found, step, n_targets = list[structs.Block](), sum(widths), len(left.plan.target.roots)
    for read, row, height, numbers in zip(
        level.contractions, accumulate(heights, initial=0), heights, plane, strict=False
    ):
        n_terms = prod(max(lengths[one], 1) for one in read.dropped_sets)
        columns = accumulate(widths, initial=0)
        for write, column, width, number in zip(level.broadcasts, columns, widths, numbers, strict=False):
            if number is not None:
                pair = read.tensor * n_targets + write.tensor
                own = left.maps[number] - left.whole.pairs[pair].start
                found.append(
                    structs.Block(
                        weight=pair,
                        map=own,
                        rows=height,
                        columns=width,
                        place=at + row * step + column,
                        step=step,
                        n_terms=n_terms,
                    )
                )
    return found


def _strides(axis_sets: Sequence[int], lengths: tuple[int, ...]) -> list[int]:
    """By how many rows every axis moves."""
    return [prod(lengths[one] for one in axis_sets[axis + 1 :]) for axis in range(len(axis_sets))]


def _on_axes(strides: dict[int, int]) -> list[int]:
    return [strides.get(axis, 0) for axis in range(MOST_AXES)]


class ListedProgram:
    """The kernel program of a plan between supports.

    Args:
        left: The plan, and what of the weights belongs to it.
        channels: Those of every source and of every target.
        sides: Where the tuples of source and target stand.
        found: For every level where the permutations find tuples, back and then there; None for rows that are the same.
        means: What makes means of sums.
        dtype: Of the numbers.

    Attributes:
        head: The struct that kernels take, which points to all others.
        n_read: How many numbers are read but for the source itself.
        n_multiplications: How many there are.
    """

    def __init__(
        self,
        left: RestrictedPlan,
        channels: Channels,
        sides: tuple[Projections, Projections],
        found: Sequence[Incidence | None],
        means: Means,
        dtype: torch.dtype,
    ) -> None:
        plan = left.plan
        lengths = means.lengths or (1,) * len(plan.spec.node_sets)
        self._program = program(left, channels, lengths).copied()
        self.head = self._program.head
        self._tables: list[object] = []  # the structs have their addresses
        self.head.is_listed = 1
        self.n_read = self._lay_out(0, sides[0], channels[0])
        self._lay_out(1, sides[1], channels[1])
        for number, side in enumerate(sides):
            self._enter_moves(number, side)
        for incidence, permutation in zip(found, self._program.permutations, strict=True):
            if incidence is not None:
                permutation.found = self._address(incidence.table, incidence.n_parts, incidence.n_wholes)
        for number, factors in enumerate(means.over_columns(plan.source, channels[0]).factors or ()):
            if factors is not None:
                width = plan.source.stacks[number].width(channels[0])
                self._enter_factors(self._program.sides[0][0][number], factors, width, dtype)
        self.n_multiplications = sum(
            sides[1].stacks[target].n_rows
            * len(level.permutations)
            * plan.source.stacks[source].width(channels[0])
            * plan.target.stacks[target].width(channels[1])
            for source, target, level in zip(plan.source.levels, plan.target.levels, plan.levels, strict=True)
        )

    def _lay_out(self, number: int, side: Projections, channels: Sequence[int]) -> int:
        """How many rows stacks have, and where they begin; how many values all have but the whole tensors."""
        rows, n_roots = [projection.n_rows for projection in side.stacks], len(side.tree.roots)
        sizes = [
            0 if one < n_roots else rows[one] * stack.width(channels) for one, stack in enumerate(side.tree.stacks)
        ]
        *places, memory = accumulate(sizes, initial=0)
        for one, stack in enumerate(self._program.sides[number][0]):
            stack.rows = rows[one]
            if one >= n_roots:
                stack.place = places[one]
        self.head.side[number].memory = memory
        return memory

    def _enter_moves(self, number: int, side: Projections) -> None:
        """The tables of all branches, in the order of their parents."""
        branches = [(child, one) for child, stack in enumerate(side.tree.stacks) for one in stack.steps]
        ordered = sorted(branches, key=lambda pair: pair[1].parent)
        for entry, (child, branch) in zip(self._program.sides[number][1], ordered, strict=True):
            incidence = side.moves[child, branch.start]
            if incidence.is_same:
                continue
            order, bounds = incidence.in_order
            n_ordered = incidence.n_parts if order is None else len(order)
            entry.whole = self._address(incidence.table, incidence.n_parts, incidence.n_wholes)
            entry.order = None if order is None else self._address(order, n_ordered, incidence.n_parts)
            entry.bounds = self._address(bounds, incidence.n_wholes + 1, n_ordered + 1)

    def _enter_factors(self, stack: Bundle, factors: Tensor, width: int, dtype: torch.dtype) -> None:
        """What the rows of a stack are multiplied by, (rows, columns, 1), or (rows, width) for columns that differ."""
        with no_transforms():
            table = factors.flatten(1).to(dtype).contiguous()
        stack.row_factors = pointer("the factors of means", table, (stack.rows, table.shape[1]), dtype, self._tables)
        stack.n_row_factors, stack.factor_width = table.shape[1], width // table.shape[1]

    def _address(self, table: Tensor, length: int, limit: int) -> int | None:
        return table_pointer("a table of a support", table, length, limit, self._tables)
