"""A plan on dense tensors, written out as Python code that loops over pieces alone.

Small graphs cost mostly what happens between the operations, so all that can be known before a call is decided when
the code is written: which folds come from which, what lies side by side, what is added to what. Walked forwards, the
code reads the folds of the source, mixes them level by level and writes them to the target; backwards it does the same
with source and target exchanged, and pairs what was read on both sides for the gradient of the matrices.
"""

import linecache
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import torch

from bellnet.execute.layout import Channels
from bellnet.execute.means import scale
from bellnet.execute.narrow import add_columns_by_columns, add_product, product, widen
from bellnet.execute.pieces import pieces
from bellnet.execute.scratch import copied, scratch
from bellnet.execute.unrolled_levels import LevelWriter, Start
from bellnet.execute.zeros import zero_, zeroed
from bellnet.plan import Branch, Bundle, Plan, Tree

Written = Callable[..., Any]
Widths = tuple[int, ...]
"""The channels of every tensor of a tree."""


class Unrolled:
    """The code of a plan with so many channels.

    Args:
        plan: The plan.
        channels: Those of every source and those of every target.

    Attributes:
        forward: (values, lengths, matrices, bias, means, inside, into), to the results and what was read; values,
            `inside` and `into` have an entry for every tensor.
        backward: (gradients, read, lengths, matrices, means, inside, into, of_matrices, of_bias), to the gradients of
            the values; `read` begins with the values. The gradients of matrices and bias are added in place.
        backward_to_weights: The same without the gradient of the values.
        n_kept: How many tensors were read.
    """

    def __init__(self, plan: Plan, channels: Channels) -> None:
        writer = _Writer(plan, channels)
        self.forward = writer.forward()
        self.n_kept = len(writer.kept)
        self.backward = writer.backward(to_values=True)
        self.backward_to_weights = writer.backward(to_values=False)


unroll = lru_cache(maxsize=512)(Unrolled)
"""The code of a plan, written once."""


