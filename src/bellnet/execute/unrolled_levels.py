"""The products of every level, written out as Python code.

Forwards, rows of the source are multiplied by the matrix of every swap and added up in the target; backwards it is the
same from target to source, and what was read on both sides is paired for the gradient of the matrices. Each result is
begun with what arrives from lower ranks, and finished piece by piece where it is large.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from bellnet.execute.layout import Channels
from bellnet.execute.narrow import is_narrow
from bellnet.plan import Plan, Swap


class Start(NamedTuple):
    """What a result begins with.

    Attributes:
        memory: Where it is added up.
        spread: What is repeated over it.
        together: Whether the first two of these have all axes together.
    """

    memory: str
    spread: Sequence[str]
    together: bool

    def lines(self, total: str, names: Sequence[str]) -> list[str]:
        """Add up what is repeated, or pieces of it by these names, in memory of such a name."""
        if not names:
            return [f"{total}.zero_()"]
        n_first = 2 if self.together else 1
        first = f"add({names[0]}, {names[1]}, out={total})" if self.together else f"{total}.copy_({names[0]})"
        return [first, *[f"{total}.add_({one})" for one in names[n_first:]]]


class _Way(NamedTuple):
    """Through a level, forwards from what was read or backwards from what was read of the gradient.

    Attributes:
        level: Its number.
        given: The tensor whose rows are multiplied.
        total: The tensor in which products are added up.
        inner: How wide the rows are.
        outer: How wide those of the result are.
        orders: For every swap the order of the axes of `given` that it is added up in.
        matrices: For every swap what rows are multiplied by.
        paired: What was read on the other side, for the gradient of the matrices; None if it is not wanted.
    """

    level: int
    given: str
    total: str
    inner: int
    outer: int
    orders: Sequence[Swap]
    matrices: Sequence[str] = ()
    paired: str | None = None

    @property
    def turns_rows(self) -> bool:
        """Whether rows are brought into another order before they are multiplied, or products afterwards.

        Rows are copied, and serve the gradient of the matrices as well; products are added, and rows of the other side
        are copied all the same.
        """
        return self.inner <= 2 * self.outer


class LevelWriter:
    """Writes the products of the levels of a plan.

    Args:
        plan: The plan.
        channels: Those of every source and those of every target.
        line: Takes the lines of code.
    """

    def __init__(self, plan: Plan, channels: Channels, line: Callable[[str], None]) -> None:
        self._plan, self._line = plan, line
        self._inside, self._outside = channels
        pairs = zip(plan.source.levels, plan.target.levels, strict=True)
        self._levels = [(source, target, plan.levels[level].swaps) for level, (source, target) in enumerate(pairs)]

    def mix(self, level: int, start: Start | None) -> None:
        """What was read on a level, times the matrix of every swap, added to what it begins with."""
        source, target, swaps = self._levels[level]
        if not swaps[0]:
            into = f", out=into{target}" if target < len(self._outside) else ""
            product = f"matmul(r{source}, {_matrix(level, 0)}{into})"
            if level == 0:
                product += f" if bias is None else addmm(bias, r{source}, {_matrix(level, 0)}{into})"
            self._line(f"z{target} = {product}")
            return
        way = _Way(level, f"r{source}", f"z{target}", *self._widths(level), swaps)
        matrices = self._matrices(way, f"r{self._levels[0][0]}")
        self._multiply(way._replace(matrices=matrices), start)

    def pull(self, level: int, start: Start | None) -> None:
        """The gradient of the matrices of a level, and that of what was read there."""
        source, target, swaps = self._levels[level]
        if not swaps[0]:
            self.pair(level)
            into = f", out=into{source}" if source < len(self._inside) else ""
            self._line(f"z{source} = matmul(p{target}, {_matrix(level, 0)}.mT{into})")
            return
        inner, outer = self._widths(level)
        way = _Way(level, f"p{target}", f"z{source}", outer, inner, list(map(_inverse, swaps)))
        matrices = self._matrices(way, f"p{self._levels[0][1]}", transposed=True)
        self._multiply(way._replace(matrices=matrices, paired=f"r{source}"), start)

    def pair(self, level: int) -> None:
        """The gradient of the matrices of a level: what was read of the values times what was of the gradient."""
        source, target, swaps = self._levels[level]
        if not swaps[0]:
            self._line(f"{_matrix(level, 0, of=True)}.addmm_(r{source}.mT, p{target})")
            return
        inner, outer = self._widths(level)
        values, gradient = f"r{source}", f"p{target}"
        turns_gradient = outer <= inner  # the narrower side
        if turns_gradient:
            turned = [_permuted(gradient, _inverse(swap)) for swap in swaps[1:]]
        else:
            turned = [_permuted(values, swap) for swap in swaps[1:]]
        names = [f"turned{number}" for number in range(1, len(swaps))]
        self._line(f"for {', '.join(['some', 'pulled', *names])} in pieces({', '.join([values, gradient, *turned])}):")
        self._line(f"    rows, pulled = some.reshape(-1, {inner}), pulled.reshape(-1, {outer})")
        self._line(f"    {self._pair(level, 0, 'rows', 'pulled')}")
        sides = ("rows", "swapped") if turns_gradient else ("swapped", "pulled")
        for number, name in enumerate(names, 1):
            self._swapped_rows(name, outer if turns_gradient else inner)
            self._line(f"    {self._pair(level, number, *sides)}")

    def _multiply(self, way: _Way, start: Start | None) -> None:
        """The products of all swaps, added up."""
        if start is None and len(way.orders) == 1:
            self._multiply_at_once(way)
            return
        shape = self._shape(way.level, way.outer)
        self._line(f"{way.total} = {f'{way.given}.new_empty({shape})' if start is None else start.memory}")
        if way.turns_rows:
            self._multiply_pieces(way, start, list(enumerate(way.orders))[1:])
            return
        if len(way.orders) > 1:
            # Every swap takes the same rows; where axes do not lie so, they are copied once for all of them.
            as_before = self._shape(way.level, way.inner)
            self._line(f"{way.given} = {way.given}.reshape(-1, {way.inner}).view({as_before})")
        self._multiply_pieces(way, start, [])
        self._turn_products(way)

    def _multiply_at_once(self, way: _Way) -> None:
        """One product, and nothing else."""
        (matrix,) = way.matrices
        self._line(f"rows = {way.given}.reshape(-1, {way.inner})")
        if way.paired is not None:
            self._line(self._pair(way.level, 0, f"{way.paired}.reshape(-1, {way.outer})", "rows"))
        product = f"product(rows, {matrix})" if _is_wide(matrix) else f"mm(rows, {matrix})"
        self._line(f"{way.total} = {product}.view({self._shape(way.level, way.outer)})")

    def _multiply_pieces(self, way: _Way, start: Start | None, turns: Sequence[tuple[int, Swap]]) -> None:
        """Rows, and rows in other orders, times their matrices, piece by piece."""
        spread = {f"spread{number}": one for number, one in enumerate([] if start is None else start.spread)}
        cut = {"total": way.total, "some": way.given, **spread}
        cut |= {f"turned{number}": _permuted(way.given, order) for number, order in turns}
        if way.paired is not None:
            cut["other"] = way.paired
        self._line(f"for {', '.join(cut)} in pieces({', '.join(cut.values())}):")
        for line in start.lines("total", list(spread)) if start is not None and spread else []:
            self._line(f"    {line}")
        if way.paired is not None:
            self._line(f"    other = other.reshape(-1, {way.outer})")
        self._line(f"    rows = some.reshape(-1, {way.inner})")
        self._use(way, 0, "rows", begun=bool(spread))
        for number, _ in turns:
            self._swapped_rows(f"turned{number}", way.inner)
            self._use(way, number, "swapped", begun=True)

    def _use(self, way: _Way, number: int, rows: str, *, begun: bool) -> None:
        """Rows of a piece times the matrix of a swap, added to what was begun, and paired."""
        matrix = way.matrices[number]
        if not begun:
            self._line(f"    product({rows}, {matrix}, total)")
        elif _is_wide(matrix):
            self._line(f"    add_product(total, {rows}, {matrix})")
        else:
            self._line(f"    total.view(-1, {way.outer}).addmm_({rows}, {matrix})")
        if way.paired is not None:
            self._line(f"    {self._pair(way.level, number, 'other', rows)}")

    def _turn_products(self, way: _Way) -> None:
        """Products of the whole tensor whose axes are brought into another order when they are added."""
        for number, order in list(enumerate(way.orders))[1:]:
            self._line(f"mixed = scratch('mixed', {self._shape(way.level, way.outer)}, {way.total})")
            self._line(f"product({way.given}.reshape(-1, {way.inner}), {way.matrices[number]}, mixed)")
            self._line(f"{way.total}.add_({_permuted('mixed', order)})")
            if way.paired is not None:
                self._line(f"for turned, some in pieces({_permuted(way.paired, _inverse(order))}, {way.given}):")
                self._swapped_rows("turned", way.outer)
                self._line(f"    {self._pair(way.level, number, 'swapped', f'some.reshape(-1, {way.inner})')}")

    def _shape(self, level: int, width: int) -> str:
        lengths = "".join(f"lengths[{node_set}], " for node_set in self._plan.levels[level].axis_sets)
        return f"(b, {lengths}{width})"

    def _widths(self, level: int) -> tuple[int, int]:
        """How wide the rows of a level are in the source and in the target."""
        source, target, _ = self._levels[level]
        bundles = self._plan.source.bundles[source], self._plan.target.bundles[target]
        return bundles[0].width(self._inside), bundles[1].width(self._outside)

    def _matrices(self, way: _Way, totals: str, *, transposed: bool = False) -> list[str]:
        """The matrices of a level, perhaps widened for tall products."""
        numbers = range(len(way.orders))
        matrices = [_matrix(way.level, number) + (".mT" if transposed else "") for number in numbers]
        if not is_narrow(way.outer):
            return matrices
        n_rows = " * ".join(["b", *[f"lengths[{node_set}]" for node_set in self._plan.levels[way.level].axis_sets]])
        self._line(f"wide_ones = widen([{', '.join(matrices)}], {n_rows}, {totals})")
        return [f"wide_ones[{number}]" for number in numbers]

    def _pair(self, level: int, number: int, left: str, right: str) -> str:
        matrix = _matrix(level, number, of=True)
        if is_narrow(self._widths(level)[1]):
            return f"add_columns_by_columns({matrix}, {left}, {right})"
        return f"{matrix}.addmm_({left}.mT, {right})"

    def _swapped_rows(self, turned: str, width: int) -> None:
        """Axes in another order, copied into rows."""
        self._line(f"    swapped = copied('swapped', {turned}).view(-1, {width})")


def _matrix(level: int, number: int, *, of: bool = False) -> str:
    return f"{'of_' if of else ''}matrices[{level}][{number}]"


def _is_wide(matrix: str) -> bool:
    return matrix.startswith("wide_ones")


def _inverse(swap: Swap) -> Swap:
    return tuple(swap.index(axis) for axis in range(len(swap)))


def _permuted(name: str, swap: Swap) -> str:
    return f"{name}.permute({', '.join(map(str, [0, *[axis + 1 for axis in swap], len(swap) + 1]))})"
