"""Sparse tensors: values of the stored entries, which are tuples of nodes; all other entries are zero."""

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor

from bellnet.errors import ShapeError, SizesError, SupportError, TensorError, count_of, type_name
from bellnet.spec import parse_shape
from bellnet.tensors.node_tensor import (
    ANY_SET,
    Key,
    NodeCounts,
    NodeSizes,
    NodeTensor,
    check_room_for,
    chosen_graphs,
    register_pytree,
    shown_sizes,
)
from bellnet.tensors.padded import Padded, zero_padded
from bellnet.tensors.support import Support
from bellnet.tensors.tracing import is_concrete

CALL = "Sparse(index, values, sizes)"


class Sparse(NodeTensor):
    """A sparse tensor over tuples of nodes: the values of its stored entries; all other entries are zero.

    A layer returns a `Sparse` for a `Sparse`, with the values that the dense layer computes at its stored entries.
    Entries are sorted by their tuples, so the values of a new `Sparse` may be in another order than the given ones;
    `at` looks them up by their tuples.

    `len` is the number of graphs of a batch, and an index selects some of them: `x[3]` is a single graph, `x[1:4]` and
    `x[torch.tensor([0, 2])]` are batches.

    Args:
        index: int64, one row for each slot and one column for each stored entry. For a batch of graphs there is a first
            row with the number of the graph. Nodes are numbered from 0 in every graph.
        values: (nnz, channels).
        sizes: The number of nodes: 5, or torch.tensor([5, 3]) for a batch of two graphs. With several node sets a dict
            with one entry for each.
        shape: The node set of every slot, for instance "u u i". It can be left out where sizes determine it: with one
            size for all slots, or with one name for each slot in their order.
        is_sorted: Promises that the tuples are in ascending order. Then the values are not copied.

    Attributes:
        support: The sparsity pattern. Tensors that share it share all that layers compute from it.
        values: (nnz, channels).

    >>> edges = Sparse(torch.tensor([[0, 1, 3], [1, 0, 2]]), torch.tensor([[1.0], [2.0], [3.0]]), sizes=4)
    >>> edges
    Sparse("n n", 3 tuples, 1 channel, sizes=4)
    >>> edges.at(torch.tensor([[1, 2], [0, 2]]))
    tensor([[2.],
            [0.]])
    """

    support: Support

    _what_values_are = "x.values is the tensor of the stored values, those of all graphs in a row"

    def __init__(
        self, index: Tensor, values: Tensor, sizes: NodeSizes, *, shape: str | None = None, is_sorted: bool = False
    ) -> None:
        if not isinstance(values, Tensor):
            raise TensorError(f"{CALL}: values must be a tensor, not {type_name(values)}.")
        device = getattr(index, "device", None)
        if isinstance(device, torch.device) and device != values.device:  # arrays have devices of another kind
            raise TensorError(
                f"{CALL}: index is on {index.device}, but values are on {values.device}.\n"
                f'Move one of them: index.to("{values.device}").'
            )
        counts = NodeCounts.parse(CALL, sizes, values.device)
        self.support, order = Support.checked(CALL, index, counts, shape, is_sorted=is_sorted)
        values = _checked_values(CALL, values, self.support)
        self._values = values if order is None else values[order]

    @classmethod
    def on(cls, support: "Support | Sparse", values: Tensor) -> "Sparse":
        """Values of the stored entries of a support, or of another `Sparse`, in their order."""
        sparse = object.__new__(cls)
        sparse.support = support.support if isinstance(support, Sparse) else support
        sparse._values = _checked_values("Sparse.on(support, values)", values, sparse.support)
        return sparse

    @classmethod
    def of_nodes(cls, values: Tensor, sizes: NodeSizes) -> "Sparse":
        """Features of every node: (nodes of all graphs one after the other, channels).

        Args:
            values: One row for each node.
            sizes: The number of nodes, for a batch of every graph.

        >>> Sparse.of_nodes(torch.randn(8, 2), sizes=torch.tensor([5, 3]))
        Sparse("n", 8 tuples, 2 channels, sizes=tensor([5, 3]))
        """
        call = "Sparse.of_nodes(values, sizes)"
        if not isinstance(values, Tensor):
            raise TensorError(f"{call}: values must be a tensor, not {type_name(values)}.")
        counts = NodeCounts.parse(call, sizes, values.device)
        if len(counts.by_set) > 1:
            raise SupportError(f"{call}: sizes has {len(counts.by_set)} node sets, but nodes are of one.")
        name = next(iter(counts.by_set))
        support = Support.every_node(counts, "n" if name == ANY_SET else name)
        return cls(support.index, _checked_values(call, values, support), sizes, is_sorted=True)

    @classmethod
    def from_dense(cls, x: Tensor | Padded, shape: str = "n n", *, keep_zeros: bool = False) -> "Sparse":
        """The entries of a dense tensor that are not zero in all channels.

        Args:
            x: (node axes, channels), or with one batch axis in front, as a tensor or `Padded`.
            shape: The node set of every node axis.
            keep_zeros: Whether to store the zeros, too.
        """
        call, slots = f'Sparse.from_dense(x, "{shape}")', parse_shape(shape)
        values = x.values if isinstance(x, Padded) else x
        if not isinstance(values, Tensor):
            raise TensorError(f"{call}: x must be a tensor or a Padded, not {type_name(values)}.")
        n_batch = values.ndim - len(slots) - 1
        if not slots or n_batch not in (0, 1):
            advice = "A tensor without node axes has no entries to store."
            if slots and n_batch < 0:
                advice = "A tensor without channels gets them from x.unsqueeze(-1)."
            raise ShapeError(
                f"{call}: x must have {len(slots)} node axes and channels, and at most one batch axis in front; "
                f"its shape is {tuple(values.shape)}.\n{advice}"
            )
        batch, lengths = values.shape[:n_batch], dict(zip(slots, values.shape[n_batch:-1], strict=True))
        for name, length in zip(slots, values.shape[n_batch:-1], strict=True):
            if length != lengths[name]:
                raise ShapeError(
                    f"{call}: the axes of node set {name!r} have lengths {length} and {lengths[name]}; the shape of x "
                    f'is {tuple(values.shape)}.\nIf they are different node sets, name them apart, as in "u i".'
                )
        counts = {name: torch.full(batch, length, device=values.device) for name, length in lengths.items()}
        stored = torch.ones(values.shape[:-1], dtype=torch.bool, device=values.device)
        if isinstance(x, Padded):
            counts = {name: x._per_graph(call, name, batch) for name in counts}
            stored = x.mask(shape)
        if not keep_zeros:
            stored &= (values != 0).any(-1)
        index = stored.nonzero().T.contiguous()
        sizes: NodeSizes = counts if len(counts) > 1 else next(iter(counts.values()))
        return cls(index, values[stored], sizes, shape=shape, is_sorted=True)

    @property
    def index(self) -> Tensor:
        """A copy of the index of the stored entries, in ascending order, one column for each."""
        return self.support.index.clone()

    @property
    def sizes(self) -> int | Tensor | dict[str, int | Tensor]:
        """A copy of the number of nodes, as it is given to `Sparse`."""
        counts = self.support.counts
        sizes: int | Tensor | dict[str, int | Tensor] = counts.each(torch.clone if counts.is_batch else int)
        return sizes

    @property
    def nnz(self) -> int:
        """The number of stored entries."""
        return self.support.nnz

    def with_values(self, values: Tensor) -> "Sparse":
        """Other values of the same stored entries, in the order of `index`."""
        return Sparse.on(self.support, values)

    def at(self, index: Tensor) -> Tensor:
        """The values at some tuples, in their order, zero for those that are not stored.

        Args:
            index: Tuples as in `Sparse`; they may repeat.
        """
        call = "Sparse.at(index)"
        positions = self.support.positions(self.support.checked_query(call, index).nodes)
        if not self.nnz:
            return self.values.new_zeros(index.shape[1], self.values.shape[1])
        found = self.values.index_select(0, positions.clamp(min=0))
        return found.masked_fill((positions < 0).unsqueeze(-1), 0)

    def with_diagonal(self) -> "Sparse":
        """The same tensor with stored entries at all tuples (v, v, ...), for features of nodes.

        New entries are zero. For tensors that share a support the results share one, too.
        """
        if len(set(self.support.slots)) != 1:
            raise SupportError(
                f'Sparse.with_diagonal(): "{self.support.shape}" has slots of different node sets and so no diagonal.'
            )
        support, positions = self.support.with_diagonal()
        values = self.values.new_zeros(support.nnz, self.values.shape[1]).index_copy(0, positions, self.values)
        return Sparse.on(support, values)

    def _moved(self, values: Tensor, *, non_blocking: bool) -> "Sparse":
        return Sparse.on(self.support.to(values.device), values)

    def pin_memory(self) -> "Sparse":
        """A copy with values in memory that a GPU can read directly; the support is shared."""
        return Sparse.on(self.support, self.values.pin_memory())

    def _check_same_nodes(self, other: "Sparse", call: str) -> None:
        own, given = self.support, other.support
        if own is given:
            return
        alike = own.slots == given.slots and own.counts.by_set.keys() == given.counts.by_set.keys()
        if alike and not own.counts.equals(given.counts):
            raise SizesError(f"{call}: their graphs differ in size.\nBoth must come from the same graphs.")
        if not alike or not torch.equal(own.index, given.index):
            raise SupportError(
                f"{call}: their stored entries differ.\nBring one to the support of the other: "
                "Sparse.on(x, y.at(x.index)) has the values of y, and zeros, at the stored entries of x."
            )

    def to_dense(self, *, max_gigabytes: float | None = None) -> Tensor:
        """(*batch, node axes, channels), for graphs of one size; graphs of different sizes need `to_padded`.

        Args:
            max_gigabytes: The largest allowed size; the memory of the machine if None.
        """
        if None in self.support.counts.only(self.support.slots).common.values() and self.support.counts.n_graphs:
            raise SupportError(
                "Sparse.to_dense(): the graphs of this batch differ in size.\nUse x.to_padded(), or x.unpack()."
            )
        return self._filled("Sparse.to_dense()", max_gigabytes)

    def to_padded(self, *, max_gigabytes: float | None = None) -> Padded:
        """The batch as a `Padded`, with zeros where no entry is stored.

        Args:
            max_gigabytes: The largest allowed size; the memory of the machine if None.
        """
        counts = self.support.counts
        if not counts.is_batch:
            raise SupportError("Sparse.to_padded(): this is one graph and not a batch.\nUse x.to_dense().")
        names = tuple(dict.fromkeys(self.support.slots))
        sizes = {name: counts.by_set[counts.key(name)] for name in names}
        values = self._filled("Sparse.to_padded()", max_gigabytes)
        return zero_padded(values, sizes if len(names) > 1 else sizes[names[0]], self.support.slots)

    def _filled(self, call: str = "Sparse", max_gigabytes: float | None = None) -> Tensor:
        counts = self.support.counts
        longest = [counts.by_set[counts.key(name)] for name in self.support.slots]
        lengths = [int(one.max()) if len(one) else 0 for one in longest]
        batch = [counts.n_graphs] if counts.is_batch else []
        shape = (*batch, *lengths, self.values.shape[1])
        check_room_for(call, shape, self.values.dtype, max_gigabytes)
        dense = self.values.new_zeros(shape)
        return dense.index_put(tuple(self.support.index), self.values)

    @staticmethod
    def pack(graphs: Iterable["Sparse"]) -> "Sparse":
        """Put graphs, none of them a batch, into one batch."""
        several = list(graphs)
        if not several:
            raise SupportError("Sparse.pack(graphs): there is no graph.")
        first, values = several[0].support, several[0].values
        for number, graph in enumerate(several):
            call = f"Sparse.pack(graphs): graphs[{number}]"
            if not isinstance(graph, Sparse):
                raise TensorError(f"{call} must be a Sparse, not {type_name(graph)}.")
            if graph.device != values.device:
                raise TensorError(f"{call} is on {graph.device}, but graphs[0] is on {values.device}.")
            if graph.channels != values.shape[1]:
                raise ShapeError(f"{call} has {graph.channels} channels, but graphs[0] has {values.shape[1]}.")
            same = graph.support.slots == first.slots and graph.support.counts.is_named == first.counts.is_named
            if graph.support.counts.is_batch or not same:
                what = "is a batch" if graph.support.counts.is_batch else f'has the shape "{graph.support.shape}"'
                raise SupportError(f'{call} {what}; all must be single graphs of one shape, here "{first.shape}".')
        counts = NodeCounts(
            {name: torch.cat([one.support.counts.by_set[name] for one in several]) for name in first.counts.by_set},
            is_batch=True,
        )
        nnz = torch.tensor([one.nnz for one in several], device=first.index.device)
        graphs_of = torch.repeat_interleave(torch.arange(len(several), device=first.index.device), nnz)
        index = torch.cat([graphs_of.unsqueeze(0), torch.cat([one.index for one in several], 1)])
        return Sparse.on(Support(index, counts, first.slots), torch.cat([one.values for one in several]))

    def _n_graphs(self) -> int | None:
        return self.support.counts.n_graphs if self.support.counts.is_batch else None

    def __getitem__(self, key: Key) -> "Sparse":
        chosen = chosen_graphs(self, key)
        graphs, is_batch = chosen.reshape(-1), chosen.ndim == 1
        lengths = self.support.entries_per_graph
        starts, lengths = (lengths.cumsum(0) - lengths)[graphs], lengths[graphs]
        number = torch.repeat_interleave(torch.arange(len(graphs), device=self.device), lengths)
        within = torch.arange(len(number), device=self.device) - (lengths.cumsum(0) - lengths)[number]
        positions = starts[number] + within
        index = self.support.index[1:, positions]
        counts = self.support.counts.map(lambda sizes: sizes[graphs], is_batch=is_batch)
        part = Support(torch.cat([number.unsqueeze(0), index]) if is_batch else index, counts, self.support.slots)
        return Sparse.on(part, self.values.index_select(0, positions))

    def unpack(self) -> list["Sparse"]:
        """The graphs of a batch one by one."""
        support = self.support
        if not support.counts.is_batch:
            return [self]
        lengths = support.entries_per_graph.tolist()
        parts = zip(torch.split(support.index[1:], lengths, 1), torch.split(self.values, lengths), strict=True)
        graphs = []
        for number, (index, values) in enumerate(parts):
            own = {name: one[number : number + 1] for name, one in support.counts.by_set.items()}
            graphs.append(Sparse.on(Support(index, NodeCounts(own, is_batch=False), support.slots), values))
        return graphs

    def __repr__(self) -> str:
        return (
            f'Sparse("{self.support.shape}", {count_of(self.nnz, "tuple")}, {count_of(self.channels, "channel")}, '
            f"sizes={shown_sizes(self.sizes)})"
        )


