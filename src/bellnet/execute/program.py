"""A plan for so many channels and nodes, as the whole numbers that compiled kernels walk by (`kernels/common.h`)."""

import ctypes
from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate
from math import prod

from bellnet.execute.layout import Channels
from bellnet.plan import Branch, Level, Plan, Present, Tree

MOST_AXES, MOST_SETS = 12, 64
"""As in `kernels/common.h`."""
KINDS = {"sum": 0, "diagonal": 1, "copy": 2}
HEAD, BUNDLE, BRANCH, SWAP = 22, 11 + 3 * MOST_AXES, 10 + MOST_AXES, 1 + MOST_AXES
"""How many numbers a program begins with, and how many a bundle, a branch and a swap have."""


class Program:
    """The words of a plan.

    Args:
        left: The plan, and what of the weights belongs to it.
        channels: Those of every source and of every target.
        lengths: Of the axes of every node set.

    Attributes:
        words: All of them, where kernels can find them.
        n_read: How many numbers are read for each graph, but for the source itself.
        n_multiplications: How many there are for each graph.
        factored: The numbers of the bundles of the source that are means, and how wide each of their columns is.
        bundles: For either side where the words of its bundles begin.
        branches: The same for branches; those of every parent are together.
        swaps: Where the words of swaps begin, for every level one after the other: the ways back, then the ways there.
    """

    def __init__(self, left: Present, channels: Channels, lengths: tuple[int, ...]) -> None:
        plan = left.plan
        trees = plan.source, plan.target
        self.factored = [
            (number, [channels[0][tensor] for tensor in bundle.tensors])
            for number, bundle in enumerate(plan.source.bundles)
            if any(bundle.dropped_sets)
        ]
        widths = [sum(several) for _, several in self.factored]
        starts = dict(zip((number for number, _ in self.factored), accumulate(widths, initial=0), strict=False))
        head, body = [], list[int]()
        self.bundles, self.branches = list[int](), list[int]()
        for side, tree in enumerate(trees):
            bundles, branches, memory = _side(tree, channels[side], lengths, {} if side else starts)
            self.bundles.append(HEAD + len(body))
            self.branches.append(HEAD + len(body) + len(bundles))
            head += [len(tree.roots), len(tree.bundles), memory, self.bundles[-1], self.branches[-1]]
            body += bundles + branches
            if not side:
                self.n_read = memory
        levels, swaps, blocks, at = list[int](), list[int](), list[int](), 0
        self.n_multiplications = 0
        for number, level in enumerate(plan.levels):
            both = [tree.levels[number] for tree in trees]
            height, width = (
                tree.bundles[one].width(several) for tree, one, several in zip(trees, both, channels, strict=True)
            )
            levels += [*both, len(level.swaps), len(swaps) // SWAP, at]
            for plane in level.index:
                blocks += _blocks(left, level, plane, channels, lengths, at)
                at += height * width
            swaps += _swaps(level, lengths)
            n_rows = prod(lengths[one] for one in level.axis_sets)
            self.n_multiplications += n_rows * len(level.swaps) * height * width
        sections = [body, levels, swaps, blocks, _biases(left, channels[1])]
        _, at_levels, self.swaps, at_blocks, at_biases, _ = accumulate(map(len, sections), initial=HEAD)
        head += [len(plan.levels), at_levels, self.swaps, len(lengths), sum(widths), 0]
        head += [at, plan.n_maps, at_blocks, int(plan.has_gaps), len(left.biases), at_biases]
        words = [*head, *(word for section in sections for word in section)]
        self.words = (ctypes.c_int64 * len(words))(*words)


program = lru_cache(maxsize=256)(Program)
"""The words of a plan, found once."""


def fits(plan: Plan) -> bool:
    """Whether kernels have room for so many axes and node sets."""
    trees = plan.source, plan.target
    return len(plan.spec.node_sets) <= MOST_SETS and all(
        len(bundle.axis_sets) <= MOST_AXES for tree in trees for bundle in tree.bundles
    )


def _side(
    tree: Tree, channels: Sequence[int], lengths: tuple[int, ...], factors: dict[int, int]
) -> tuple[list[int], list[int], int]:
    """The words of all bundles, of all branches, and how much memory bundles take but for whole tensors."""
    children: list[list[tuple[int, Branch]]] = [[] for _ in tree.bundles]
    for number, bundle in enumerate(tree.bundles):
        for branch in bundle.branches:
            children[branch.parent].append((number, branch))
    bundles, branches, memory, n_branches = list[int](), list[int](), 0, 0
    for number, bundle in enumerate(tree.bundles):
        axis_lengths = [lengths[one] for one in bundle.axis_sets]
        n_rows, width = prod(axis_lengths), bundle.width(channels)
        place = -1 - number if number < len(tree.roots) else memory
        level = tree.levels.index(number) if number in tree.levels else -1
        bundles += [len(axis_lengths), width, n_rows, place, factors.get(number, -1)]
        bundles += [n_branches, len(children[number]), level]
        bundles += [*_padded(axis_lengths), *_padded(bundle.axis_sets), *_padded(_strides(bundle.axis_sets, lengths))]
        bundles += [0, 0, 0]
        memory += 0 if number < len(tree.roots) else n_rows * width
        n_branches += len(children[number])
        for child, branch in children[number]:
            branches += _branch(tree, number, child, branch, channels, lengths)
    return bundles, branches, memory


def _branch(
    tree: Tree, parent: int, child: int, branch: Branch, channels: Sequence[int], lengths: tuple[int, ...]
) -> list[int]:
    above, below = tree.bundles[parent], tree.bundles[child]
    stays = branch.axes[0] if branch.kind == "diagonal" else 0
    goes = branch.axes[-1] if branch.axes else -1
    kept = [axis for axis in range(len(above.axis_sets)) if axis != goes]
    steps = dict(zip(kept, _strides(below.axis_sets, lengths), strict=True))
    column = above.width(channels, 0, branch.parent_start)
    width = above.width(channels, branch.parent_start, branch.parent_start + branch.n_columns)
    numbers = [child, KINDS[branch.kind], stays, max(goes, 0), column, below.width(channels, 0, branch.start), width]
    return [*numbers, *_on_axes(steps), 0, 0, 0]


def _swaps(level: Level, lengths: tuple[int, ...]) -> list[int]:
    """By how many rows the axes of a level move, for every swap: the ways back, then the ways there."""
    strides = _strides(level.axis_sets, lengths)
    back = [_on_axes(dict(zip(swap, strides, strict=True))) for swap in level.swaps]
    there = [_on_axes({axis: strides[one] for axis, one in enumerate(swap)}) for swap in level.swaps]
    return [stride for one in (*back, *there) for stride in (*one, 0)]


def _biases(left: Present, widths: Sequence[int]) -> list[int]:
    """The words of all biases: the target, where it begins among the numbers of that, and how many it has."""
    numbered = left.whole.numbered_biases
    firsts = {target: number for number, (target, _) in reversed(list(enumerate(numbered)))}
    words = []
    for number in left.biases:
        target = numbered[number][0]
        words += [target, (number - firsts[target]) * widths[target], widths[target]]
    return words


def _blocks(
    left: Present,
    level: Level,
    plane: Sequence[Sequence[int | None]],
    channels: Channels,
    lengths: tuple[int, ...],
    at: int,
) -> list[int]:
    """The words of all maps with one swap, whose matrix begins at a place."""
    heights = [channels[0][fold.tensor] for fold in level.reads]
    widths = [channels[1][fold.tensor] for fold in level.writes]
    words, step, n_targets = list[int](), sum(widths), len(left.plan.target.roots)
    for read, row, height, numbers in zip(level.reads, accumulate(heights, initial=0), heights, plane, strict=False):
        n_terms = prod(max(lengths[one], 1) for one in read.dropped_sets)
        columns = accumulate(widths, initial=0)
        for write, column, width, number in zip(level.writes, columns, widths, numbers, strict=False):
            if number is not None:
                pair = read.tensor * n_targets + write.tensor
                own = left.maps[number] - left.whole.pairs[pair].start
                words += [pair, own, height, width, at + row * step + column, step, n_terms]
    return words


def _strides(axis_sets: Sequence[int], lengths: tuple[int, ...]) -> list[int]:
    """By how many rows every axis moves."""
    return [prod(lengths[one] for one in axis_sets[axis + 1 :]) for axis in range(len(axis_sets))]


def _padded(numbers: Sequence[int]) -> list[int]:
    return [*numbers, *[0] * (MOST_AXES - len(numbers))]


def _on_axes(strides: dict[int, int]) -> list[int]:
    return [strides.get(axis, 0) for axis in range(MOST_AXES)]