class _Writer:
    def __init__(self, plan: Plan, channels: Channels) -> None:
        self.plan = plan
        self.inside, self.outside = channels
        self.lines: list[str] = []
        self.kept: list[str] = []
        self._levels = LevelWriter(plan, channels, self._line)

    def forward(self) -> Written:
        self.lines, source, target = [], self.plan.source, self.plan.target
        self._begin_with("r", source, "values")
        self._unpack("inside", target)
        self._unpack("into", target)
        self._read(source, "r", self.inside)
        self._divide(source)
        self.kept = [f"r{number}" for number in range(len(source.roots), len(source.bundles))]
        self._narrow_again("r", source)
        self._write(target, self.outside, self._levels.mix, masks=True)
        self._line(f"return {_tuple(_names('z', target))}, {_list(self.kept)}")
        return self._function("forward", "values, lengths, matrices, bias, means, inside, into")

    def backward(self, *, to_values: bool) -> Written:
        self.lines, source, target = [], self.plan.source, self.plan.target
        names = [f"r{number}" for number in range(len(source.bundles))]
        self._begin_with("p", target, "gradients")
        self._unpack("inside", target)
        if to_values:
            self._unpack("into", source)
        self._line(f"{_tuple(names)} = read")
        for number in range(len(target.roots)):
            self._line(f"if inside{number} is not None:")
            memory = f"scratch('gradient{number}', p{number}.shape, p{number})"
            self._line(f"    p{number} = zeroed(p{number}, inside{number}, {memory})")
        self._read(target, "p", self.outside)
        self._narrow_again("p", target)
        self._line("if of_bias is not None:")
        self._line(f"    of_bias.add_(p{target.levels[0]}.sum(0))")
        if to_values:
            self._write(source, self.inside, self._pull)
            self._line(f"return {_tuple(_names('z', source))}")
        else:
            for level in range(len(target.levels)):
                self._levels.pair(level)
        arguments = "gradients, read, lengths, matrices, means, inside, into, of_matrices, of_bias"
        return self._function("backward" if to_values else "backward_to_weights", arguments)

    def _begin_with(self, name: str, tree: Tree, wholes: str) -> None:
        self._line(f"{_tuple(_names(name, tree))} = {wholes}")
        self._line(f"dtype, b = {name}0.dtype, {name}0.shape[0]")
        self._line("wide = float32 if dtype in HALF else None  # of many half-precision numbers sums lose the small")

    def _unpack(self, name: str, tree: Tree) -> None:
        self._line(f"{_tuple(_names(name, tree))} = {name}")

    def _line(self, line: str) -> None:
        self.lines.append(line)

    def _function(self, name: str, arguments: str) -> Written:
        text = f"def {name}({arguments}):\n" + "".join(f"    {line}\n" for line in self.lines)
        options = "".join(f", {one}" for one in ("symmetric", "hollow") if getattr(self.plan, one))
        channels = [", ".join(map(str, several)) for several in (self.inside, self.outside)]
        title = f"{self.plan.spec}{options}, {' -> '.join(channels)}"
        return _compiled(name, f"<bellnet {name} of {title}>", text)

    # ---- folds

    def _read(self, tree: Tree, name: str, channels: Widths) -> None:
        """All bundles from the whole tensors; sums are not divided."""
        for number, bundle in enumerate(tree.bundles[len(tree.roots) :], len(tree.roots)):
            parts = []
            for column, branch in enumerate(bundle.branches):
                above = self._columns(f"{name}{branch.parent}", tree, branch, channels)
                if branch.kind == "sum":
                    parts.append(f"{above}.sum({branch.axes[0] + 1}, dtype=wide)")
                elif branch.kind == "copy":
                    parts.append(above)
                else:
                    self._line(f"d{column} = {self._diagonal(above, tree, branch, channels)}")
                    parts.append(f"d{column}")
            self._line(f"{name}{number} = {parts[0] if len(parts) == 1 else f'cat({_list(parts)}, -1)'}")

    def _divide(self, tree: Tree) -> None:
        """Make means of the sums that were read, in place where nothing else has that memory."""
        summing = [number for number, bundle in enumerate(tree.bundles) if any(bundle.dropped_sets)]
        if not summing:
            return
        views = {number: bundle.branches[0].parent for number, bundle in enumerate(tree.bundles) if _is_view(bundle)}
        self._line("if means.factors is not None:")
        for number in summing:
            if number in views or number in views.values():
                self._line(f"    r{number} = scale(r{number}, means.factors[{number}])")
            else:
                self._line(f"    {self._apart(f'r{number}', number)}.mul_(means.factors[{number}])")

    def _apart(self, name: str, number: int) -> str:
        """A bundle of the source with an axis for its folds, as a view, if all have the same channels."""
        if len(set(self.inside)) > 1:
            return name
        bundle = self.plan.source.bundles[number]
        lengths = [f"lengths[{node_set}]" for node_set in bundle.axis_sets]
        return f"{name}.view({_tuple(['b', *lengths, str(len(bundle.folds)), str(self.inside[0])])})"

    def _narrow_again(self, name: str, tree: Tree) -> None:
        names = [f"{name}{number}" for number in range(len(tree.bundles))]
        self._line("if wide is not None:")
        self._line(f"    {_tuple(names)} = [one.to(dtype) for one in {_list(names)}]")

    def _write(
        self, tree: Tree, channels: Widths, mix: Callable[[int, Start | None], None], *, masks: bool = False
    ) -> None:
        """The transpose of reading: every bundle is what is mixed there and what arrives from below."""
        arriving: list[list[tuple[Branch, str]]] = [[] for _ in tree.bundles]
        for number in range(len(tree.bundles) - 1, -1, -1):
            bundle, terms = tree.bundles[number], arriving[number]
            if number < len(tree.roots):
                start = self._start(tree, number, terms, channels) if terms else None
                if number in tree.levels:
                    mix(tree.levels.index(number), start)
                elif start is not None:
                    self._begin(number, start)
                self._add_diagonals(tree, number, terms, channels)
                if masks and tree.roots[number].sets:
                    self._line(f"if inside{number} is not None:")
                    self._line(f"    zero_(z{number}, inside{number})")
                continue
            if number in tree.levels:
                mix(tree.levels.index(number), None)
                self._add(tree, number, terms, channels)
            else:
                self._begin(number, self._start(tree, number, terms, channels))
                self._add_diagonals(tree, number, terms, channels)
            parts = [f"z{number}"]
            if len(bundle.branches) > 1:
                parts = [f"z{number}_{one}" for one in range(len(bundle.branches))]
                widths = _list([str(_width(bundle, one.start, one.n_columns, channels)) for one in bundle.branches])
                self._line(f"{', '.join(parts)} = split_with_sizes(z{number}, {widths}, -1)")
            for branch, part in zip(bundle.branches, parts, strict=True):
                arriving[branch.parent].append((branch, part))

    def _pull(self, level: int, start: Start | None) -> None:
        """Products on the way back; sums that were divided are divided again."""
        self._levels.pull(level, start)
        number = self.plan.source.levels[level]
        if number >= len(self.inside) and any(self.plan.source.bundles[number].dropped_sets):
            self._line("if means.factors is not None:")
            self._line(f"    {self._apart(f'z{number}', number)}.mul_(means.factors[{number}])")

    def _add(self, tree: Tree, number: int, terms: Sequence[tuple[Branch, str]], channels: Widths) -> None:
        for branch, part in terms:
            if branch.kind == "sum":
                under = self._columns(f"z{number}", tree, branch, channels)
                self._line(f"{under}.add_({part}.unsqueeze({branch.axes[0] + 1}))")
        self._add_diagonals(tree, number, terms, channels)

    def _add_diagonals(self, tree: Tree, number: int, terms: Sequence[tuple[Branch, str]], channels: Widths) -> None:
        for branch, part in terms:
            if branch.kind == "diagonal":
                under = self._columns(f"z{number}", tree, branch, channels)
                self._line(f"{self._diagonal(under, tree, branch, channels)}.add_({part})")

    def _start(self, tree: Tree, number: int, terms: Sequence[tuple[Branch, str]], channels: Widths) -> Start:
        """What arrives at one fold, but for diagonals."""
        copies = [(part, -1) for branch, part in terms if branch.kind == "copy"]
        sums = [(branch, part) for branch, part in terms if branch.kind == "sum"]
        repeated = [(f"{part}.unsqueeze({branch.axes[0] + 1})", branch.axes[0]) for branch, part in sums]
        spread, axes = [part for part, _ in copies + repeated], [axis for _, axis in copies + repeated]
        bundle = tree.bundles[number]
        shape = ["b", *[f"lengths[{node_set}]" for node_set in bundle.axis_sets], str(channels[bundle.tensors[0]])]
        memory = f"{terms[0][1]}.new_empty({_tuple(shape)})"
        if number < len(tree.roots):
            memory += f" if into{number} is None else into{number}"
        # What repeats along different axes has all of them together.
        return Start(memory, spread, len(spread) > 1 and axes[0] != axes[1])

    def _begin(self, number: int, start: Start) -> None:
        """The sum of what arrives at one fold."""
        self._line(f"z{number} = {start.memory}")
        for line in start.lines(f"z{number}", start.spread):
            self._line(line)

    def _columns(self, name: str, tree: Tree, branch: Branch, channels: Widths) -> str:
        """The columns of its parent that a branch belongs to, as a view."""
        parent = tree.bundles[branch.parent]
        if branch.n_columns == len(parent.folds):
            return name
        width = _width(parent, branch.parent_start, branch.n_columns, channels)
        if branch.parent_start:
            return f"{name}.narrow(-1, {parent.width(channels, 0, branch.parent_start)}, {width})"
        lengths = [f"lengths[{node_set}]" for node_set in parent.axis_sets]
        shape = ["b", *lengths, str(width)]
        return f"{name}.as_strided({_tuple(shape)}, {name}.stride())"  # half as much to do as for `narrow`

    def _diagonal(self, name: str, tree: Tree, branch: Branch, channels: Widths) -> str:
        """Two axes made one, as a view; once more a diagonal and a transposition would be two operations."""
        rank = len(tree.bundles[branch.parent].axis_sets)
        kept, gone = (axis + 1 for axis in branch.axes)
        self._line(f"part = {name}")
        self._line("s = part.stride()")
        strides = [
            f"s[{kept}] + s[{gone}]" if axis == kept else f"s[{axis}]" for axis in range(rank + 2) if axis != gone
        ]
        lengths = [f"lengths[{node_set}]" for node_set in tree.bundles[branch.parent].axis_sets]
        del lengths[gone - 1]
        width = _width(tree.bundles[branch.parent], branch.parent_start, branch.n_columns, channels)
        shape = ["b", *lengths, str(width)]
        return f"part.as_strided({_tuple(shape)}, {_tuple(strides)})"


