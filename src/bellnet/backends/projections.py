"""The projected supports on which the contractions of sparse tensors live.

A contraction of a sparse tensor is sparse as well: it lives on what remains of the stored entries when slots are
dropped or made equal. All contractions of one rank share one *projected support*, so that they can be stacked. At rank
1 that is every node and at rank 0 every graph, because these are few; at higher rank it is the union of what the
contractions reach.

Every operation between two projected supports is a sum or a copy along an index, the *incidence* of rows to segments:
stored entries belong to the entry that remains when a slot is dropped, diagonal entries to the entry with one slot
less, an entry to the same entry elsewhere or with permuted slots. Sums run on `embedding_bag`, which sums rows from
anywhere in one pass and always in the same order. It has no second derivative; `segment_sum_functional` and `gather`
can be differentiated and traced.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import NamedTuple

import torch
from torch import Tensor

from bellnet.backends.buffers import SharedBuffer
from bellnet.plan import Contraction, ContractionTree, Permutation
from bellnet.tensors.support import Support, encode, find
from bellnet.tensors.tracing import Cached, no_transforms

LONG = 4096
"""Longer segments are summed in portions: float32 would lose small terms, and one thread would sum it all."""
Move = tuple[str, tuple[int, ...]]
"""The kind and the axes of a step of a contraction tree."""


class Incidence:
    """For each row the segment it belongs to.

    Args:
        segment: (rows,) integers, -1 for a row without a segment.
        n_segments: The number of segments.
        sort: Returns the stable order of the rows by segment, if it is known and every row has a segment.
    """

    def __init__(self, segment: Tensor, n_segments: int, sort: Callable[[], Tensor] | None = None) -> None:
        self.n_rows, self.n_segments, self._sort = len(segment), n_segments, sort
        belongs = segment >= 0
        is_total = bool(belongs.all())
        self.rows = None if is_total else belongs.nonzero().flatten()  # those with a segment; None for all
        self.segment = segment if is_total else segment[belongs]
        self.is_empty = not len(self.segment)
        self.is_single = is_total and n_segments == 1 and not self.is_empty
        self.is_identity = False

    @classmethod
    def identity(cls, n_rows: int, device: torch.device) -> "Incidence":
        """Every row is a segment."""
        incidence = cls(torch.arange(n_rows, device=device), n_rows)
        incidence.is_identity = True
        return incidence

    def segment_sum(self, rows: Tensor) -> Tensor:
        """(segments, channels): the sum of the rows of every segment."""
        if self.is_identity:
            return rows
        if self.is_empty:
            return rows.new_zeros(self.n_segments, rows.shape[-1])
        return rows.sum(0, keepdim=True) if self.is_single else self._bags.sum(rows)

    def segment_sum_functional(self, rows: Tensor) -> Tensor:
        """The same in operations that can be differentiated and traced."""
        if self.is_identity:
            return rows
        rows = rows if self.rows is None else rows.index_select(0, self.rows)
        return rows.new_zeros(self.n_segments, rows.shape[-1]).index_add(0, self.segment, rows)

    def segment_counts(self, weights: Tensor | None = None) -> Tensor:
        """(segments,): the number of rows of every segment, or the sum of their (rows,) weights."""
        weights = weights if weights is None or self.rows is None else weights[self.rows]
        with no_transforms():
            return torch.bincount(self.segment, weights, self.n_segments)

    def gather(self, segments: Tensor) -> Tensor:
        """(rows, channels): for every row the value of its segment, zero without one."""
        if self.is_identity:
            return segments
        if self.is_empty:
            return segments.new_zeros(self.n_rows, segments.shape[-1])
        found = segments.index_select(0, self.segment)
        return (
            found
            if self.rows is None
            else found.new_zeros(self.n_rows, found.shape[-1]).index_copy(0, self.rows, found)
        )

    def add_gathered_(self, segments: Tensor, rows: Tensor) -> None:
        """Add to every row the value of its segment, in place."""
        if self.is_empty:
            return
        found = segments if self.is_identity or self.is_single else segments.index_select(0, self.segment)
        if self.rows is None:
            rows.add_(found)
        else:
            rows.index_add_(0, self.rows, found)

    @cached_property
    def _bags(self) -> "Bags":
        order, _ = self.grouped
        return Bags.of(self._all_rows if order is None else order, self.segment_counts())

    @property
    def _all_rows(self) -> Tensor:
        return torch.arange(self.n_rows, device=self.segment.device)

    @cached_property
    def table(self) -> Tensor:
        """(rows,): the segment of every row, -1 without one."""
        if self.rows is None:
            return self.segment.contiguous()
        with no_transforms():
            return self.segment.new_full((self.n_rows,), -1).index_copy(0, self.rows, self.segment)

    @cached_property
    def grouped(self) -> tuple[Tensor | None, Tensor]:
        """The rows segment by segment, None if they are so already; and where each segment begins, and the end."""
        with no_transforms():
            if bool((self.segment[1:] >= self.segment[:-1]).all()):
                return self.rows, segment_bounds(self.segment_counts())
            order = self.segment.argsort(stable=True) if self._sort is None else self._sort()
            order = order if self.rows is None else self.rows[order]
            return order.contiguous(), segment_bounds(self.segment_counts())


class Bags(NamedTuple):
    """Rows grouped by segment; long segments are summed in several stages.

    Attributes:
        order: The rows, segment by segment.
        stages: Where each segment, or each portion of one, begins in the stage before; the end comes last.
    """

    order: Tensor
    stages: tuple[Tensor, ...]

    @classmethod
    def of(cls, order: Tensor, counts: Tensor) -> "Bags":
        """From the rows segment by segment, and the number of rows of every segment."""
        with no_transforms():
            stages = []
            while int(counts.max()) > LONG:
                portions = (counts + LONG - 1) // LONG
                before, first = segment_bounds(counts), segment_bounds(portions)
                starts = torch.repeat_interleave(before[:-1] - first[:-1] * LONG, portions)
                starts += torch.arange(len(starts), device=counts.device) * LONG
                stages.append(torch.cat([starts, before[-1:]]))
                counts = portions
            return cls(order, (*stages, segment_bounds(counts)))

    def sum(self, rows: Tensor) -> Tensor:
        """(segments, channels): the sum of the rows of every segment."""
        first, *further = self.stages
        total = _embedding_bag(rows, self.order, first)
        for bounds in further:
            total = _embedding_bag(total, torch.arange(len(total), device=total.device), bounds)
        return total


def _embedding_bag(rows: Tensor, order: Tensor, bounds: Tensor) -> Tensor:
    return torch.embedding_bag(rows.detach(), order, bounds, mode=0, include_last_offset=True)[0]


def segment_bounds(counts: Tensor) -> Tensor:
    """Where segments with these numbers of rows begin, and the end."""
    return torch.cat([counts.new_zeros(1), counts.cumsum(0)])


@dataclass(eq=False)
class Projection(Cached):
    """A projected support: distinct tuples over some axes, each a row of the tensors that live on them.

    Attributes:
        totals: For every axis the number of nodes in all graphs together.
        nodes: (axes, rows): the tuples, with nodes numbered across all graphs.
        is_every: Whether it is every node, or every graph for no axes, in their order.
        graph_of_node: For all nodes of the first axis their graph; for no axes the graph of every row.
        memory: For large tensors that live on it.
    """

    totals: tuple[int, ...]
    nodes: Tensor
    is_every: bool
    graph_of_node: Tensor
    memory: SharedBuffer = field(default_factory=SharedBuffer, repr=False)

    @property
    def n_rows(self) -> int:
        """The number of tuples."""
        return self.nodes.shape[1] if self.totals else len(self.graph_of_node)

    @cached_property
    def graphs(self) -> Tensor:
        """(rows,): the graph of every tuple."""
        return self.graph_of_node[self.nodes[0]] if self.totals else self.graph_of_node

    def moved(self, move: Move) -> tuple[list[Tensor], Tensor | None]:
        """The tuples with one axis less, row by row; and which ones of a diagonal they are, None for all."""
        kind, axes = move
        if kind == "copy":
            return list(self.nodes), None
        rest = [row for axis, row in enumerate(self.nodes) if axis != axes[-1]]
        if kind == "sum":
            return rest, None
        equal = (self.nodes[axes[0]] == self.nodes[axes[1]]).nonzero().flatten()
        return [row[equal] for row in rest], equal

    def incidence(self, move: Move, onto: "Projection") -> Incidence:
        """Which tuples here belong to which tuple of the projection that a move leads to."""
        return self.cached_with([onto], move, lambda: self._find_incidence(move, onto))

    def lookup(self, permutation: Permutation, wanted: "Projection") -> Incidence | None:
        """Where the permuted tuples of another projection are found here; None if the rows are the same.

        Axis j of a wanted tuple is axis permutation[j] of the tuple here.
        """
        return self.cached_with([wanted], permutation, lambda: self._find_lookup(permutation, wanted))

    def _find_incidence(self, move: Move, onto: "Projection") -> Incidence:
        if move[0] == "copy" and self._is_like(onto):
            return Incidence.identity(self.n_rows, self.nodes.device)
        tuples, equal = self.moved(move)
        segment = onto.find(tuples) if onto.totals else self.graphs.clone()  # tables of kernels have their own memory
        sort = self.sort_by_last_axis if onto.is_every and move == ("sum", (0,)) and len(tuples) == 1 else None
        if equal is not None:
            segment = segment.new_full((self.n_rows,), -1).index_copy(0, equal, segment)
        return Incidence(segment, onto.n_rows, sort)

    def _find_lookup(self, permutation: Permutation, wanted: "Projection") -> Incidence | None:
        is_identity = permutation == tuple(range(len(permutation)))
        if is_identity and self._is_like(wanted):
            return None
        assert self.totals  # every projection of rank 0 is every graph
        permuted = [wanted.nodes[permutation.index(axis)] for axis in range(len(permutation))]
        found = self.find(permuted, wanted.sort_by_last_axis if permutation == (1, 0) else None)
        if is_identity and torch.equal(found, torch.arange(self.n_rows, device=found.device)):
            return None
        return Incidence(found, self.n_rows)

    def _is_like(self, other: "Projection") -> bool:
        """Whether another one is known to have the same tuples in the same order."""
        return other is self or (self.is_every and other.is_every)

    def find(self, tuples: Sequence[Tensor], sort: Callable[[], Tensor] | None = None) -> Tensor:
        """The row of each tuple, -1 for one that is not here; `sort` may return their ascending order."""
        if self.is_every:
            return tuples[0].clone()  # tables of kernels have their own memory
        wanted, here = encode([tuples, self.nodes], self.totals)
        return find(wanted, here, sort)

    @cached_property
    def sort_by_last_axis(self) -> Callable[[], Tensor]:
        """Returns the order of the rows by their last nodes, cached; ascending pairs are so ordered when exchanged."""
        nodes = self.nodes[-1]  # the function must not refer to the projection

        def sort() -> Tensor:
            with no_transforms():
                return nodes.argsort(stable=True)

        return cache(sort)


class Projections(Cached):
    """The projected supports of all stacks of a tree over some supports, and the tables between them.

    Attributes:
        tree: The tree.
        stacks: For every stack its projected support.
        incidences: For every stack and column which tuples of its parent belong to which of its own.
    """

    def __init__(self, supports: Sequence[Support], tree: ContractionTree) -> None:
        self.tree, self._nnz = tree, [support.nnz for support in supports]
        roots = list(zip(supports, tree.roots, strict=True))
        self.stacks: list[Projection] = [_root(support, root.kept) for support, root in roots]
        by_sets: dict[tuple[int, ...], Projection] = {}
        self.incidences: dict[tuple[int, int], Incidence] = {}
        for number, stack in enumerate(tree.stacks[len(roots) :], len(roots)):
            sets = stack.axis_sets
            if sets not in by_sets:  # parents come first, so all projections of higher rank are there
                alike = [step for other in tree.stacks if other.axis_sets == sets for step in other.steps]
                by_sets[sets] = _project(
                    roots, sets, [(self.stacks[one.parent], (one.kind, one.axes)) for one in alike]
                )
            self.stacks.append(by_sets[sets])
            for step in stack.steps:
                incidence = self.stacks[step.parent].incidence((step.kind, step.axes), self.stacks[-1])
                for column in range(step.start, step.start + step.n_columns):
                    self.incidences[number, column] = incidence
        self._counts = {
            node_set: support.counts.by_set[support.counts.key(name)]
            for support, root in roots
            for node_set, name in zip(root.sets, support.slots, strict=True)
        }

    @classmethod
    def on(cls, tree: ContractionTree, supports: Sequence[Support]) -> "Projections":
        """Those of a tree, cached by the supports."""
        first, *others = supports
        return first.cached_with(others, ("projections", tree), lambda: cls(supports, tree))

    def memory(self) -> list[SharedBuffer]:
        """For every root."""
        return [projection.memory for projection in self.stacks[: len(self._nnz)]]

    def factors(self, dtype: torch.dtype, *, stored: bool) -> tuple[Tensor | None, ...]:
        """For every stack (rows, columns, 1): one over the number of terms of every sum, all or the stored ones."""

        def make() -> tuple[Tensor | None, ...]:
            counts = self._stored_counts.__getitem__ if stored else self._dense_counts
            return tuple(
                (1 / counts(number).clamp(min=1)).to(dtype).unsqueeze(-1) if any(stack.dropped_sets) else None
                for number, stack in enumerate(self.tree.stacks)
            )

        return self.cached((stored, dtype), make)

    def _dense_counts(self, number: int) -> Tensor:
        """(rows, columns): the number of tuples of nodes that each contraction sums."""
        graphs, columns = self.stacks[number].graphs, []
        for node_sets in self.tree.stacks[number].dropped_sets:
            column = torch.ones(len(graphs), dtype=torch.float64, device=graphs.device)
            for node_set in node_sets:
                column = column * self._counts[node_set].clamp(min=1)[graphs]
            columns.append(column)
        return torch.stack(columns, 1)

    @cached_property
    def _stored_counts(self) -> list[Tensor]:
        """For every stack (rows, columns): the number of stored entries that each contraction sums."""
        device = self.stacks[0].nodes.device
        counts = [torch.ones(nnz, 1, dtype=torch.float64, device=device) for nnz in self._nnz]
        for number, stack in enumerate(self.tree.stacks[len(counts) :], len(counts)):
            columns = []
            for step in stack.steps:
                for column in range(step.n_columns):
                    above = counts[step.parent][:, step.parent_start + column]
                    columns.append(self.incidences[number, step.start + column].segment_counts(above))
            counts.append(torch.stack(columns, 1))
        return counts


def _root(support: Support, order: Permutation) -> Projection:
    """The stored entries themselves, axes grouped by node set."""

    def make() -> Projection:
        totals = tuple(support.totals[slot] for slot in order)
        is_every = not totals or (len(totals) == 1 and support.nnz == totals[0])
        nodes = support.nodes if order == tuple(range(len(order))) else support.nodes[list(order)]
        return Projection(totals, nodes, is_every, _graph_of_node(support, order[0]) if order else support.graphs)

    return support.cached(("root", order), make)


def _project(
    roots: Sequence[tuple[Support, Contraction]], sets: tuple[int, ...], moves: Iterable[tuple[Projection, Move]]
) -> Projection:
    """What these moves reach together; every node or graph for at most one axis."""
    if not sets:
        return _every_graph(roots[0][0])
    slots = [
        next((support, root.sets.index(node_set)) for support, root in roots if node_set in root.sets)
        for node_set in sets
    ]
    support, slot = slots[0]
    if len(sets) == 1:
        return _every_node(support, slot)
    moves = frozenset(moves)
    (projection, (kind, _)), *others = moves
    if kind == "copy" and not others:
        return projection

    def union() -> Projection:
        totals = tuple(support.totals[slot] for support, slot in slots)
        tuples = torch.cat([torch.stack(projection.moved(move)[0]) for projection, move in moves], 1)
        codes, positions = torch.unique(encode([tuples], totals)[0], return_inverse=True)
        nodes = tuples.new_empty(len(tuples), len(codes))
        nodes[:, positions] = tuples
        return Projection(totals, nodes, False, _graph_of_node(support, slot))

    # A union over several supports is not cached by one of them.
    return support.cached(("union", moves), union) if len(roots) == 1 else union()


def _every_graph(support: Support) -> Projection:
    def make() -> Projection:
        number = torch.arange(support.counts.n_graphs, device=support.index.device)
        return Projection((), number.new_empty(0, len(number)), True, number)

    return support.cached("every graph", make)


def _every_node(support: Support, slot: int) -> Projection:
    def make() -> Projection:
        nodes = torch.arange(support.totals[slot], device=support.index.device).unsqueeze(0)
        return Projection((support.totals[slot],), nodes, True, _graph_of_node(support, slot))

    return support.cached(("every node", slot), make)


def _graph_of_node(support: Support, slot: int) -> Tensor:
    """For every node of the set of a slot its graph."""
    name = support.counts.key(support.slots[slot])
    return support.cached(("graphs", name), lambda: support.counts.graph_of_every_node(name))
