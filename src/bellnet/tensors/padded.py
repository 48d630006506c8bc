"""Graphs of different sizes in one tensor: padded values, and how many nodes there are."""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from operator import truediv
from typing import Any, TypeVar, overload

import torch
from torch import Tensor
from torch.utils._pytree import register_pytree_node

from bellnet.errors import ShapeError, SizesError, TensorError, type_name
from bellnet.spec import parse_shape
from bellnet.tensors.node_tensor import NodeTensor, Operation, converted, keeps_zeros, with_places
from bellnet.tensors.tracing import is_concrete, no_transforms

Sizes = Tensor | Mapping[str, Tensor]
Made = TypeVar("Made")
MOST_SHOWN = 16
"""So many sizes are written out in a repr."""


class Padded(NodeTensor):
    """Graphs of different sizes in one tensor: values padded to a common length, and the true sizes.

    What the values hold outside the true sizes is ignored by every layer, whatever it is. What a layer returns is
    exactly zero there. The next layer need not make sure of that as long as nobody else has had `values` or `sizes` in
    hand, for whoever has could have changed them.

    Args:
        values: (*batch, node axes, channels).
        sizes: The number of nodes of every graph: integers of shape (*batch), or for several node sets a dict with
            such a tensor for each.

    >>> graphs = Padded(torch.ones(2, 3, 3, 1), torch.tensor([3, 1]))
    >>> [graph.shape for graph in graphs.unpack("n n")]
    [torch.Size([3, 3, 1]), torch.Size([1, 1, 1])]
    """

    __slots__ = ("__weakref__", "_clean", "_kept", "_lent", "_sizes", "_values")

    def __init__(self, values: Tensor, sizes: Sizes) -> None:
        if not isinstance(values, Tensor):
            raise TensorError(f"Padded(values, sizes): values must be a tensor, not {type_name(values)}.")
        self._values = values
        self._sizes: Sizes
        if isinstance(sizes, Mapping):
            self._sizes = {name: self._checked(size, f"sizes[{name!r}]") for name, size in sizes.items()}
        else:
            self._sizes = self._checked(sizes, "sizes")
        self._clean: tuple[str, ...] | None = None
        self._kept: dict[Hashable, Any] = {}
        self._lent = False

    @property
    def values(self) -> Tensor:
        """(*batch, node axes, channels)."""
        self._clean = None
        return self._values

    @property
    def sizes(self) -> Sizes:
        """The number of nodes of every graph, or of every node set and graph."""
        self._clean, self._lent = None, True
        self._kept, self._sizes = {}, _each(self._sizes, _own)  # another Padded may share them
        return self._sizes

    def kept(self, key: Hashable, make: Callable[[], Made]) -> Made:
        """What depends on the sizes alone: made when it is first asked for, and shared by all that share them."""
        if self._lent or not is_concrete(self._values):  # sizes that somebody has in hand may change
            return make()
        if key not in self._kept:
            with no_transforms():
                self._kept[key] = make()
        made: Made = self._kept[key]
        return made

    def peek(self) -> tuple[Tensor, Sizes]:
        """Values and sizes, for those who neither change them nor hand them on."""
        return self._values, self._sizes

    def _checked(self, sizes: Tensor | Sequence[int], argument: str) -> Tensor:
        values = self._values
        if not isinstance(sizes, Tensor):
            try:
                sizes = torch.as_tensor(sizes, device=values.device)
                sizes = sizes if sizes.numel() else sizes.to(torch.int64)  # an empty list has no type
            except (TypeError, ValueError, RuntimeError) as reason:
                raise SizesError(
                    f"Padded(values, sizes): {argument} must be a tensor of integers, not {type_name(sizes)}."
                ) from reason
        if sizes.is_floating_point() or sizes.is_complex() or sizes.dtype == torch.bool:
            raise SizesError(
                f"Padded(values, sizes): {argument} must hold integers, but its dtype is {sizes.dtype}.\n"
                "Sizes are numbers of nodes; for a boolean mask of nodes pass mask.sum(-1)."
            )
        batch = tuple(values.shape[: sizes.ndim])
        if sizes.ndim >= values.ndim or batch != tuple(sizes.shape):
            width = max(len(argument), len("values"))
            raise SizesError(
                f"Padded(values, sizes): {argument} must have the shape of the batch axes in front of values.\n\n"
                f"    {'values':<{width}}  {tuple(values.shape)}\n"
                f"    {argument:<{width}}  {tuple(sizes.shape)}\n\n"
                "There must be one size for each graph."
            )
        sizes = sizes.to(torch.int64)
        if is_concrete(sizes) and sizes.numel():
            least, most = (int(one) for one in torch.aminmax(sizes))
            if least < 0:
                raise SizesError(f"Padded(values, sizes): {argument} holds a negative number, {least}.")
            longest = max(values.shape[sizes.ndim : -1], default=most)
            if most > longest and argument == "sizes":  # a node set among several need not have an axis
                raise SizesError(
                    f"Padded(values, sizes): {argument} goes up to {most}, but no axis of values, which are "
                    f"{tuple(values.shape)}, is longer than {longest}.\nSizes count the nodes before padding."
                )
        return sizes.to(values.device, copy=True)

    @classmethod
    def clean(cls, values: Tensor, sizes: Sizes, axes: tuple[str, ...]) -> "Padded":
        """A `Padded` of values that nobody else has and that are zero outside the sizes of their axes.

        A layer then need not see to that.
        """
        padded = cls(values, sizes)
        if not torch.compiler.is_compiling():  # there cleaning is fused into other work
            padded._clean = axes
        return padded

    def is_clean(self, axes: tuple[str, ...]) -> bool:
        """Whether the values are known to be zero outside, if these are the node sets of their axes."""
        return self._clean == axes

    def is_for(self, batch: Sequence[int]) -> bool:
        """Whether there is a size for every graph of a batch, of node sets in a fixed order."""
        return not isinstance(self._sizes, Mapping) and self._sizes.shape == tuple(batch)

    def sizes_of(self, name: str) -> Tensor | None:
        """The sizes of one node set, or None where they were given for other node sets only."""
        sizes = self.sizes
        return sizes.get(name) if isinstance(sizes, Mapping) else sizes

    def peek_sizes(self, name: str) -> Tensor | None:
        """The same, for those who neither change them nor hand them on."""
        return self._sizes.get(name) if isinstance(self._sizes, Mapping) else self._sizes

    @property
    def shape(self) -> torch.Size:
        """(*batch, node axes, channels)."""
        return self._values.shape

    def to(
        self,
        *args: torch.device | str | torch.dtype | Tensor | None,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
        non_blocking: bool = False,
    ) -> "Padded":
        """Move to a device, or convert the values to a dtype, or both; also as keywords."""
        values = converted(self._values, args, device=device, dtype=dtype, non_blocking=non_blocking)
        if values is self._values:
            return self
        if values.device == self._values.device:
            return self._with(values, self._clean)
        return Padded.unchecked(
            values, _each(self._sizes, lambda one: one.to(values.device, non_blocking=non_blocking))
        )

    def pin_memory(self) -> "Padded":
        """A copy in memory that a GPU can read directly."""
        return Padded.unchecked(self._values.pin_memory(), _each(self._sizes, Tensor.pin_memory))

    @classmethod
    def unchecked(cls, values: Tensor, sizes: Sizes) -> "Padded":
        """A `Padded` of what has been checked before, or cannot be looked at."""
        padded = object.__new__(cls)
        padded._values, padded._sizes, padded._kept, padded._clean, padded._lent = values, sizes, {}, None, False
        return padded

    def _held(self) -> Tensor:
        return self._values

    def _check_same_nodes(self, other: "Padded", call: str) -> None:
        own, given = self._sizes, other._sizes
        if own is not given and is_concrete(self._values) and not _are_equal(own, given):
            raise SizesError(f"{call}: their graphs differ in size.\nBoth must come from the same graphs.")
        if self._values.shape[:-1] != other._values.shape[:-1]:
            raise ShapeError(
                f"{call}: their values have shapes {tuple(self._values.shape)} and {tuple(other._values.shape)}."
            )

    def _computed(self, values: Tensor, other: object, operation: Operation) -> "Padded":
        both = isinstance(other, Padded) and other._clean == self._clean and operation is not truediv
        return self._with(values, self._clean if both or keeps_zeros(other, operation, values.dtype) else None)

    def with_values(self, values: Tensor) -> "Padded":
        """Other values for the same graphs."""
        if values.shape[:-1] != self._values.shape[:-1] or values.device != self._values.device:
            return Padded(values, self._sizes)
        return self._with(values, None)

    def with_clean_values(self, values: Tensor, axes: tuple[str, ...]) -> "Padded":
        """Other values for the same graphs that nobody else has and that are zero outside the sizes of their axes."""
        return self._with(values, None if torch.compiler.is_compiling() else axes)

    def _with(self, values: Tensor, clean: tuple[str, ...] | None) -> "Padded":
        sizes, kept = (_each(self._sizes, _own), {}) if self._lent else (self._sizes, self._kept)
        padded = Padded.unchecked(values, sizes)
        padded._kept, padded._clean = kept, clean
        return padded

    def map(self, function: Callable[[Tensor], Tensor]) -> "Padded":
        """Apply a function to the values, one that acts on every position alone (an activation, a linear layer)."""
        return self.with_values(function(self.values))

    def map_keeping_zeros(self, function: Callable[[Tensor], Tensor]) -> "Padded":
        """The same for a function that makes a new tensor, zero wherever the old one is, and keeps neither."""
        if self._clean is None:
            return self.map(function)
        return self.with_clean_values(function(self._values), self._clean)

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
        return Padded.clean(values, counts[names[0]] if len(names) == 1 else counts, axes)

    def unpack(self, shape: str = "n n") -> list[Tensor]:
        """The graphs one by one, without padding, in the order of the flattened batch axes."""
        axes = parse_shape(shape)
        n_batch = self._values.ndim - len(axes) - 1
        if n_batch < 0:
            raise ShapeError(
                f'Padded.unpack("{shape}"): values have {self._values.ndim} axes, {tuple(self._values.shape)}; '
                f"{len(axes)} node axes and the channels need at least {len(axes) + 1}."
            )
        batch = self._values.shape[:n_batch]
        flat = self.values.reshape(batch.numel(), *self._values.shape[n_batch:])  # views are handed out
        counts = []
        for name in axes:
            sizes = self.peek_sizes(name)
            if sizes is None:
                raise SizesError(f'Padded.unpack("{shape}"): there are no sizes for node set {name!r}.')
            counts.append(self._for_every_graph(sizes, name, shape, batch))
        return [graph[tuple(slice(axis[i]) for axis in counts)] for i, graph in enumerate(flat)]

    def _for_every_graph(self, sizes: Tensor, name: str, shape: str, batch: torch.Size) -> list[int]:
        length = self._values.shape[len(batch) + parse_shape(shape).index(name)]
        if sizes.ndim > len(batch):
            raise SizesError(
                f'Padded.unpack("{shape}"): the sizes of node set {name!r} have shape {tuple(sizes.shape)}, but the '
                f"batch axes are {tuple(batch)}."
            )
        every: list[int] = (
            sizes.reshape(sizes.shape + (1,) * (len(batch) - sizes.ndim)).expand(batch).flatten().tolist()
        )
        if max(every, default=0) > length:
            raise SizesError(
                f'Padded.unpack("{shape}"): the sizes of node set {name!r} go up to {max(every)}, but the values are '
                f"padded to {length}."
            )
        return every

    def __reduce__(self) -> tuple[type["Padded"], tuple[Tensor, Sizes]]:
        return Padded, (self.values, self.sizes)  # a copy may share them, in another process too

    def __repr__(self) -> str:
        shape = getattr(self._values, "shape", self._values)  # torch's trees may hold anything in their place
        sizes = _each(self._sizes, short_sizes)
        shown = sizes if isinstance(sizes, str) else _shown(sizes)
        return f"Padded({tuple(shape) if isinstance(shape, torch.Size) else shape}, sizes={shown})"


