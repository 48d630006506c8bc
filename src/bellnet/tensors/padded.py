"""Graphs of different sizes in one tensor: padded values, and the number of nodes of every graph."""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from bellnet.errors import ShapeError, SizesError, TensorError, type_name
from bellnet.spec import parse_shape
from bellnet.tensors.node_tensor import (
    ANY_SET,
    Key,
    NodeCounts,
    NodeTensor,
    by_name,
    chosen_graphs,
    parse_counts,
    register_pytree,
    shown_sizes,
)
from bellnet.tensors.tracing import Made, is_concrete, transforms_active

Sizes = Tensor | Mapping[str, Tensor]


class Padded(NodeTensor):
    """Graphs of different sizes in one tensor: values padded to a common length, and the true sizes.

    Layers ignore all values outside the true sizes, whatever they are, and return exactly zero there. A layer does not
    repeat that for the output of another layer, unless `values` was changed in place since. As for autograd, changes
    through `Tensor.data` or a NumPy array are not noticed; pass such values to a new `Padded`.

    `len` is the number of graphs, and an index selects some of them: `x[3]`, `x[1:4]` or `x[torch.tensor([0, 2])]`.

    Args:
        values: (*batch, node axes, channels).
        sizes: The number of nodes of every graph: integers of shape (*batch), or for several node sets a dict with
            such a tensor for each.

    >>> graphs = Padded(torch.ones(2, 3, 3, 1), torch.tensor([3, 1]))
    >>> [graph.shape for graph in graphs.unpack("n n")]
    [torch.Size([3, 3, 1]), torch.Size([1, 1, 1])]
    >>> len(graphs), graphs[:1].sizes
    (2, tensor([3]))
    """

    __slots__ = ("__weakref__", "_counts", "_zero_axes", "_zero_version")

    _what_values_are = "x.values is the tensor, padding included"

    def __init__(self, values: Tensor, sizes: Sizes) -> None:
        if not isinstance(values, Tensor):
            raise TensorError(f"Padded(values, sizes): values must be a tensor, not {type_name(values)}.")
        counts = {name: _checked_sizes(name, size, values) for name, size in by_name(sizes).items()}
        self._set(values, NodeCounts(counts, is_batch=True))

    def _set(self, values: Tensor, counts: NodeCounts, zero_axes: tuple[str, ...] | None = None) -> None:
        # The sizes never change, and every Padded with the same ones shares what is cached for them.
        self._values, self._counts = values, counts
        # The node sets of the axes outside of whose sizes the values are zero. Compiled code fuses masking with other
        # work; transforms and inference mode do not count in-place changes.
        is_counted = zero_axes is not None and not transforms_active() and not values.is_inference()
        self._zero_axes = zero_axes if is_counted else None
        self._zero_version = values._version if is_counted else 0

    @classmethod
    def _unchecked(cls, values: Tensor, counts: NodeCounts, zero_axes: tuple[str, ...] | None = None) -> "Padded":
        padded = object.__new__(cls)
        padded._set(values, counts, zero_axes)
        return padded

    def _axes_of_zeros(self) -> tuple[str, ...] | None:
        """The node sets of the axes outside of whose sizes the values are known to be zero."""
        if self._zero_axes is None or torch.compiler.is_compiling():
            return None
        return self._zero_axes if self._values._version == self._zero_version else None

    @property
    def sizes(self) -> Sizes:
        """A copy of the number of nodes of every graph, or of every node set and graph."""
        sizes: Sizes = self._counts.each(torch.clone)
        return sizes

    def sizes_of(self, name: str) -> Tensor | None:
        """A copy of the sizes of one node set, or None where there are sizes for other node sets only."""
        sizes = self._counts.of(name)
        return None if sizes is None else sizes.clone()

    @property
    def shape(self) -> torch.Size:
        """(*batch, node axes, channels)."""
        return self._values.shape

    def mask(self, shape: str | None = None) -> Tensor:
        """(*batch, node axes): True for the entries of the graphs, False for the padding.

        Args:
            shape: The node set of every node axis, "u i" for instance. It can be left out with one node set, or with as
                many node sets as node axes, in the same order.

        >>> Padded(torch.zeros(2, 3, 1), torch.tensor([3, 1])).mask()
        tensor([[ True,  True,  True],
                [ True, False, False]])
        """
        by_set = self._counts.by_set
        if shape is None:
            n_axes = self._values.ndim - 1 - max((sizes.ndim for sizes in by_set.values()), default=0)
            axes = tuple(by_set) * n_axes if len(by_set) == 1 else tuple(by_set)
            if len(axes) != n_axes:
                raise ShapeError(
                    f"Padded.mask(): {n_axes} node axes, but sizes of the {len(by_set)} node sets "
                    f'{", ".join(map(repr, by_set))}.\nPass the shape, the node set of every axis: x.mask("u i u").'
                )
        else:
            axes = parse_shape(shape)
        call = "Padded.mask()" if shape is None else f'Padded.mask("{shape}")'
        batch = self._values.shape[: self._n_batch(call, axes)]
        mask = torch.ones(self._values.shape[:-1], dtype=torch.bool, device=self.device)
        for axis, name in enumerate(axes, len(batch)):
            inside = torch.arange(mask.shape[axis], device=self.device) < self._per_graph(call, name, batch)[..., None]
            around = [1] * (mask.ndim - len(batch))
            around[axis - len(batch)] = mask.shape[axis]
            mask = mask & inside.reshape(*batch, *around)
        return mask

    def _n_graphs(self) -> int | None:
        return self.shape[0] if any(sizes.ndim for sizes in self._counts.by_set.values()) else None

    def __getitem__(self, key: Key) -> "Padded":
        chosen_graphs(self, key)
        counts = self._counts.map(lambda sizes: sizes[key] if sizes.ndim else sizes)
        return Padded._unchecked(self._values[key], counts, self._axes_of_zeros())

    def _moved(self, values: Tensor, *, non_blocking: bool) -> "Padded":
        if values.device == self.device:
            return self._combined_with([], values, keeps_zeros=True)
        counts = self._counts.map(lambda sizes: sizes.to(values.device, non_blocking=non_blocking))
        return Padded._unchecked(values, counts)

    def pin_memory(self) -> "Padded":
        """A copy in memory that a GPU can read directly."""
        return Padded._unchecked(self._values.pin_memory(), self._counts.map(Tensor.pin_memory))

    def _check_same_nodes(self, other: "Padded", call: str) -> None:
        own, given = self._counts, other._counts
        if own is not given and is_concrete(self._values) and not own.equals(given):
            raise SizesError(f"{call}: their graphs differ in size.\nBoth must come from the same graphs.")
        if self._values.shape[:-1] != other._values.shape[:-1]:
            raise ShapeError(
                f"{call}: their values have shapes {tuple(self._values.shape)} and {tuple(other._values.shape)}."
            )

    def _combined_with(self, others: Sequence[object], values: Tensor, *, keeps_zeros: bool) -> "Padded":
        axes = self._axes_of_zeros()
        if not keeps_zeros or any(isinstance(other, Padded) and other._axes_of_zeros() != axes for other in others):
            axes = None
        return Padded._unchecked(values, self._counts, axes)

    def with_values(self, values: Tensor) -> "Padded":
        """Other values for the same graphs."""
        if values.shape[:-1] != self._values.shape[:-1] or values.device != self._values.device:
            return Padded(values, self.sizes)
        return Padded._unchecked(values, self._counts)

    @staticmethod
    def pack(graphs: Iterable[Tensor], shape: str = "n n") -> "Padded":
        """Pad tensors (node axes, channels) of different sizes to one length and stack them.

        Args:
            graphs: One tensor for each graph.
            shape: The node set of every node axis.
        """
        axes, tensors = parse_shape(shape), list(graphs)
        if not tensors:
            raise SizesError("Padded.pack(graphs): there is no graph.")
        for number, tensor in enumerate(tensors):
            _check_graph(tensor, axes, number, tensors[0])
        names = tuple(dict.fromkeys(axes))
        sizes = {name: [tensor.shape[axes.index(name)] for tensor in tensors] for name in names}
        longest = [max(sizes[name]) for name in axes]
        padded = []
        for tensor in tensors:
            missing = [(0, length - own) for length, own in zip(longest, tensor.shape, strict=False)]
            padded.append(torch.nn.functional.pad(tensor, [0, 0, *(end for pair in reversed(missing) for end in pair)]))
        values = torch.stack(padded)
        counts = {name: torch.tensor(sizes[name], device=values.device) for name in names}
        return zero_padded(values, counts[names[0]] if len(names) == 1 else counts, axes)

    def unpack(self, shape: str = "n n") -> list[Tensor]:
        """The graphs one by one, without padding, in the order of the flattened batch axes."""
        axes, call = parse_shape(shape), f'Padded.unpack("{shape}")'
        n_batch = self._n_batch(call, axes)
        batch = self._values.shape[:n_batch]
        flat = self._values.reshape(batch.numel(), *self._values.shape[n_batch:])
        counts = []
        for axis, name in enumerate(axes, n_batch):
            every: list[int] = self._per_graph(call, name, batch).flatten().tolist()
            if max(every, default=0) > self._values.shape[axis]:
                raise SizesError(
                    f"{call}: the sizes of node set {name!r} go up to {max(every)}, but the values are padded to "
                    f"{self._values.shape[axis]}."
                )
            counts.append(every)
        return [graph[tuple(slice(axis[i]) for axis in counts)] for i, graph in enumerate(flat)]

    def _n_batch(self, call: str, axes: tuple[str, ...]) -> int:
        """The number of batch axes in front of these node axes."""
        n_batch = self._values.ndim - len(axes) - 1
        if n_batch < 0:
            raise ShapeError(
                f"{call}: values have {self._values.ndim} axes, {tuple(self._values.shape)}; "
                f"{len(axes)} node axes and the channels need at least {len(axes) + 1}."
            )
        return n_batch

    def _per_graph(self, call: str, name: str, batch: torch.Size) -> Tensor:
        """(*batch): the sizes of a node set."""
        sizes = self.sizes_of(name)
        if sizes is None:
            raise SizesError(f"{call}: there are no sizes for node set {name!r}.")
        if sizes.ndim > len(batch):
            raise SizesError(
                f"{call}: the sizes of node set {name!r} have shape {tuple(sizes.shape)}, but the batch axes are "
                f"{tuple(batch)}."
            )
        return sizes.reshape(sizes.shape + (1,) * (len(batch) - sizes.ndim)).expand(batch)

    def __reduce__(self) -> tuple[type["Padded"], tuple[Tensor, Sizes]]:
        return Padded, (self._values, self._counts.each(lambda sizes: sizes))

    def __repr__(self) -> str:
        shape = getattr(self._values, "shape", self._values)  # in a pytree it may be any object
        sizes = shown_sizes(self._counts.each(lambda sizes: sizes))
        return f"Padded({tuple(shape) if isinstance(shape, torch.Size) else shape}, sizes={sizes})"


