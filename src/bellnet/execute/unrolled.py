"""A plan on dense tensors, written out as Python code without loops or questions.

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
from bellnet.execute.narrow import add_columns_by_columns, add_product, is_narrow, product, widen
from bellnet.execute.scratch import copied, scratch
from bellnet.execute.zeros import zero_, zeroed
from bellnet.plan import Branch, Bundle, Plan, Swap, Tree

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
        pairs = zip(plan.source.levels, plan.target.levels, strict=True)
        self.levels = [(source, target, plan.levels[level].swaps) for level, (source, target) in enumerate(pairs)]

    def forward(self) -> Written:
        self.lines, source, target = [], self.plan.source, self.plan.target
        self._begin_with("r", source, "values")
        self._unpack("inside", target)
        self._unpack("into", target)
        self._read(source, "r", self.inside)
        self._divide(source)
        self.kept = [f"r{number}" for number in range(len(source.roots), len(source.bundles))]
        self._narrow_again("r", source)
        self._write(target, self.outside, self._mix, masks=True)
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
        self._line(f"    of_bias.add_(p{self.levels[0][1]}.sum(0))")
        if to_values:
            self._write(source, self.inside, self._pull)
            self._line(f"return {_tuple(_names('z', source))}")
        else:
            for level in range(len(self.levels)):
                self._pair(level)
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

    def _write(self, tree: Tree, channels: Widths, mix: Callable[[int, bool], None], *, masks: bool = False) -> None:
        """The transpose of reading: every bundle is what is mixed there and what arrives from below."""
        arriving: list[list[tuple[Branch, str]]] = [[] for _ in tree.bundles]
        for number in range(len(tree.bundles) - 1, -1, -1):
            bundle, terms = tree.bundles[number], arriving[number]
            if number < len(tree.roots):
                if terms:
                    self._begin(tree, number, terms, channels)
                if masks and tree.roots[number].sets:
                    self._line(f"if inside{number} is not None:")
                    self._line(f"    zero_(z{number}, inside{number})")
                if number in tree.levels:
                    mix(tree.levels.index(number), bool(terms))
                continue
            if number in tree.levels:
                mix(tree.levels.index(number), False)
                self._add(tree, number, terms, channels)
            else:
                self._begin(tree, number, terms, channels)
            parts = [f"z{number}"]
            if len(bundle.branches) > 1:
                parts = [f"z{number}_{one}" for one in range(len(bundle.branches))]
                widths = _list([str(_width(bundle, one.start, one.n_columns, channels)) for one in bundle.branches])
                self._line(f"{', '.join(parts)} = split_with_sizes(z{number}, {widths}, -1)")
            for branch, part in zip(bundle.branches, parts, strict=True):
                arriving[branch.parent].append((branch, part))

    def _add(self, tree: Tree, number: int, terms: Sequence[tuple[Branch, str]], channels: Widths) -> None:
        for branch, part in terms:
            under = self._columns(f"z{number}", tree, branch, channels)
            if branch.kind == "sum":
                self._line(f"{under}.add_({part}.unsqueeze({branch.axes[0] + 1}))")
            else:
                self._line(f"{self._diagonal(under, tree, branch, channels)}.add_({part})")

    def _begin(self, tree: Tree, number: int, terms: Sequence[tuple[Branch, str]], channels: Widths) -> None:
        """The sum of what arrives at one fold."""
        is_root = number < len(tree.roots)
        into = f"into{number}" if is_root else "None"
        width = channels[tree.bundles[number].tensors[0]]
        copies = [(part, -1) for branch, part in terms if branch.kind == "copy"]
        sums = [(branch, part) for branch, part in terms if branch.kind == "sum"]
        repeated = [(f"{part}.unsqueeze({branch.axes[0] + 1})", branch.axes[0]) for branch, part in sums]
        spread, axes = [part for part, _ in copies + repeated], [axis for _, axis in copies + repeated]
        rest = spread[2:]
        if len(spread) > 1 and axes[0] != axes[1]:  # what repeats along different axes has all of them together
            self._line(f"z{number} = add({spread[0]}, {spread[1]}, out={into})")
        else:
            lengths = [f"lengths[{node_set}]" for node_set in tree.bundles[number].axis_sets]
            empty = f"{terms[0][1]}.new_empty({_tuple(['b', *lengths, str(width)])})"
            self._line(f"z{number} = {empty}" + (f" if {into} is None else {into}" if is_root else ""))
            self._line(f"z{number}.copy_({spread[0]})" if spread else f"z{number}.zero_()")
            rest = spread[1:]
        for one in rest:
            self._line(f"z{number}.add_({one})")
        for branch, part in terms:
            if branch.kind == "diagonal":
                self._line(f"{self._diagonal(f'z{number}', tree, branch, channels)}.add_({part})")

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

    # ---- levels

    def _shape(self, level: int, width: int) -> str:
        lengths = [f"lengths[{node_set}]" for node_set in self.plan.levels[level].axis_sets]
        return _tuple(["b", *lengths, str(width)])

    def _widths(self, level: int) -> tuple[int, int]:
        """How wide the rows of a level are in the source and in the target."""
        source, target, _ = self.levels[level]
        bundles = self.plan.source.bundles[source], self.plan.target.bundles[target]
        return bundles[0].width(self.inside), bundles[1].width(self.outside)

    def _mix(self, level: int, begun: bool) -> None:
        """What was read on a level, times the matrix of every swap, added to what was begun."""
        source, target, swaps = self.levels[level]
        inner, outer = self._widths(level)
        if not swaps[0]:
            into = f", out=into{target}" if target < len(self.outside) else ""
            product = f"matmul(r{source}, {self._matrix(level, 0)}{into})"
            if level == 0:
                product += f" if bias is None else addmm(bias, r{source}, {self._matrix(level, 0)}{into})"
            self._line(f"z{target} = {product}")
            return
        assert begun or target >= len(self.outside)  # what is broadcast from lower ranks comes first
        matrices = self._prepare(level, f"r{self.levels[0][0]}", outer)
        self._line(f"rows = r{source}.reshape(-1, {inner})")
        if begun:
            self._add_product(f"z{target}", "rows", matrices[0], outer)
        else:
            self._line(f"z{target} = {_product('rows', matrices[0], outer)}.view({self._shape(level, outer)})")
        for number, swap in enumerate(swaps[1:], 1):
            if inner <= outer:  # of the two sides the narrower one is brought into the other order
                self._swapped_rows(f"r{source}", swap, inner)
                self._add_product(f"z{target}", "swapped", matrices[number], outer)
            else:
                self._add_swapped_product(f"z{target}", level, "rows", matrices[number], swap, outer)

    def _pull(self, level: int, begun: bool) -> None:
        """The gradient of the matrices of a level, and that of what was read there."""
        source, target, swaps = self.levels[level]
        if not swaps[0]:
            self._pair(level)
            into = f", out=into{source}" if source < len(self.inside) else ""
            self._line(f"z{source} = matmul(p{target}, {self._matrix(level, 0)}.mT{into})")
        else:
            self._pull_by_swaps(level, begun)
        if source >= len(self.inside) and any(self.plan.source.bundles[source].dropped_sets):
            self._line("if means.factors is not None:")
            self._line(f"    {self._apart(f'z{source}', source)}.mul_(means.factors[{source}])")

    def _pull_by_swaps(self, level: int, begun: bool) -> None:
        source, target, swaps = self.levels[level]
        inner, outer = self._widths(level)
        assert begun or source >= len(self.inside)
        transposed = self._prepare(level, f"p{self.levels[0][1]}", inner, transposed=True)
        self._line(f"rows, pulled = r{source}.reshape(-1, {inner}), p{target}.reshape(-1, {outer})")
        self._add_pair(level, 0, "rows", "pulled")
        if begun:
            self._add_product(f"z{source}", "pulled", transposed[0], inner)
        else:
            self._line(f"z{source} = {_product('pulled', transposed[0], inner)}.view({self._shape(level, inner)})")
        for number, swap in enumerate(swaps[1:], 1):
            if outer <= inner:
                self._swapped_rows(f"p{target}", _inverse(swap), outer)
                self._add_pair(level, number, "rows", "swapped")
                self._add_product(f"z{source}", "swapped", transposed[number], inner)
            else:
                self._add_swapped_product(f"z{source}", level, "pulled", transposed[number], _inverse(swap), inner)
                self._swapped_rows(f"r{source}", swap, inner)
                self._add_pair(level, number, "swapped", "pulled")

    def _pair(self, level: int) -> None:
        """The gradient of the matrices of a level: what was read of the values times what is of the gradient."""
        source, target, swaps = self.levels[level]
        inner, outer = self._widths(level)
        if not swaps[0]:
            self._line(f"{self._matrix(level, 0, of=True)}.addmm_(r{source}.mT, p{target})")
        else:
            self._line(f"rows, pulled = r{source}.reshape(-1, {inner}), p{target}.reshape(-1, {outer})")
            self._add_pair(level, 0, "rows", "pulled")
            for number, swap in enumerate(swaps[1:], 1):
                if outer <= inner:
                    self._swapped_rows(f"p{target}", _inverse(swap), outer)
                    self._add_pair(level, number, "rows", "swapped")
                else:
                    self._swapped_rows(f"r{source}", swap, inner)
                    self._add_pair(level, number, "swapped", "pulled")

    def _matrix(self, level: int, number: int, *, of: bool = False) -> str:
        return f"{'of_' if of else ''}matrices[{level}][{number}]"

    def _prepare(self, level: int, totals: str, width: int, *, transposed: bool = False) -> list[str]:
        """The matrices of a level, perhaps widened for tall products of such a width."""
        numbers = range(len(self.levels[level][2]))
        matrices = [self._matrix(level, number) + (".mT" if transposed else "") for number in numbers]
        if not is_narrow(width):
            return matrices
        n_rows = " * ".join(["b", *[f"lengths[{node_set}]" for node_set in self.plan.levels[level].axis_sets]])
        self._line(f"wide_ones = widen({_list(matrices)}, {n_rows}, {totals})")
        return [f"wide_ones[{number}]" for number in numbers]

    def _add_product(self, total: str, rows: str, matrix: str, width: int) -> None:
        if matrix.startswith("wide_ones"):
            self._line(f"add_product({total}, {rows}, {matrix})")
        else:
            self._line(f"{total}.view(-1, {width}).addmm_({rows}, {matrix})")

    def _add_pair(self, level: int, number: int, left: str, right: str) -> None:
        matrix = self._matrix(level, number, of=True)
        if is_narrow(self._widths(level)[1]):
            self._line(f"add_columns_by_columns({matrix}, {left}, {right})")
        else:
            self._line(f"{matrix}.addmm_({left}.mT, {right})")

    def _swapped_rows(self, whole: str, swap: Swap, width: int) -> None:
        """The axes in another order, copied into rows."""
        self._line(f"swapped = copied('swapped', {whole}.permute({_permutation(swap)})).view(-1, {width})")

    def _add_swapped_product(self, total: str, level: int, rows: str, matrix: str, swap: Swap, width: int) -> None:
        """A product whose axes are brought into another order when it is added."""
        shape = self._shape(level, width)
        self._line(f"mixed = scratch('mixed', {shape}, {total})")
        self._line(f"product({rows}, {matrix}, mixed)")
        self._line(f"{total}.add_(mixed.permute({_permutation(swap)}))")


def _names(name: str, tree: Tree) -> list[str]:
    """For every tensor of a tree one."""
    return [f"{name}{number}" for number in range(len(tree.roots))]


def _width(bundle: Bundle, start: int, n_columns: int, channels: Widths) -> int:
    return bundle.width(channels, start, start + n_columns)


def _is_view(bundle: Bundle) -> bool:
    return len(bundle.branches) == 1 and bundle.branches[0].kind == "diagonal"


def _product(rows: str, matrix: str, width: int) -> str:
    return f"product({rows}, {matrix})" if matrix.startswith("wide_ones") else f"mm({rows}, {matrix})"


def _inverse(swap: Swap) -> Swap:
    return tuple(swap.index(axis) for axis in range(len(swap)))


def _permutation(swap: Swap) -> str:
    return ", ".join(map(str, [0, *[axis + 1 for axis in swap], len(swap) + 1]))


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
