"""Supports: the sparsity patterns of sparse tensors, that is, the tuples of nodes that have stored entries.

A support has no values. What depends on it alone, such as the positions of the reversed pairs, is computed once and
cached there; so tensors that share a support share that work. Tuples are sorted and searched by their codes: one
integer for each tuple.
"""

from collections.abc import Callable, Hashable, Sequence
from typing import Any, TypeVar, cast
from weakref import WeakKeyDictionary

import torch
from torch import Tensor

from bellnet.errors import SupportError, type_name
from bellnet.spec import parse_shape
from bellnet.tensors.node_counts import NodeCounts
from bellnet.tensors.tracing import is_concrete, no_transforms

Made = TypeVar("Made")

LARGEST_CODE = 2**63 - 1

MANY = 2**15
"""From so many codes on a search sorts them first: searching in random order waits for memory twice as long."""


class Support:
    """Distinct tuples of nodes, in ascending order. `Sparse` makes and checks them; see there.

    Attributes:
        index: (order, n_tuples), or (1 + order, n_tuples) for a batch, with the number of the graph first.
        counts: The number of nodes of every node set in every graph.
        slots: The node set of every slot.
    """

    def __init__(self, index: Tensor, counts: NodeCounts, slots: tuple[str, ...]) -> None:
        self.index = index
        self.counts = counts
        self.slots = slots
        self._made: dict[Hashable, Any] = {}
        self._version = _version(index)

    @classmethod
    def checked(
        cls, call: str, index: object, counts: NodeCounts, shape: str | None, *, is_sorted: bool
    ) -> tuple["Support", Tensor | None]:
        """A support from what a caller gave, and in which order its tuples have to be taken; None for as they are."""
        _check_index(call, index, counts)
        assert isinstance(index, Tensor)
        index = _copied(index)  # kernels rely on what is checked here, so the caller must not share the memory
        slots = _slots(call, index, counts, shape)
        support = cls(index, counts, slots)
        support._check_range(call)
        codes = support.codes()
        if is_increasing(codes):
            return support, None
        order = codes.argsort()
        ascending = codes[order]
        if not is_increasing(ascending):
            place = int((ascending[1:] == ascending[:-1]).nonzero()[0])
            support._refuse_duplicates(call, order[place : place + 2])
        if is_sorted:
            place = int((codes[1:] < codes[:-1]).nonzero()[0])
            raise SupportError(
                f"{call}: is_sorted=True promises ascending tuples, but {support.show(place)} at place {place} comes "
                f"before {support.show(place + 1)} at place {place + 1}.\n"
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
        """How many nodes a tuple has."""
        return len(self.slots)

    @property
    def nnz(self) -> int:
        """How many tuples are listed."""
        return self.counts.n_graphs if not self.slots else self.index.shape[1]

    @property
    def is_named(self) -> bool:
        """Whether the node sets were given names; otherwise any names of a spec fit."""
        return self.counts.is_named

    @property
    def shape(self) -> str:
        """The node set of every slot, as it would be written in a spec."""
        return " ".join(self.slots)

    @property
    def graphs(self) -> Tensor:
        """(n_tuples,): the number of the graph of every tuple."""
        return self.cached("graph of every tuple", self._graphs)

    def _graphs(self) -> Tensor:
        if not self.slots:
            return torch.arange(self.nnz, device=self.index.device)
        return self.index[0] if self.counts.is_batch else torch.zeros_like(self.index[0])

    @property
    def nodes(self) -> Tensor:
        """(order, n_tuples): the tuples, with the nodes of all graphs numbered through."""
        return self.cached("nodes", self._nodes)

    def _nodes(self) -> Tensor:
        if not self.counts.is_batch:
            return self.index
        starts = [self.counts.starts[self.counts.key(name)][self.index[0]] for name in self.slots]
        return self.index[1:] + torch.stack(starts) if starts else self.index[1:]

    @property
    def totals(self) -> tuple[int, ...]:
        """For every slot the number of nodes in all graphs together."""
        return tuple(self.counts.totals[self.counts.key(name)] for name in self.slots)

    def codes(self) -> Tensor:
        """One number for each tuple, in the same order."""
        return encode([self.nodes], self.totals)[0]

    def places(self, nodes: Tensor) -> Tensor:
        """Where these tuples (order, n), numbered through, are listed; -1 for those that are not."""
        wanted, listed = encode([nodes, self.nodes], self.totals)
        return find(wanted, listed)

    def wanted(self, call: str, index: Tensor) -> "Support":
        """Tuples that a caller asks for, checked; they need neither be listed nor sorted nor distinct."""
        _check_index(call, index, self.counts)
        if len(index) != len(self.index):
            numbering = "the first row is the number of the graph, and nodes are numbered from 0 in every graph"
            raise SupportError(
                f"{call}: index has {len(index)} rows, but that of the tensor has {len(self.index)}."
                + f"\nThis is a batch: {numbering}." * self.counts.is_batch
            )
        if index.device != self.index.device:
            raise SupportError(f"{call}: index is on {index.device}, but the tensor is on {self.index.device}.")
        wanted = Support(index, self.counts, self.slots)
        wanted._check_range(call)
        return wanted

    def cached(self, key: Hashable, make: Callable[[], Made]) -> Made:
        """What depends on the support alone: made when it is first asked for, and kept."""
        if key not in self._made:
            self._check_memory()
            with no_transforms():
                self._made[key] = make()
        made: Made = self._made[key]
        return made

    def cached_with(self, others: Sequence["Support"], key: Hashable, make: Callable[[], Made]) -> Made:
        """What depends on this support and others: kept here as long as the others are there."""
        kept = self.cached("with others", _Kept)
        for other in others:
            kept = kept.further.setdefault(other, _Kept())
        if key not in kept.made:
            with no_transforms():
                kept.made[key] = make()
        made: Made = kept.made[key]
        return made

    def with_diagonal(self) -> tuple["Support", Tensor]:
        """This support and the tuples (v, v, ...) of every node v; and where the tuples of this one stand in it."""
        return self.cached("diagonal", self._with_diagonal)

    def _with_diagonal(self) -> tuple["Support", Tensor]:
        every = Support.every_node(self.counts, self.slots[0])
        diagonal = torch.cat([every.index[: len(self.index) - self.order], every.index[-1:].expand(self.order, -1)])
        both = torch.cat([self.index, diagonal], 1)
        union = Support(both, self.counts, self.slots)
        codes, places = torch.unique(union.codes(), return_inverse=True)
        index = both.new_empty(len(both), len(codes))
        index[:, places] = both
        return Support(index, self.counts, self.slots), places[: self.nnz]

    def to(self, device: torch.device | str) -> "Support":
        """The same on another device; tensors that share a support share it there too."""
        there = torch.empty(0, device=device).device
        if self.index.device == there:
            return self
        return self.cached(("to", there), lambda: Support(self.index.to(there), self.counts.to(there), self.slots))

    def show(self, place: int) -> str:
        """The tuple at a place, for messages."""
        numbers = self.index[:, place].tolist()
        if not self.counts.is_batch:
            return f"({', '.join(map(str, numbers))})"
        return f"({', '.join(map(str, numbers[1:]))}) of graph {numbers[0]}"

    def __reduce__(self) -> tuple[Any, ...]:
        # What is cached can be computed again; a copy or a pickle goes without it.
        return Support, (self.index, self.counts, self.slots)

    def _check_memory(self) -> None:
        """Refuse an index that was written to since it was checked."""
        version = _version(self.index)
        if None not in (version, self._version) and version != self._version:
            raise SupportError(
                "the index of a Sparse was changed in place after the Sparse was made.\n"
                "Leave x.support.index as it is, and make another one: Sparse(index, values, sizes)."
            )

    def _check_range(self, call: str) -> None:
        if not self.index.numel():
            return
        if self.counts.is_batch:
            wrong = (self.index[0] < 0) | (self.index[0] >= self.counts.n_graphs)
            if wrong.any():
                place = int(wrong.nonzero()[0])
                raise SupportError(
                    f"{call}: index[0, {place}] is graph {int(self.index[0, place])}, but sizes are given for "
                    f"{self.counts.n_graphs} graphs.\n"
                    "The first row of the index of a batch is the number of the graph; "
                    "for one graph give one number, sizes=4.\n"
                    "Edges that are numbered through all graphs are for "
                    "bellnet.data.sparse_inputs.from_edge_index(edge_index, batch=...)."
                )
        first = len(self.index) - self.order
        for slot, name in enumerate(self.slots):
            counts = self.counts.by_set[self.counts.key(name)]
            row, size = self.index[first + slot], counts[self.graphs]
            wrong = (row < 0) | (row >= size)
            if wrong.any():
                place = int(wrong.nonzero()[0])
                where = f" of graph {int(self.graphs[place])}" if self.counts.is_batch else ""
                raise SupportError(
                    f"{call}: index[{first + slot}, {place}] is node {int(row[place])}, but node set {name!r}{where} "
                    f"has {int(size[place])} nodes.\nNodes are numbered from 0 in every graph."
                )

    def _refuse_duplicates(self, call: str, places: Tensor) -> None:
        first, second = sorted(places.tolist())
        raise SupportError(
            f"{call}: the tuple {self.show(first)} is listed twice, at places {first} and {second}.\n"
            "A tuple has one value. Add up or choose among values of equal tuples first; from_edge_index, from_pyg and "
            'from_ratings of bellnet.data.sparse_inputs add up with duplicates="sum".'
        )


def _version(index: Tensor) -> int | None:
    """How often a tensor was written to, where torch counts it."""
    return index._version if is_concrete(index) and not index.is_inference() else None


def _copied(index: Tensor) -> Tensor:
    """A copy that only the support has, contiguous and outside of inference mode."""
    if not is_concrete(index):
        return index.clone()
    with no_transforms():
        return index.detach().clone(memory_format=torch.contiguous_format)


class _Kept:
    """What is kept with one support, and with it and others."""

    def __init__(self) -> None:
        self.made: dict[Hashable, Any] = {}
        self.further: WeakKeyDictionary[Support, _Kept] = WeakKeyDictionary()


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
    """One number for each tuple, in all lists alike, and in the order of the tuples.

    Args:
        lists: (r, tuples) integers each, or their rows if there are any.
        lengths: What each of the r entries stays below.

    >>> one, other = encode([torch.tensor([[0, 1], [2, 0]]), torch.tensor([[1], [0]])], (2, 3))
    >>> one, other
    (tensor([2, 3]), tensor([3]))
    """
    if not lengths:
        return [cast(Tensor, tuples).new_zeros(cast(Tensor, tuples).shape[1]) for tuples in lists]
    codes, most = [tuples[0] for tuples in lists], lengths[0]
    for place, length in enumerate(lengths[1:], 1):
        if most * length > LARGEST_CODE:
            # The numbers would not fit: beginnings that occur are numbered anew, which are at most as many as tuples.
            ranks = torch.unique(torch.cat(codes), return_inverse=True)[1]
            codes, most = list(ranks.split([len(one) for one in codes])), len(ranks)
        codes = [one * length + tuples[place] for one, tuples in zip(codes, lists, strict=True)]
        most *= length
    return codes


def is_increasing(codes: Tensor) -> bool:
    """Whether every number is larger than the one before."""
    return bool((codes[1:] > codes[:-1]).all())


def find(wanted: Tensor, codes: Tensor, in_order: Callable[[], Tensor] | None = None) -> Tensor:
    """For every wanted number its place among the codes, which are unique; -1 for one that is not there.

    Sorting takes longest: `in_order` may know in which order the wanted numbers ascend.
    """
    if not len(codes):
        return torch.full_like(wanted, -1)
    order = None
    if not is_increasing(codes):
        codes, order = codes.sort()
    if len(wanted) < MANY or is_increasing(wanted):
        return _find(wanted, codes, order)
    places = None if in_order is None else in_order()
    ascending = wanted if places is None else wanted[places]
    if places is None or not is_increasing(ascending):
        ascending, places = wanted.sort()
    return torch.empty_like(places).scatter_(0, places, _find(ascending, codes, order))


def _find(wanted: Tensor, codes: Tensor, order: Tensor | None) -> Tensor:
    if torch.equal(wanted, codes):
        return torch.arange(len(codes), device=codes.device) if order is None else order
    place = torch.searchsorted(codes, wanted).clamp_(max=len(codes) - 1)
    missing = codes[place] != wanted
    return (place if order is None else order[place]).masked_fill_(missing, -1)
