"""What a layer was handed, checked against its spec and brought into one form."""

from collections.abc import Callable, Mapping
from itertools import zip_longest
from math import prod
from typing import NamedTuple, NoReturn

import torch
from torch import Tensor

from bellnet.backends import Nodes
from bellnet.errors import ShapeError, SizesError, TensorError
from bellnet.nn.given_sizes import GivenSizes, check_given, check_repeated
from bellnet.spec import Spec
from bellnet.tensors import Padded, is_concrete
from bellnet.tensors.padded import cached_by_sizes, has_size_for_each, is_zero_padded


class Input(NamedTuple):
    """A tensor with its batch axes made one, and the nodes it runs over.

    Attributes:
        tensor: (batch, node axes, channels), zero outside the nodes.
        nodes: The lengths and counts of all node sets of the spec.
        batch: The batch axes as they were.
        padded: The node sets of which graphs may have different numbers.
    """

    tensor: Tensor
    nodes: Nodes
    batch: tuple[int, ...]
    padded: tuple[str, ...]


class Reception:
    """Checks what comes to one layer.

    Args:
        call: How messages name the layer.
        spec: Its spec.
        channels: How many there must be; None for any number.
        forgets: Whether sizes may be forgotten where graphs fill their axes.
    """

    def __init__(self, call: str, spec: Spec, channels: int | None, *, forgets: bool = True) -> None:
        self.call = call
        self.spec = spec
        self.channels = channels
        self.node_sets = spec.node_sets
        self.source_sets = spec.set_numbers[0]
        self.target_only = spec.target_only
        source = spec.source
        self._first = [source.index(name) for name in dict.fromkeys(source)]
        self._repeated = [(axis, source.index(name)) for axis, name in enumerate(source) if source.index(name) < axis]
        self.names = tuple(dict.fromkeys(source))
        # Where graphs fill their axes their sizes need not be known, if results have the same or none.
        self._may_forget = forgets and (not spec.target or set(spec.target) == set(source))

    def receive(self, given: Tensor | Padded, sizes: GivenSizes = None) -> Input:
        """Check a tensor or a Padded and bring it into one form."""
        padded, values = (given, given.values) if isinstance(given, Padded) else (None, given)
        self.check(values)
        shape = values.shape
        n_batch = len(shape) - len(self.source_sets) - 1
        batch = tuple(shape[:n_batch])
        tensor = values if n_batch == 1 else values.reshape(prod(batch), *shape[n_batch:])
        if sizes or self.target_only:
            lengths = {name: shape[n_batch + axis] for name, axis in zip(self.names, self._first, strict=True)}
            counts = {} if padded is None else self._padded_counts(padded, lengths, batch)
            device = values.device

            def fit(given: Tensor, name: str) -> Tensor:
                return self.fitting(given.to(device), name, batch, None)

            add_given(self.call, self.spec, {} if sizes is None else sizes, lengths, counts, fit)
            nodes, several = self._nodes(lengths, counts, batch, values.device), tuple(counts)
        elif padded is None:
            return Input(tensor, Nodes(tuple([shape[n_batch + axis] for axis in self._first])), batch, ())
        else:
            nodes, several = self._nodes_of(padded, shape, n_batch), self.names
        if padded is None or not is_zero_padded(padded, self.spec.source):
            tensor = nodes.clean(tensor, self.source_sets)
        return Input(tensor, nodes, batch, several)

    def _nodes_of(self, padded: Padded, shape: tuple[int, ...], n_batch: int) -> Nodes:
        """The nodes of a Padded, found once for all that share its sizes."""
        lengths = {name: shape[n_batch + axis] for name, axis in zip(self.names, self._first, strict=True)}
        batch, device = tuple(shape[:n_batch]), padded.device

        def find() -> Nodes:
            counts = self._padded_counts(padded, lengths, batch)
            if self._may_forget and has_size_for_each(padded, batch) and _fill(counts, lengths):
                counts = {}
            return self._nodes(lengths, counts, batch, device)

        return cached_by_sizes(padded, (self.node_sets, self._may_forget, batch, *lengths.values()), find)

    def _padded_counts(self, given: Padded, lengths: dict[str, int], batch: tuple[int, ...]) -> dict[str, Tensor]:
        return {name: self.padded_sizes(given, name, batch, lengths[name]) for name in self.names}

    def check(self, values: object) -> None:
        """Refuse what is no dense tensor, or has the wrong axes."""
        is_traced = torch.jit.is_tracing()  # type: ignore[attr-defined,no-untyped-call]
        if is_traced or not isinstance(values, Tensor) or values.layout != torch.strided:
            self._refuse_kind(values, is_traced=is_traced)
        shape = values.shape
        n_batch = len(shape) - len(self.source_sets) - 1
        if n_batch < 0 or (self.channels is not None and shape[-1] != self.channels):
            self._refuse_axes(values)
        for axis, first in self._repeated:
            if shape[n_batch + axis] != shape[n_batch + first]:
                self._refuse_axes(values)

    def _refuse_kind(self, values: object, *, is_traced: bool) -> NoReturn:
        if is_traced:
            raise TensorError(
                f"{self.call} cannot be traced by torch.jit.trace, which would fix the number of nodes.\n"
                "Use torch.export.export(module, (x,)), or torch.compile(module)."
            )
        if not isinstance(values, Tensor):
            kind = f"{type(values).__module__}.{type(values).__qualname__}"
            advice = _way_to_a_tensor(values)
            raise TensorError(f"{self.call} takes a tensor, a bellnet.Padded or a bellnet.Sparse, not {kind}.{advice}")
        raise TensorError(
            f"{self.call} takes a dense tensor, but this one is {values.layout}.\n"
            "Pass x.to_dense(), or bellnet.data.sparse_inputs.from_torch(x)."
        )

    def _refuse_axes(self, values: Tensor) -> NoReturn:
        source = self.spec.source
        if values.ndim < len(source) + 1:
            needed = f"{len(source)} node axes and the channels"
            raise self._wrong_shape(
                values,
                (),
                f"The tensor has {values.ndim} axes; {needed} need at least {len(source) + 1}."
                + ("\nA tensor without channels gets them from x.unsqueeze(-1)." if values.ndim == len(source) else ""),
            )
        n_batch = values.ndim - len(source) - 1
        first: dict[str, int] = {}
        for axis, name in enumerate(source, n_batch):
            start = first.setdefault(name, axis)
            if values.shape[axis] != values.shape[start]:
                raise self._wrong_shape(values, (start, axis), self._unequal(values, start, axis, name))
        text = f"The last axis holds the channels: {self.channels} were declared, {values.shape[-1]} came."
        raise self._wrong_shape(values, (values.ndim - 1,), text + self._way_to_channels(values))

    def _unequal(self, values: Tensor, start: int, axis: int, name: str) -> str:
        text = (
            f"Axes {start} and {axis} both run over node set {name!r}, so they must have one length; "
            f"here they have {values.shape[start]} and {values.shape[axis]}."
        )
        if advice := self._way_to_channels(values):
            text += advice
        elif self.spec == Spec((name, name), (name, name)):
            text += '\nIf rows and columns are different node sets, write "u i -> u i" (4 maps instead of 15).'
        return text

    def _way_to_channels(self, values: Tensor) -> str:
        """What to do if channels seem to stand elsewhere than last, or not to be there."""
        n_slots = len(self.spec.source)
        if values.shape[-1] == self.channels or not n_slots:
            return ""
        if values.shape[-n_slots - 1] == self.channels:
            return (
                f"\nIf channels stand before the nodes, as in convolutions, move them: x.movedim({-n_slots - 1}, -1)."
            )
        return "\nIf the tensor has no channels, x.unsqueeze(-1) gives it one." if self.channels == 1 else ""

    def _wrong_shape(self, values: Tensor, marked: tuple[int, ...], reason: str) -> ShapeError:
        expected = [*self.spec.source, "channels" if self.channels is None else str(self.channels)]
        got = [str(length) for length in values.shape]
        expected = ["batch"] * (len(got) - len(expected)) + expected
        columns = list(zip_longest(expected, got, fillvalue=""))
        widths = [max(map(len, column)) for column in columns] if len(got) >= len(expected) else [0] * len(columns)
        carets = "  ".join(
            ("^" * len(cell) if axis in marked else "").ljust(widths[axis]) for axis, (_, cell) in enumerate(columns)
        )
        lines = [
            f"{self.call} cannot take this tensor.",
            "",
            f"    expected  ({', '.join(cell.ljust(width) for cell, width in zip(expected, widths, strict=False))})",
            f"    got       ({', '.join(cell.ljust(width) for cell, width in zip(got, widths, strict=False))})",
            " " * 15 + carets.rstrip() if marked else "",
            reason,
        ]
        return ShapeError("\n".join(lines))

    def padded_sizes(self, given: Padded, name: str, batch: tuple[int, ...], length: int) -> Tensor:
        """The sizes of a node set of a Padded, one for each graph."""
        sizes = given.sizes_of(name)
        if sizes is None:
            there = ", ".join(map(repr, given.sizes))  # sizes that are no dict are those of all node sets
            raise SizesError(
                f"{self.call}: the Padded input has no sizes for node set {name!r}, but for {there}.\n"
                f"Pass Padded(values, {{{', '.join(f'{s!r}: ...' for s in dict.fromkeys(self.spec.source))}}})."
            )
        return self.fitting(sizes, name, batch, length)

    def fitting(self, sizes: Tensor, name: str, batch: tuple[int, ...], length: int | None) -> Tensor:
        """Sizes of a node set, one for each graph, none of them above the length."""
        if sizes.ndim > len(batch) or tuple(sizes.shape) != batch[: sizes.ndim]:
            raise SizesError(
                f"{self.call}: the sizes of node set {name!r} have shape {tuple(sizes.shape)}, "
                f"but the batch axes are {batch}.\nThere must be one size for each graph."
            )
        if sizes.ndim < len(batch):
            sizes = sizes.reshape(sizes.shape + (1,) * (len(batch) - sizes.ndim)).expand(batch)
        if length is not None and is_concrete(sizes) and sizes.numel() and int(sizes.max()) > length:
            raise SizesError(
                f"{self.call}: the sizes of node set {name!r} go up to {int(sizes.max())}, "
                f"but the values are padded to {length}.\nSizes count the nodes before padding."
            )
        return sizes

    def _nodes(
        self, lengths: dict[str, int], counts: dict[str, Tensor], batch: tuple[int, ...], device: torch.device
    ) -> Nodes:
        in_order = tuple(lengths[name] for name in self.node_sets)
        if not counts:
            return Nodes(in_order)
        rows = []
        for name in self.node_sets:
            row = counts.get(name)
            rows.append(
                torch.full((prod(batch),), lengths[name], device=device) if row is None else row.reshape(prod(batch))
            )
        return Nodes(in_order, torch.stack(rows))


