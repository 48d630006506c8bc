"""Supports: the sparsity patterns of sparse tensors, that is, the tuples of nodes that have stored entries.

What depends on a support alone, such as the positions of the reversed pairs, is cached there, and shared by all tensors
with this support. Tuples are sorted and searched by their codes: one integer for each tuple.
"""

from collections.abc import Callable, Hashable, Sequence
from typing import Any, cast

import torch
from torch import Tensor

from bellnet.errors import SupportError, type_name
from bellnet.spec import parse_shape
from bellnet.tensors.node_tensor import NodeCounts
from bellnet.tensors.tracing import Cached, Made, is_concrete, no_transforms

LARGEST_CODE = 2**63 - 1

MANY = 2**15
"""From so many codes on a search sorts them first: searching in random order waits for memory twice as long."""


class Support(Cached):
    """Distinct tuples of nodes, in ascending order. `Sparse` makes and checks them; see there.

    Attributes:
        index: (order, nnz), or (1 + order, nnz) for a batch, with the number of the graph first.
        counts: The number of nodes of every node set in every graph.
        slots: The node set of every slot.
    """

    def __init__(self, index: Tensor, counts: NodeCounts, slots: tuple[str, ...]) -> None:
        self.index = index
        self.counts = counts
        self.slots = slots
        self._version = _version(index)

    @classmethod
    def checked(
        cls, call: str, index: object, counts: NodeCounts, shape: str | None, *, is_sorted: bool
    ) -> tuple["Support", Tensor | None]:
        """A support from an unchecked index, and the order that sorts its tuples; None if they are sorted."""
        _check_index(call, index, counts)
        assert isinstance(index, Tensor)
        index = _copied(index)  # kernels rely on these checks, so the caller must not share the memory
        slots = _slots(call, index, counts, shape)
        support = cls(index, counts, slots)
        support._check_range(call)
        codes = support.codes()
        if is_increasing(codes):
            return support, None
        order = codes.argsort()
        ascending = codes[order]
        if not is_increasing(ascending):
            position = int((ascending[1:] == ascending[:-1]).nonzero()[0])
            first, second = sorted(order[position : position + 2].tolist())
            raise SupportError(
                f"{call}: the tuple {support.show(first)} occurs twice, at positions {first} and {second}.\n"
                "A tuple has one value. Add up or choose among values of equal tuples first; from_edge_index, from_pyg "
                'and from_ratings of bellnet.data.sparse_inputs add up with duplicates="sum".'
            )
        if is_sorted:
            position = int((codes[1:] < codes[:-1]).nonzero()[0])
            raise SupportError(
                f"{call}: is_sorted=True promises ascending tuples, but {support.show(position)} at position "
                f"{position} comes before {support.show(position + 1)} at position {position + 1}.\n"
                "Leave out is_sorted, and tuples and values are sorted for you."
            )
        with no_transforms():
            return cls(index[:, order], counts, slots), order

    @classmethod
    def every_node(cls, counts: NodeCounts, name: str) -> "Support":
        """All nodes of one node set."""
        graphs = counts.graph_of_every_node(counts.key(name))
        within = torch.arange(len(graphs), device=graphs.device) - counts.starts[counts.key(name)][graphs]
        return cls(torch.stack([graphs, within] if counts.is_batch else [within]), counts.only((name,)), (name,))

    @classmethod
    def every_graph(cls, counts: NodeCounts) -> "Support":
        """The one tuple of length 0 of every graph."""
        device = next(iter(counts.by_set.values())).device
        index = torch.arange(counts.n_graphs, device=device).unsqueeze(0)
        return cls(index if counts.is_batch else index[:0], counts, ())

    @property
    def order(self) -> int:
        """The number of nodes of a tuple."""
        return len(self.slots)

    @property
    def nnz(self) -> int:
        """The number of stored entries."""
        return self.counts.n_graphs if not self.slots else self.index.shape[1]

    @property
    def shape(self) -> str:
        """The node set of every slot, as in a spec."""
        return " ".join(self.slots)

    @property
    def graphs(self) -> Tensor:
        """(nnz,): the number of the graph of every tuple."""
        if not self.slots:
            return self.cached("graphs", lambda: torch.arange(self.nnz, device=self.index.device))
        return self.index[0] if self.counts.is_batch else self.cached("graphs", lambda: torch.zeros_like(self.index[0]))

    @property
    def nodes(self) -> Tensor:
        """(order, nnz): the tuples, with nodes numbered across all graphs."""
        if not self.counts.is_batch or not self.slots:
            return self.index[len(self.index) - self.order :]
        starts = self.counts.starts
        return self.cached(
            "nodes", lambda: self.index[1:] + torch.stack([starts[key][self.index[0]] for key in self._keys])
        )

    @property
    def _keys(self) -> list[str]:
        """For every slot the key of its node set in `counts`."""
        return [self.counts.key(name) for name in self.slots]

    @property
    def totals(self) -> tuple[int, ...]:
        """For every slot the number of nodes in all graphs together."""
        return tuple(self.counts.totals[key] for key in self._keys)

    def codes(self) -> Tensor:
        """One integer for each tuple, in the same order."""
        return encode([self.nodes], self.totals)[0]

    def positions(self, nodes: Tensor) -> Tensor:
        """The positions of tuples (order, n) of nodes numbered across all graphs; -1 for those that are not stored."""
        wanted, stored = encode([nodes, self.nodes], self.totals)
        return find(wanted, stored)

    @property
    def entries_per_graph(self) -> Tensor:
        """(n_graphs,): the number of stored entries of every graph."""
        return self.cached("entries per graph", lambda: torch.bincount(self.graphs, minlength=self.counts.n_graphs))

    def checked_query(self, call: str, index: Tensor) -> "Support":
        """Tuples to look up, checked; they need not be stored, sorted or distinct."""
        _check_index(call, index, self.counts)
        if len(index) != len(self.index):
            numbering = "the first row is the number of the graph, and nodes are numbered from 0 in every graph"
            raise SupportError(
                f"{call}: index has {len(index)} rows, but that of the tensor has {len(self.index)}."
                + f"\nThis is a batch: {numbering}." * self.counts.is_batch
            )
        if index.device != self.index.device:
            raise SupportError(f"{call}: index is on {index.device}, but the tensor is on {self.index.device}.")
        query = Support(index, self.counts, self.slots)
        query._check_range(call)
        return query

    def cached(self, key: Hashable, make: Callable[[], Made]) -> Made:
        """A result that depends on the support alone, computed once; an index that was changed since is refused."""

        def make_checked() -> Made:
            version = _version(self.index)
            if None not in (version, self._version) and version != self._version:
                raise SupportError(
                    "the index of a Sparse was changed in place after the Sparse was made.\n"
                    "Leave x.support.index as it is, and make another one: Sparse(index, values, sizes)."
                )
            return make()

        return super().cached(key, make_checked)

    def with_diagonal(self) -> tuple["Support", Tensor]:
        """This support with the tuples (v, v, ...) of every node v; and the positions of its own tuples there."""
        return self.cached("diagonal", self._with_diagonal)

    def _with_diagonal(self) -> tuple["Support", Tensor]:
        every = Support.every_node(self.counts, self.slots[0])
        diagonal = torch.cat([every.index[: len(self.index) - self.order], every.index[-1:].expand(self.order, -1)])
        both = torch.cat([self.index, diagonal], 1)
        union = Support(both, self.counts, self.slots)
        codes, positions = torch.unique(union.codes(), return_inverse=True)
        index = both.new_empty(len(both), len(codes))
        index[:, positions] = both
        return Support(index, self.counts, self.slots), positions[: self.nnz]

    def to(self, device: torch.device | str) -> "Support":
        """The same on another device; tensors that share a support share it there too."""
        there = torch.empty(0, device=device).device
        if self.index.device == there:
            return self
        return self.cached(
            ("to", there), lambda: Support(self.index.to(there), self.counts.map(lambda one: one.to(there)), self.slots)
        )

    def show(self, position: int) -> str:
        """The tuple at a position, for messages."""
        numbers = self.index[:, position].tolist()
        if not self.counts.is_batch:
            return f"({', '.join(map(str, numbers))})"
        return f"({', '.join(map(str, numbers[1:]))}) of graph {numbers[0]}"

    def __reduce__(self) -> tuple[Any, ...]:
        return Support, (self.index, self.counts, self.slots)

    def _check_range(self, call: str) -> None:
        if not self.index.numel():
            return
        if self.counts.is_batch:
            wrong = (self.index[0] < 0) | (self.index[0] >= self.counts.n_graphs)
            if wrong.any():
                position = int(wrong.nonzero()[0])
                raise SupportError(
                    f"{call}: index[0, {position}] is graph {int(self.index[0, position])}, but sizes are given for "
                    f"{self.counts.n_graphs} graphs.\n"
                    "The first row of the index of a batch is the number of the graph; "
                    "for one graph give one number, sizes=4.\n"
                    "Edges that are numbered through all graphs are for "
                    "bellnet.data.sparse_inputs.from_edge_index(edge_index, batch=...)."
                )
        first = len(self.index) - self.order
        for slot, name in enumerate(self.slots):
            row, size = self.index[first + slot], self.counts.by_set[self.counts.key(name)][self.graphs]
            wrong = (row < 0) | (row >= size)
            if wrong.any():
                position = int(wrong.nonzero()[0])
                where = f" of graph {int(self.graphs[position])}" if self.counts.is_batch else ""
                raise SupportError(
                    f"{call}: index[{first + slot}, {position}] is node {int(row[position])}, but node set "
                    f"{name!r}{where} has {int(size[position])} nodes.\nNodes are numbered from 0 in every graph."
                )


