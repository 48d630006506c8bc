"""The tuples that the contractions of a support live on, or those of several supports.

The contraction of a sparse tensor is sparse as well: it lives on what is left of the listed tuples when slots are
dropped or made to agree. All contractions of one rank share one list of tuples, their *projection*, so that they can be
put side by side. At rank 1 that is every node and at rank 0 every graph, because those are few; at higher rank it is
the union of what the contractions reach, never all tuples.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from weakref import WeakKeyDictionary

import torch
from torch import Tensor

from bellnet.backends.buffers import Share
from bellnet.backends.incidence import Incidence
from bellnet.plan import Contraction, ContractionTree, Permutation, StackStep
from bellnet.tensors.support import Support, encode, find
from bellnet.tensors.tracing import no_transforms

Move = tuple[str, tuple[int, ...]]


@dataclass(eq=False)
class Projection:
    """Distinct tuples over some axes, each a row of the tensors that live on them.

    Attributes:
        totals: For every axis the number of nodes, all graphs together.
        nodes: (axes, rows): the tuples, nodes numbered through all graphs.
        is_every: Whether it is every node, or every graph for no axes, in their order.
        n_rows: How many there are.
        graph_of_node: For all nodes of the first axis the number of their graph.
        memory: For large tensors that live on them.
    """

    totals: tuple[int, ...]
    nodes: Tensor
    is_every: bool
    n_rows: int
    graph_of_node: Tensor
    memory: Share = field(default_factory=Share, repr=False)
    _moves: "WeakKeyDictionary[Projection, dict[Move, Incidence]]" = field(
        default_factory=WeakKeyDictionary, repr=False
    )
    _lookups: "WeakKeyDictionary[Projection, dict[Permutation, Incidence | None]]" = field(
        default_factory=WeakKeyDictionary, repr=False
    )

    @cached_property
    def graphs(self) -> Tensor:
        """(rows,): the graph of every tuple."""
        return self.graph_of_node[self.nodes[0]] if self.totals else self.graph_of_node

    def moved(self, move: Move) -> tuple[list[Tensor], Tensor | None]:
        """The tuples with one axis less, row by row; and which they come from, None for all, which then may repeat."""
        kind, axes = move
        if kind == "copy":
            return list(self.nodes), None
        left = [row for axis, row in enumerate(self.nodes) if axis != axes[-1]]
        if kind == "sum":
            return left, None
        agree = (self.nodes[axes[0]] == self.nodes[axes[1]]).nonzero().flatten()
        return [row[agree] for row in left], agree

    def move(self, move: Move, onto: "Projection") -> Incidence:
        """Which tuples here belong to which tuple of the projection that the move leads to."""
        moves = self._moves.setdefault(onto, {})
        if move not in moves:
            moves[move] = self._move(move, onto)
        return moves[move]

    def _move(self, move: Move, onto: "Projection") -> Incidence:
        if move[0] == "copy" and self.is_like(onto):
            return Incidence.same(self.n_rows, self.nodes.device)
        tuples, agree = self.moved(move)
        whole = onto.find(tuples) if onto.totals else self.graphs
        if whole is self.graphs:  # a row of the index, while tables that kernels use have memory of their own
            whole = whole.clone()
        in_order = self.by_last_axis if onto.is_every and move == ("sum", (0,)) and len(tuples) == 1 else None
        if agree is not None:
            everywhere = torch.full((self.n_rows,), -1, device=whole.device)
            everywhere[agree] = whole
            whole = everywhere
        return Incidence(whole, onto.n_rows, in_order)

    def is_like(self, other: "Projection") -> bool:
        """Whether another one is known to have the same tuples in the same order."""
        return other is self or (self.is_every and other.is_every)

    def lookup(self, permutation: Permutation, wanted: "Projection") -> Incidence | None:
        """Where the tuples of another projection are found here, axes reordered; None if the rows are the same.

        Axis j of a wanted tuple is axis swap[j] of the tuple here.
        """
        lookups = self._lookups.setdefault(wanted, {})
        if permutation not in lookups:
            lookups[permutation] = self._lookup(permutation, wanted)
        return lookups[permutation]

    def _lookup(self, permutation: Permutation, wanted: "Projection") -> Incidence | None:
        straight = permutation == tuple(range(len(permutation)))
        if straight and self.is_like(wanted):
            return None
        assert self.totals  # every projection of rank 0 is every graph
        permuted = [wanted.nodes[permutation.index(axis)] for axis in range(len(permutation))]
        found = self.find(permuted, wanted.by_last_axis if permutation == (1, 0) else None)
        if straight and len(found) == self.n_rows and torch.equal(found, torch.arange(len(found), device=found.device)):
            return None
        return Incidence(found, self.n_rows)

    def find(self, tuples: Sequence[Tensor], in_order: Callable[[], Tensor] | None = None) -> Tensor:
        """In which row each tuple stands, -1 for one that is not here; `in_order` may know how they ascend."""
        if self.is_every:
            return tuples[0].clone()  # may be a row of the index, while tables that kernels use have their own memory
        wanted, here = encode([tuples, self.nodes], self.totals)
        return find(wanted, here, in_order)

    @cached_property
    def by_last_axis(self) -> Callable[[], Tensor]:
        """Finds, once, the order of the rows by their last nodes; of ascending pairs it is that of the swapped ones."""
        numbers = self.nodes[-1]

        def find() -> Tensor:
            with no_transforms():
                return numbers.argsort(stable=True)

        return cache(find)


class Projections:
    """The projections of all stacks of a tree over a support, and how to get from one to the next.

    Attributes:
        tree: The tree.
        stacks: For every stack the projection that its contractions live on.
        moves: For every stack and column which tuples of its parent belong to which of its own.
    """

    def __init__(self, supports: Sequence[Support], tree: ContractionTree) -> None:
        self.tree, self._n_listed = tree, [support.nnz for support in supports]
        roots = list(zip(supports, tree.roots, strict=True))
        self.stacks: list[Projection] = [_top(support, root.kept) for support, root in roots]
        by_sets: dict[tuple[int, ...], Projection] = {}
        self.moves: dict[tuple[int, int], Incidence] = {}
        for number, stack in enumerate(tree.stacks[len(roots) :], len(roots)):
            sets = stack.axis_sets
            if sets not in by_sets:  # parents come first, so all projections of higher rank are there
                alike = [branch for other in tree.stacks if other.axis_sets == sets for branch in other.steps]
                by_sets[sets] = _shadow(roots, sets, [(self.stacks[b.parent], _move(b)) for b in alike])
            self.stacks.append(by_sets[sets])
            for branch in stack.steps:
                incidence = self.stacks[branch.parent].move(_move(branch), self.stacks[-1])
                for column in range(branch.start, branch.start + branch.n_columns):
                    self.moves[number, column] = incidence
        self._counts = {
            node_set: support.counts.by_set[support.counts.key(name)]
            for support, root in roots
            for node_set, name in zip(root.sets, support.slots, strict=True)
        }
        self._factors: dict[tuple[bool, torch.dtype], tuple[Tensor | None, ...]] = {}

    @classmethod
    def on(cls, tree: ContractionTree, supports: Sequence[Support]) -> "Projections":
        """Those of a tree, kept with the supports."""
        first, *others = supports
        return first.cached_with(others, ("shadows", tree), lambda: cls(supports, tree))

    def memory(self) -> list[Share]:
        """For every whole tensor, if it is large."""
        return [projection.memory for projection in self.stacks[: len(self._n_listed)]]

    def factors(self, dtype: torch.dtype, *, listed: bool) -> tuple[Tensor | None, ...]:
        """For every stack (rows, columns, 1) what makes means of its sums: of all tuples, or of listed ones."""
        if (listed, dtype) not in self._factors:
            make = self.listed_factors if listed else self.dense_factors
            with no_transforms():
                found = [make(number) for number in range(len(self.stacks))]
                self._factors[listed, dtype] = tuple(
                    one if one is None else one.to(dtype).unsqueeze(-1) for one in found
                )
        return self._factors[listed, dtype]

    def dense_factors(self, number: int) -> Tensor | None:
        """(rows, columns): one over the number of tuples of nodes that each column sums; None for one everywhere."""
        contractions = self.tree.stacks[number].contractions
        if not any(contraction.dropped for contraction in contractions):
            return None
        graphs, columns = self.stacks[number].graphs, []
        for contraction in contractions:
            column = torch.ones(len(graphs), dtype=torch.float64, device=graphs.device)
            for node_set in contraction.dropped_sets:
                column = column / self._counts[node_set].clamp(min=1)[graphs]
            columns.append(column)
        return torch.stack(columns, 1)

    def listed_factors(self, number: int) -> Tensor | None:
        """(rows, columns): one over the number of stored entries that each column sums; one where it sums none."""
        if not any(contraction.dropped for contraction in self.tree.stacks[number].contractions):
            return None
        return 1 / self._listed_counts[number].clamp(min=1)

    @cached_property
    def _listed_counts(self) -> list[Tensor]:
        """For every stack (rows, columns): how many listed tuples each contraction sums."""
        device, n_roots = self.stacks[0].nodes.device, len(self._n_listed)
        counts = [torch.ones(n_listed, 1, dtype=torch.float64, device=device) for n_listed in self._n_listed]
        for number, stack in enumerate(self.tree.stacks[n_roots:], n_roots):
            columns = []
            for branch in stack.steps:
                for column in range(branch.n_columns):
                    above = counts[branch.parent][:, branch.parent_start + column]
                    columns.append(self.moves[number, branch.start + column].count(above))
            counts.append(torch.stack(columns, 1))
        return counts


def _move(branch: StackStep) -> Move:
    return branch.kind, branch.axes


def _top(support: Support, order: Permutation) -> Projection:
    """The listed tuples themselves, axes grouped by node set."""

    def make() -> Projection:
        totals = tuple(support.totals[slot] for slot in order)
        is_every = not totals or (len(totals) == 1 and support.nnz == totals[0])
        nodes = support.nodes if order == tuple(range(len(order))) else support.nodes[list(order)]
        graph_of_node = _graph_of_node(support, order[0]) if order else support.graphs
        return Projection(totals, nodes, is_every, support.nnz, graph_of_node)

    return support.cached(("top", order), make)


def _shadow(
    roots: Sequence[tuple[Support, Contraction]], sets: tuple[int, ...], moves: Iterable[tuple[Projection, Move]]
) -> Projection:
    """What these moves reach together; every node or graph where there is at most one axis."""
    slots = [
        next((support, root.sets.index(node_set)) for support, root in roots if node_set in root.sets)
        for node_set in sets
    ]
    totals = tuple(support.totals[slot] for support, slot in slots)
    if not sets:
        first = roots[0][0]
        return first.cached("every graph", lambda: _every_graph(first))
    support, slot = slots[0]
    if len(sets) == 1:
        return support.cached(("every node", slot), lambda: _every_node(support, slot))
    moves = frozenset(moves)
    (projection, (kind, _)), *others = moves
    if kind == "copy" and not others:
        return projection

    def union() -> Projection:
        tuples = torch.cat([torch.stack(projection.moved(move)[0]) for projection, move in moves], 1)
        codes, places = torch.unique(encode([tuples], totals)[0], return_inverse=True)
        nodes = tuples.new_empty(len(tuples), len(codes))
        nodes[:, places] = tuples
        return Projection(totals, nodes, False, len(codes), _graph_of_node(support, slot))

    # What was made of several supports is not kept with one of them.
    return support.cached(("union", moves), union) if len(roots) == 1 else union()


def _every_graph(support: Support) -> Projection:
    number = torch.arange(support.counts.n_graphs, device=support.index.device)
    return Projection((), number.new_empty(0, len(number)), True, len(number), number)


def _every_node(support: Support, slot: int) -> Projection:
    total, graphs = support.totals[slot], _graph_of_node(support, slot)
    nodes = torch.arange(total, device=support.index.device).unsqueeze(0)
    return Projection((total,), nodes, True, total, graphs)


def _graph_of_node(support: Support, slot: int) -> Tensor:
    """For every node of the set of a slot the number of its graph."""
    name = support.counts.key(support.slots[slot])
    return support.cached(("graphs", name), lambda: support.counts.graph_of_every_node(name))