def _names(name: str, tree: Tree) -> list[str]:
    """For every tensor of a tree one."""
    return [f"{name}{number}" for number in range(len(tree.roots))]


def _width(bundle: Bundle, start: int, n_columns: int, channels: Widths) -> int:
    return bundle.width(channels, start, start + n_columns)


def _is_view(bundle: Bundle) -> bool:
    return len(bundle.branches) == 1 and bundle.branches[0].kind == "diagonal"


def _tuple(names: Sequence[str]) -> str:
    return f"({', '.join(names)}{',' if len(names) == 1 else ''})"


def _list(names: Sequence[str]) -> str:
    return f"[{', '.join(names)}]"


def _compiled(name: str, place: str, text: str) -> Written:
    linecache.cache[place] = len(text), None, text.splitlines(keepends=True), place  # for tracebacks
    scope: dict[str, Any] = {
        "HALF": (torch.float16, torch.bfloat16),
        "float32": torch.float32,
        "add_columns_by_columns": add_columns_by_columns,
        "add_product": add_product,
        "pieces": pieces,
        "product": product,
        "copied": copied,
        "scale": scale,
        "scratch": scratch,
        "widen": widen,
        "zero_": zero_,
        "zeroed": zeroed,
        **{one: getattr(torch, one) for one in ("add", "addmm", "cat", "matmul", "mm", "split_with_sizes")},
    }
    exec(compile(text, place, "exec"), scope)
    written: Written = scope[name]
    return written