def add_given(
    call: str,
    spec: Spec,
    sizes: Mapping[str, int | Tensor],
    lengths: dict[str, int],
    counts: dict[str, Tensor],
    fit: Callable[[Tensor, str], Tensor],
) -> None:
    """Add what was given for node sets that only targets have to the lengths, and to the numbers of nodes.

    Args:
        call: How messages name the layer.
        spec: Its spec.
        sizes: What was given.
        lengths: The lengths of the node sets of the sources.
        counts: Numbers of nodes, one for each graph.
        fit: Makes such numbers of sizes of a node set, if they fit the graphs.
    """
    for name, size in check_given(call, sizes, spec.node_sets, spec.target_only).items():
        if name in lengths:
            check_repeated(call, name, size, lengths[name])
        elif isinstance(size, Tensor) and size.ndim:
            counts[name] = fit(size, name)
            lengths[name] = int(size.max()) if size.numel() else 0
        else:
            lengths[name] = int(size)
    if missing := [name for name in spec.target_only if name not in lengths]:
        who = "the target has" if spec.is_single else "targets have"
        raise SizesError(
            f"{call}: only {who} node set {missing[0]!r}, so the input cannot tell its length.\n"
            f"Pass it in the call: layer(x, sizes={{{', '.join(f'{name!r}: 10' for name in missing)}}})."
        )