def zero_padded(values: Tensor, sizes: Sizes | Padded, axes: tuple[str, ...]) -> Padded:
    """A Padded of new values that are zero outside the sizes of their axes, so that layers do not mask them.

    No other object has the values; the sizes may be those of another Padded.
    """
    like = sizes if isinstance(sizes, Padded) else Padded(values, sizes)
    return Padded._unchecked(values, like._counts, axes)


def is_zero_padded(x: Padded, axes: tuple[str, ...]) -> bool:
    """Whether values are known to be zero outside the sizes, if these are the node sets of their axes."""
    return x._axes_of_zeros() == axes


def map_zeros_to_zeros(x: Padded, function: Callable[[Tensor], Tensor]) -> Padded:
    """Apply a function of single entries that returns a new tensor, with zeros where its input is zero."""
    return x._combined_with([], function(x.values), keeps_zeros=True)


def cached_by_sizes(x: Padded, key: Hashable, make: Callable[[], Made]) -> Made:
    """A result that depends on the sizes alone, computed once for every Padded that shares them."""
    return x._counts.cached(key, make) if is_concrete(x.values) else make()


def share_sizes(one: object, other: object) -> bool:
    """Whether two Padded have their sizes from the same one."""
    return isinstance(one, Padded) and isinstance(other, Padded) and one._counts is other._counts