def _checked_values(call: str, values: Tensor, support: Support) -> Tensor:
    if not isinstance(values, Tensor):
        raise TensorError(f"{call}: values must be a tensor, not {type_name(values)}.")
    if values.device != support.index.device:
        raise TensorError(f"{call}: the support is on {support.index.device}, but values are on {values.device}.")
    if values.ndim == 2 and len(values) == support.nnz:
        return values
    advice = "\nValues without channels get them from values.unsqueeze(-1)." if values.ndim == 1 else ""
    if values.ndim == 2 and len(values) == len(support.index):
        advice = "\nAn index has one row for each slot and one column for each tuple; this one looks like index.T."
    raise ShapeError(
        f"{call}: values must have one row of channels for each of the {support.nnz} tuples; their shape is "
        f"{tuple(values.shape)}.{advice}"
    )


def _flatten(sparse: Sparse) -> tuple[list[Tensor], Support]:
    return [sparse.values, sparse.support.index, *sparse.support.counts.by_set.values()], sparse.support


def _unflatten(children: Iterable[Any], support: Support) -> Sparse:
    values, index, *counts = children
    sparse = object.__new__(Sparse)
    sparse._values, sparse.support = values, support
    own = [support.index, *support.counts.by_set.values()]
    if all(one is other for one, other in zip(own, (index, *counts), strict=True)) or not isinstance(index, Tensor):
        return sparse
    by_set = dict(zip(support.counts.by_set, counts, strict=True))
    if not is_concrete(index) or not all(isinstance(one, Tensor) and is_concrete(one) for one in counts):
        sparse.support = Support(index, NodeCounts(by_set, is_batch=support.counts.is_batch), support.slots)
        return sparse
    # A function was mapped over the tensors, so nothing is known of the results.
    sizes = {name: one if support.counts.is_batch else one.sum() for name, one in by_set.items()}
    numbers = NodeCounts.parse(CALL, sizes, index.device)
    sparse.support, order = Support.checked(CALL, index, numbers, support.shape, is_sorted=False)
    if isinstance(values, Tensor) and is_concrete(values):
        values = _checked_values(CALL, values, sparse.support)
        sparse._values = values if order is None else values[order]
    return sparse


register_pytree(Sparse, _flatten, _unflatten)