def _way_to_a_tensor(given: object) -> str:
    """What to do with something that is no tensor, by where its kind comes from; nothing where that says little."""
    homes = {kind.__module__.partition(".")[0] for kind in type(given).__mro__}  # a Batch has a class made for it
    if "torch_geometric" in homes:
        return "\nbellnet.data.sparse_inputs.from_pyg(data) makes a Sparse of it."
    if homes & {"networkx", "scipy"}:
        return "\nbellnet.data.to_sparse([graph]) makes a Sparse of it, and bellnet.data.to_padded([graph]) a Padded."
    if "numpy" in homes:
        return "\nPass torch.from_numpy(x), in floating point numbers such as those of the layer."
    if isinstance(given, list | tuple) and given and isinstance(given[0], Tensor):
        return (
            "\nGraphs of one size become one tensor by torch.stack, of several sizes a bellnet.Padded by Padded.pack."
        )
    return ""


def _fill(counts: dict[str, Tensor], lengths: dict[str, int]) -> bool:
    """Whether all graphs have as many nodes as the axes are long, so that nothing is padded; no if nobody may look."""
    several = counts.values()
    if not all(is_concrete(sizes) and sizes.device.type == "cpu" and sizes.numel() for sizes in several):
        return False
    return all(int(sizes.min()) >= lengths[name] for name, sizes in counts.items())