def has_size_for_each(x: Padded, batch: Sequence[int]) -> bool:
    """Whether there is a size for every graph of a batch."""
    return all(sizes.shape == tuple(batch) for sizes in x._counts.by_set.values())


def _checked_sizes(name: str, given: object, values: Tensor) -> Tensor:
    sizes = parse_counts("Padded(values, sizes)", name, given, values.device)
    argument = "sizes" if name == ANY_SET else f"sizes[{name!r}]"
    batch = tuple(values.shape[: sizes.ndim])
    if sizes.ndim >= values.ndim or batch != tuple(sizes.shape):
        width = max(len(argument), len("values"))
        raise SizesError(
            f"Padded(values, sizes): {argument} must have the shape of the batch axes in front of values.\n\n"
            f"    {'values':<{width}}  {tuple(values.shape)}\n"
            f"    {argument:<{width}}  {tuple(sizes.shape)}\n\n"
            "There must be one size for each graph."
        )
    if name == ANY_SET and is_concrete(sizes) and sizes.numel():  # one node set among several need not have an axis
        most = int(sizes.max())
        if most > (longest := max(values.shape[sizes.ndim : -1], default=most)):
            raise SizesError(
                f"Padded(values, sizes): sizes goes up to {most}, but no axis of values, which are "
                f"{tuple(values.shape)}, is longer than {longest}.\nSizes count the nodes before padding."
            )
    return sizes