def _version(index: Tensor) -> int | None:
    """The number of in-place changes of a tensor, where torch counts them."""
    return index._version if is_concrete(index) and not index.is_inference() else None


def _copied(index: Tensor) -> Tensor:
    """A contiguous copy for the support alone, outside of inference mode."""
    if not is_concrete(index):
        return index.clone()
    with no_transforms():
        return index.detach().clone(memory_format=torch.contiguous_format)


def _check_index(call: str, index: object, counts: NodeCounts) -> None:
    rows = "the number of the graph and one row for each slot" if counts.is_batch else "one row for each slot"
    if not isinstance(index, Tensor):
        raise SupportError(f"{call}: index must be an int64 tensor, not {type_name(index)}.")
    if index.dtype != torch.int64:
        raise SupportError(f"{call}: index must be int64, not {index.dtype}.\nConvert it: index.to(torch.int64).")
    if index.ndim != 2 or len(index) <= counts.is_batch:
        raise SupportError(
            f"{call}: index must have two axes, {rows}, and one column for each tuple; its shape is "
            f"{tuple(index.shape)}."
        )


def _slots(call: str, index: Tensor, counts: NodeCounts, shape: str | None) -> tuple[str, ...]:
    order = len(index) - counts.is_batch
    names = tuple(counts.by_set)
    if shape is not None:
        slots = parse_shape(shape)
        if len(slots) != order:
            graph = " after the number of the graph" if counts.is_batch else ""
            raise SupportError(
                f'{call}: shape="{shape}" has {len(slots)} slots, but the index has {order} rows{graph}.'
            )
        if missing := [name for name in slots if counts.of(name) is None]:
            raise SupportError(f'{call}: shape="{shape}" has node set {missing[0]!r}, but sizes has no entry for it.')
        return slots
    if not counts.is_named:
        return ("n",) * order
    if len(names) == 1:
        return names * order
    if len(names) == order:
        return names
    raise SupportError(
        f"{call}: which slot runs over which node set? sizes names {', '.join(map(repr, names))}, and the index has "
        f'{order} slots.\nPass the shape as well: shape="{" ".join((names * order)[:order])}".'
    )


