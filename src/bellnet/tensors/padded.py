"""Graphs of different sizes in one tensor: padded values, and how many nodes there are."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from bellnet.errors import ShapeError, SizesError, TensorError
from bellnet.spec import parse_shape
from bellnet.tensors.looking import can_look_at, kind_of

Sizes = Tensor | Mapping[str, Tensor]


@dataclass(frozen=True, eq=False)
class Padded:
    """Graphs of different sizes in one tensor: values padded to a common length, and the true sizes.

    What the values hold outside the true sizes is ignored by every layer, whatever it is. What a layer returns is
    exactly zero there.

    Args:
        values: (*batch, node axes, channels).
        sizes: The number of nodes of every graph: integers of shape (*batch), or for several node sets a dict with
            such a tensor for each.

    >>> graphs = Padded(torch.ones(2, 3, 3, 1), torch.tensor([3, 1]))
    >>> [graph.shape for graph in graphs.unpack("n n")]
    [torch.Size([3, 3, 1]), torch.Size([1, 1, 1])]
    """

    values: Tensor
    sizes: Sizes
    _clean: tuple[tuple[str, ...], int] | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        if not isinstance(self.values, Tensor):
            raise TensorError(f"Padded(values, sizes): values must be a tensor, not {kind_of(self.values)}.")
        if isinstance(self.sizes, Mapping):
            checked = {name: self._checked(sizes, f"sizes[{name!r}]") for name, sizes in self.sizes.items()}
            object.__setattr__(self, "sizes", checked)
        else:
            object.__setattr__(self, "sizes", self._checked(self.sizes, "sizes"))

    def _checked(self, sizes: Tensor | Sequence[int], argument: str) -> Tensor:
        if not isinstance(sizes, Tensor):
            try:
                sizes = torch.as_tensor(sizes, device=self.values.device)
                sizes = sizes if sizes.numel() else sizes.to(torch.int64)  # an empty list has no type
            except (TypeError, ValueError, RuntimeError) as reason:
                raise SizesError(
                    f"Padded(values, sizes): {argument} must be a tensor of integers, not {kind_of(sizes)}."
                ) from reason
        if sizes.is_floating_point() or sizes.is_complex() or sizes.dtype == torch.bool:
            raise SizesError(
                f"Padded(values, sizes): {argument} must hold integers, but its dtype is {sizes.dtype}.\n"
                "Sizes are numbers of nodes; for a boolean mask of nodes pass mask.sum(-1)."
            )
        batch = tuple(self.values.shape[: sizes.ndim])
        if sizes.ndim >= self.values.ndim or batch != tuple(sizes.shape):
            width = max(len(argument), len("values"))
            raise SizesError(
                f"Padded(values, sizes): {argument} must have the shape of the batch axes in front of values.\n\n"
                f"    {'values':<{width}}  {tuple(self.values.shape)}\n"
                f"    {argument:<{width}}  {tuple(sizes.shape)}\n\n"
                "There must be one size for each graph."
            )
        sizes = sizes.to(torch.int64)
        if can_look_at(sizes) and sizes.numel() and int(sizes.min()) < 0:
            raise SizesError(f"Padded(values, sizes): {argument} holds a negative number, {int(sizes.min())}.")
        return sizes.to(self.values.device)

    @classmethod
    def clean(cls, values: Tensor, sizes: Sizes, axes: tuple[str, ...]) -> "Padded":
        """A `Padded` whose values are zero outside the sizes of their axes, which a layer then need not see to."""
        padded = cls(values, sizes)
        # Under torch.compile cleaning is fused into other work; an inference tensor does not count its changes.
        if not torch.compiler.is_compiling() and not values.is_inference():
            object.__setattr__(padded, "_clean", (axes, values._version))
        return padded

    def is_clean(self, axes: tuple[str, ...]) -> bool:
        """Whether the values are known to be zero outside, if these are the node sets of their axes."""
        return self._clean is not None and self._clean == (axes, self.values._version)

    def sizes_of(self, name: str) -> Tensor | None:
        """The sizes of one node set, or None where they were given for other node sets only."""
        return self.sizes.get(name) if isinstance(self.sizes, Mapping) else self.sizes

    def map(self, function: Callable[[Tensor], Tensor]) -> "Padded":
        """Apply a function to the values, one that acts on every position alone (an activation, a linear layer)."""
        return Padded(function(self.values), self.sizes)

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
        n_batch = self.values.ndim - len(axes) - 1
        if n_batch < 0:
            raise ShapeError(
                f'Padded.unpack("{shape}"): values have {self.values.ndim} axes, {tuple(self.values.shape)}; '
                f"{len(axes)} node axes and the channels need at least {len(axes) + 1}."
            )
        batch = self.values.shape[:n_batch]
        flat = self.values.reshape(batch.numel(), *self.values.shape[n_batch:])
        counts = []
        for name in axes:
            sizes = self.sizes_of(name)
            if sizes is None:
                raise SizesError(f'Padded.unpack("{shape}"): there are no sizes for node set {name!r}.')
            counts.append(self._for_every_graph(sizes, name, shape, batch))
        return [graph[tuple(slice(axis[i]) for axis in counts)] for i, graph in enumerate(flat)]

    def _for_every_graph(self, sizes: Tensor, name: str, shape: str, batch: torch.Size) -> list[int]:
        length = self.values.shape[len(batch) + parse_shape(shape).index(name)]
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


def _check_graph(tensor: object, axes: tuple[str, ...], number: int, first: Tensor) -> None:
    call = f'Padded.pack(graphs, "{" ".join(axes)}"): graphs[{number}]'
    if not isinstance(tensor, Tensor):
        raise TensorError(f"{call} must be a tensor, not {kind_of(tensor)}.")
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