def short_sizes(sizes: Tensor) -> str:
    """Sizes as a repr shows them: all of a few, the least and the largest of many."""
    if not is_concrete(sizes) or sizes.numel() <= MOST_SHOWN:
        return str(sizes)
    return f"{int(sizes.min())} to {int(sizes.max())}"


def _shown(sizes: Mapping[str, str]) -> str:
    return f"{{{', '.join(f'{name!r}: {words}' for name, words in sizes.items())}}}"


@overload
def _each(sizes: Sizes, function: Callable[[Tensor], Tensor]) -> Sizes: ...
@overload
def _each(sizes: Sizes, function: Callable[[Tensor], str]) -> str | Mapping[str, str]: ...
def _each(sizes: Sizes, function: Callable[[Tensor], Any]) -> Any:
    """A function applied to the sizes of every node set."""
    return {name: function(size) for name, size in sizes.items()} if isinstance(sizes, Mapping) else function(sizes)


def _own(sizes: Any) -> Any:
    """A copy; whatever torch's trees put in the place of a tensor is taken as it is."""
    return sizes.clone() if isinstance(sizes, Tensor) else sizes


def _are_equal(one: Sizes, other: Sizes) -> bool:
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)
    return not isinstance(one, Mapping) and not isinstance(other, Mapping) and torch.equal(one, other)


def _flatten(padded: Padded) -> tuple[list[Tensor], tuple[str, ...] | None]:
    values, sizes = padded.values, padded.sizes
    return ([values, *sizes.values()], tuple(sizes)) if isinstance(sizes, Mapping) else ([values, sizes], None)


def _unflatten(children: Iterable[Any], names: tuple[str, ...] | None) -> Padded:
    values, *sizes = children
    return Padded.unchecked(values, sizes[0] if names is None else dict(zip(names, sizes, strict=True)))


register_pytree_node(
    Padded,
    _flatten,
    _unflatten,
    serialized_type_name="bellnet.Padded",
    flatten_with_keys_fn=lambda given: with_places(_flatten(given)),
)


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