def _flatten(padded: Padded) -> tuple[list[Tensor], tuple[str, ...]]:
    # Copies, but in a tree there may be any objects in the place of tensors.
    sizes: dict[str, Any] = dict(padded._counts.by_set)
    return [padded.values, *(one.clone() if isinstance(one, Tensor) else one for one in sizes.values())], tuple(sizes)


def _unflatten(children: Iterable[Tensor], names: tuple[str, ...]) -> Padded:
    values, *sizes = children
    return Padded._unchecked(values, NodeCounts(dict(zip(names, sizes, strict=True)), is_batch=True))


register_pytree(Padded, _flatten, _unflatten)


def _check_graph(tensor: object, axes: tuple[str, ...], number: int, first: Tensor) -> None:
    call = f'Padded.pack(graphs, "{" ".join(axes)}"): graphs[{number}]'
    if not isinstance(tensor, Tensor):
        raise TensorError(f"{call} must be a tensor, not {type_name(tensor)}.")
    if tensor.ndim != len(axes) + 1:
        raise ShapeError(
            f"{call} must have {len(axes)} node axes and the channels, but its shape is {tuple(tensor.shape)}."
        )
    if tensor.shape[-1] != first.shape[-1]:
        raise ShapeError(f"{call} has {tensor.shape[-1]} channels, but graphs[0] has {first.shape[-1]}.")
    for axis, name in enumerate(axes):
        if tensor.shape[axis] != tensor.shape[axes.index(name)]:
            raise ShapeError(
                f"{call} has axes of lengths {tensor.shape[axes.index(name)]} and {tensor.shape[axis]} "
                f"for one node set {name!r}; its shape is {tuple(tensor.shape)}."
            )