def encode(lists: Sequence[Sequence[Tensor] | Tensor], lengths: Sequence[int]) -> list[Tensor]:
    """One integer for each tuple of lists (r, tuples), the same in all lists, ascending in the order of the tuples.

    `lengths` has for each of the r entries a number above all of its values.

    >>> one, other = encode([torch.tensor([[0, 1], [2, 0]]), torch.tensor([[1], [0]])], (2, 3))
    >>> one, other
    (tensor([2, 3]), tensor([3]))
    """
    if not lengths:
        return [cast(Tensor, tuples).new_zeros(cast(Tensor, tuples).shape[1]) for tuples in lists]
    codes, most = [tuples[0] for tuples in lists], lengths[0]
    for row, length in enumerate(lengths[1:], 1):
        if most * length > LARGEST_CODE:
            # The codes would overflow: the prefixes that occur, at most as many as tuples, get new codes.
            ranks = torch.unique(torch.cat(codes), return_inverse=True)[1]
            codes, most = list(ranks.split([len(one) for one in codes])), len(ranks)
        codes = [one * length + tuples[row] for one, tuples in zip(codes, lists, strict=True)]
        most *= length
    return codes


def is_increasing(codes: Tensor) -> bool:
    """Whether the codes are strictly increasing."""
    return bool((codes[1:] > codes[:-1]).all())


def find(wanted: Tensor, codes: Tensor, in_order: Callable[[], Tensor] | None = None) -> Tensor:
    """The position of every wanted code among the codes, which are unique; -1 for one that is missing.

    Sorting takes longest: `in_order` may return an order in which the wanted codes ascend.
    """
    if not len(codes):
        return torch.full_like(wanted, -1)
    order = None
    if not is_increasing(codes):
        codes, order = codes.sort()
    if len(wanted) < MANY or is_increasing(wanted):
        return _find(wanted, codes, order)
    ascent = None if in_order is None else in_order()
    ascending = wanted if ascent is None else wanted[ascent]
    if ascent is None or not is_increasing(ascending):
        ascending, ascent = wanted.sort()
    return torch.empty_like(ascent).scatter_(0, ascent, _find(ascending, codes, order))


def _find(wanted: Tensor, codes: Tensor, order: Tensor | None) -> Tensor:
    if torch.equal(wanted, codes):
        return torch.arange(len(codes), device=codes.device) if order is None else order
    position = torch.searchsorted(codes, wanted).clamp_(max=len(codes) - 1)
    missing = codes[position] != wanted
    return (position if order is None else order[position]).masked_fill_(missing, -1)
