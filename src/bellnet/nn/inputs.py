"""Validation of inputs: dense and padded tensors, checked against a spec; a single tensor is the collection of one."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import zip_longest
from math import prod
from operator import index
from typing import Any, Generic, NamedTuple, NoReturn, TypeVar

import torch
from torch import Tensor

from bellnet._utils.memory import machine_memory
from bellnet.backends import DenseLayout, Layout, Nodes
from bellnet.errors import OptionError, ShapeError, SizesError, TensorError, as_written, type_name
from bellnet.spec import Shape, Spec, text_of
from bellnet.tensors import Padded, Sparse, Support, is_concrete
from bellnet.tensors.padded import cached_by_sizes, has_size_for_each, is_zero_padded, share_sizes, zero_padded

MAX_CHANNELS = 2**31
"""Numbers of channels are below this, so that products of two of them do not overflow."""
MAX_BYTES = 2**63 - 1
INITIALIZATION_BYTES = 8
"""Scratch memory per entry of a weight while it is initialized: two values in float32."""


def check_choice(call: str, argument: str, value: object, choices: tuple[str, ...]) -> str:
    """The value, if it is one of the choices."""
    for choice in choices:
        if value == choice:
            return choice
    raise OptionError(f"{call}: {argument} must be one of {', '.join(map(repr, choices))}, not {as_written(value)}.")


def check_channels_of_all(call: str, argument: str, value: object, n_tensors: int) -> tuple[int, ...]:
    """The number of channels of each of several tensors, from one number for each or one for all."""
    if not isinstance(value, Sequence) or isinstance(value, str):
        return (check_channels(call, argument, value),) * n_tensors
    if n_tensors == 1 or len(value) != n_tensors:
        wanted = "one number" if n_tensors == 1 else f"{n_tensors} numbers, one for each tensor, or one for all"
        raise OptionError(f"{call}: {argument} must be {wanted}, not {as_written(value)}.")
    return tuple(check_channels(call, f"{argument}[{number}]", one) for number, one in enumerate(value))


def check_channels(call: str, argument: str, value: object) -> int:
    """The value, if it can be a number of channels."""
    try:
        number = 0 if isinstance(value, bool) else index(value)  # type: ignore[arg-type]
    except TypeError:
        number = 0
    if number >= MAX_CHANNELS:
        raise OptionError(f"{call}: {argument} must be below 2**31; it is larger.")
    if number >= 1:
        return number
    raise OptionError(f"{call}: {argument} must be an integer from 1 up, not {as_written(value)}.")


def check_memory(
    call: str, shape: tuple[int, ...], *, device: torch.device | str | None, dtype: torch.dtype | None
) -> None:
    """Refuse a weight whose initialization does not fit into the memory of this machine; on "meta" every weight fits.

    The error of an allocator would not name the argument that is too large.
    """
    like = torch.empty(0, device=device, dtype=dtype)
    needed = prod(shape) * (like.element_size() + INITIALIZATION_BYTES * (not like.is_meta))
    available = None if like.is_meta else machine_memory()
    limit = MAX_BYTES if available is None else available
    if needed > limit:
        raise OptionError(
            f"{call}: its weight of {' x '.join(map(str, shape))} numbers needs {needed:,} bytes; "
            f"{'torch counts up to' if available is None else 'this machine has'} {limit:,}.\n"
            'Take fewer channels, or a spec with fewer maps. On the meta device (device="meta") layers need no memory.'
        )


def refuse_more(call: str, args: tuple[object, ...], n_tensors: int | None) -> NoReturn:
    """Raise because of several positional arguments, with a remedy; the module takes so many tensors, or any (None)."""
    expected = {None: "one tensor, or several as one tuple", 1: "one tensor"}.get(
        n_tensors, f"{n_tensors} tensors as one tuple"
    )
    if any(_is_edge_index(one) for one in args):
        advice = (
            "bellnet.data.sparse_inputs.from_edge_index(edge_index, edge_attr) makes one Sparse of edge_index and "
            "edge_attr,\nand bellnet.data.sparse_inputs.from_pyg(batch) one of a batch of PyTorch Geometric."
        )
    elif any(one is None or isinstance(one, Mapping) for one in args[1:]):
        advice = "Options have names: layer(x, sizes=..., support=...)."
    elif n_tensors == 1:
        advice = 'For several tensors write commas in the spec, "n n, n -> n n", and pass them as one tuple.'
    else:
        advice = f"Put parentheses around them: module(({', '.join('xyz'[: len(args)])}{', ...' * (len(args) > 3)}))."
    raise TensorError(f"{call}: expected {expected}, got {len(args)} positional arguments.\n{advice}")


def _is_edge_index(value: object) -> bool:
    """Whether it looks like the edges of a graph in PyTorch Geometric: integers (2, edges)."""
    return isinstance(value, Tensor) and value.ndim == 2 and len(value) == 2 and not value.is_floating_point()


class NotScripted:
    """A module that torch.jit.script cannot compile, since its forward takes several kinds of tensors."""

    def __prepare_scriptable__(self) -> NoReturn:
        # torch.jit.script calls this for every module, from the outermost inwards, before it reads any source.
        raise TensorError(
            f"{type(self).__name__} cannot be compiled by torch.jit.script, which reads source code and knows tensors "
            "alone.\nUse torch.export.export(module, (x,), dynamic_shapes=...), or torch.compile(module)."
        )


OverNodes = Tensor | Padded | Sparse
Collection = tuple[OverNodes, ...]
Sizes = Mapping[str, int | Tensor] | None
"""The sizes that a call passes for node sets that no input has."""
AnyLayout = TypeVar("AnyLayout", bound=Layout)

MAX_SIZE = 2**31
"""Sizes that a call passes are below this: a target has an entry for each node."""
TWO_SETS = '\nIf rows and columns are different node sets, write "u i -> u i" (4 maps instead of 15).'


class Inputs(NamedTuple, Generic[AnyLayout]):
    """Validated inputs in the form that a plan runs on.

    Attributes:
        values: Of every source (batch, node axes, channels), zero outside the nodes, or (stored entries, channels).
        layout: The nodes of dense tensors, or the supports of sparse ones.
        batch: The batch axes of dense tensors.
        wrap: From the results of all targets to what the module returns.
    """

    values: Sequence[Tensor]
    layout: AnyLayout
    batch: tuple[int, ...]
    wrap: Callable[[Sequence[Tensor]], Sequence[OverNodes]]


class _Graphs(NamedTuple):
    """The graphs of a batch: their nodes, padded node sets with their sizes, and an input with the sizes of results."""

    nodes: Nodes
    sizes: dict[str, Tensor]
    padded: frozenset[str]
    like: int | None


class DenseSource:
    """Checks one dense or padded tensor over a shape; `channels` is None for any number.

    Messages name the module, and the tensor among several, by `call`, and give `advice` on two lengths of one node set.
    """

    def __init__(self, call: str, shape: Shape, channels: int | None, advice: str = "") -> None:
        self.call, self.shape, self.channels, self._advice = call, shape, channels, advice
        self.names = tuple(dict.fromkeys(shape))
        self._order = len(shape)
        self.first_axes = [(name, shape.index(name) - len(shape) - 1) for name in self.names]
        self._repeated = [(axis, first) for axis, name in enumerate(shape) if (first := shape.index(name)) < axis]

    def check(self, x: object) -> tuple[Tensor, int]:
        """The values of a tensor or a Padded and their number of batch axes; raises for anything else."""
        values = x.values if isinstance(x, Padded) else x
        is_traced = torch.jit.is_tracing()  # type: ignore[attr-defined,no-untyped-call]
        if is_traced or not isinstance(values, Tensor) or values.layout != torch.strided:
            self._refuse_type(values, is_traced=is_traced)
        shape = values.shape
        n_batch = len(shape) - self._order - 1
        if n_batch < 0 or (self.channels is not None and shape[-1] != self.channels):
            self._refuse_axes(values)
        for axis, first in self._repeated:
            if shape[n_batch + axis] != shape[n_batch + first]:
                self._refuse_axes(values)
        return values, n_batch

    def _refuse_type(self, values: object, *, is_traced: bool) -> NoReturn:
        if is_traced:
            raise TensorError(
                f"{self.call} cannot be traced by torch.jit.trace, which would fix the number of nodes.\n"
                "Use torch.export.export(module, (x,)), or torch.compile(module)."
            )
        if not isinstance(values, Tensor):
            raise TensorError(
                f"{self.call} takes a tensor, a bellnet.Padded or a bellnet.Sparse, not {type_name(values)}."
                + _conversion_to_tensor(values)
            )
        raise TensorError(
            f"{self.call} takes a dense tensor, but this one is {values.layout}.\n"
            "Pass x.to_dense(), or bellnet.data.sparse_inputs.from_torch(x)."
        )

    def _refuse_axes(self, values: Tensor) -> NoReturn:
        if values.ndim < self._order + 1:
            reason = (
                f"The tensor has {values.ndim} axes; {self._order} node axes and the channels need at least "
                f"{self._order + 1}."
            )
            if values.ndim == self._order:
                reason += "\nA tensor without channels gets them from x.unsqueeze(-1)."
            raise self._wrong_shape(values, (), reason)
        n_batch, misplaced = values.ndim - self._order - 1, self._channels_elsewhere(values)
        for axis, first in ((axis + n_batch, first + n_batch) for axis, first in self._repeated):
            if values.shape[axis] != values.shape[first]:
                reason = (
                    f"Axes {first} and {axis} both run over node set {self.shape[first - n_batch]!r}, so they must "
                    f"have one length; here they have {values.shape[first]} and {values.shape[axis]}."
                )
                raise self._wrong_shape(values, (first, axis), reason + (misplaced or self._advice))
        reason = f"The last axis holds the channels: expected {self.channels}, got {values.shape[-1]}."
        raise self._wrong_shape(values, (values.ndim - 1,), reason + misplaced)

    def _channels_elsewhere(self, values: Tensor) -> str:
        """What to do if channels seem to be on another axis than the last, or missing."""
        if values.shape[-1] == self.channels or not self._order:
            return ""
        if values.shape[-self._order - 1] == self.channels:
            return (
                f"\nIf channels stand before the nodes, as in convolutions, move them: x.movedim({-self._order - 1}, "
                "-1)."
            )
        return "\nIf the tensor has no channels, x.unsqueeze(-1) gives it one." if self.channels == 1 else ""

    def _wrong_shape(self, values: Tensor, marked: tuple[int, ...], reason: str) -> ShapeError:
        expected = [*self.shape, "channels" if self.channels is None else str(self.channels)]
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

    def sizes(self, x: Padded, name: str, batch: tuple[int, ...], length: int) -> Tensor:
        """(n_graphs,): the sizes of a node set of a Padded."""
        sizes = x.sizes_of(name)
        if sizes is None:
            raise SizesError(
                f"{self.call}: the Padded input has no sizes for node set {name!r}, but for "
                f"{', '.join(map(repr, x.sizes))}.\n"
                f"Pass Padded(values, {{{', '.join(f'{one!r}: ...' for one in self.names)}}})."
            )
        return self.size_per_graph(sizes, name, batch, length)

    def size_per_graph(self, sizes: Tensor, name: str, batch: tuple[int, ...], length: int | None) -> Tensor:
        """(n_graphs,): sizes of a node set, none of them above the length."""
        if sizes.ndim > len(batch) or tuple(sizes.shape) != batch[: sizes.ndim]:
            raise SizesError(
                f"{self.call}: the sizes of node set {name!r} have shape {tuple(sizes.shape)}, "
                f"but the batch axes are {batch}.\nThere must be one size for each graph."
            )
        if length is not None and is_concrete(sizes) and sizes.numel() and int(sizes.max()) > length:
            raise SizesError(
                f"{self.call}: the sizes of node set {name!r} go up to {int(sizes.max())}, "
                f"but the values are padded to {length}.\nSizes count the nodes before padding."
            )
        return sizes.reshape(sizes.shape + (1,) * (len(batch) - sizes.ndim)).expand(batch).reshape(-1)


class InputValidator:
    """Checks the inputs of one module.

    Args:
        call: How messages name the module.
        spec: Its spec; without targets, where results are not wrapped.
        channels: The number of channels of every source; None for any number.
        names: How messages name the factors of a product; other sources are x, or the entries of a tuple x.
    """

    def __init__(
        self, call: str, spec: Spec, channels: Sequence[int | None], *, names: Sequence[str] | None = None
    ) -> None:
        self.call, self.spec = call, spec
        self.called = "layer(x" if names is None else f"product({', '.join(names)}"
        n_sources = len(spec.sources)
        self.names = names or (["x"] if n_sources == 1 else [f"x[{number}]" for number in range(n_sources)])
        advice = TWO_SETS if str(spec.ordered) == "n n -> n n" else ""
        self.sources = [
            DenseSource(call if n_sources == 1 else f"{call} at {name}", shape, width, advice)
            for name, shape, width in zip(self.names, spec.sources, channels, strict=True)
        ]
        self.set_numbers = spec.numbered[0]
        self.node_sets, self.target_only = spec.node_sets, spec.target_only
        self._key = spec.sources, spec.targets

    def validate(self, x: Sequence[OverNodes], sizes: Sizes = None) -> Inputs[DenseLayout]:
        """Check a tensor or a Padded for every source, and bring them into one form."""
        values: list[Tensor] = []
        lengths: dict[str, int] = {}
        padded: list[tuple[int, Padded]] = []
        batch: tuple[int, ...] = ()
        for number, (source, one) in enumerate(zip(self.sources, x, strict=True)):
            tensor, n_batch = source.check(one)
            shape = tensor.shape
            own_batch = tuple(shape[:n_batch])
            values.append(tensor if n_batch == 1 else tensor.reshape(prod(own_batch), *shape[n_batch:]))
            if number == 0:
                batch = own_batch
            elif batch != own_batch:
                raise ShapeError(
                    f"{self.call}: the batch axes of {self.names[0]} are {batch}, but those of {self.names[number]} "
                    f"are {own_batch}.\nAll tensors must be about the same graphs."
                )
            for name, axis in source.first_axes:
                if lengths.setdefault(name, shape[axis]) != shape[axis]:
                    first = next(own for own, one in zip(self.names, self.sources, strict=True) if name in one.names)
                    raise ShapeError(
                        f"{self.call}: node set {name!r} has length {lengths[name]} in {first}, but {shape[axis]} in "
                        f"{self.names[number]}.\nAll tensors must be about the same nodes."
                    )
            if isinstance(one, Padded):
                padded.append((number, one))
        if not (padded or sizes or self.target_only):
            wrap = list if len(batch) == 1 else partial(_with_batch, batch)
            return Inputs(values, DenseLayout(Nodes(tuple(lengths.values()))), batch, wrap)
        if sizes or self.target_only or not all(share_sizes(one, padded[0][1]) for _, one in padded[1:]):
            graphs = self._graphs(x, batch, lengths, sizes)
        else:
            key = self._key, batch, *lengths.values(), *[number for number, _ in padded]
            graphs = cached_by_sizes(padded[0][1], key, lambda: self._graphs(x, batch, lengths, None))
        for number, one in padded:
            if not is_zero_padded(one, self.spec.sources[number]):
                values[number] = graphs.nodes.clean(values[number], self.set_numbers[number])
        return Inputs(values, DenseLayout(graphs.nodes), batch, partial(self._wrap, x, graphs, batch))

    def _graphs(self, x: Sequence[OverNodes], batch: tuple[int, ...], lengths: dict[str, int], sizes: Sizes) -> _Graphs:
        found: dict[str, tuple[str, Tensor | None]] = {}
        for source, one, of in zip(self.sources, x, self.names, strict=True):
            for name in source.names:
                count = source.sizes(one, name, batch, lengths[name]) if isinstance(one, Padded) else None
                first, known = found.setdefault(name, (of, count))
                self._check_same_sizes(name, (known, count), (first, of))
        counts = {name: count for name, (_, count) in found.items() if count is not None}
        if sizes or self.target_only:
            device = x[0].device
            for name, size in self._new_sizes(sizes, lengths).items():
                if isinstance(size, Tensor) and size.ndim:
                    counts[name] = self.sources[0].size_per_graph(size.to(device), name, batch, None)
                    lengths[name] = int(size.max()) if size.numel() else 0
                else:
                    lengths[name] = int(size)
        in_order = tuple([lengths[name] for name in self.node_sets])
        if not counts:
            return _Graphs(Nodes(in_order), counts, frozenset(), None)
        like = next(iter(counts.values()))
        every = {name: counts.get(name, torch.full_like(like, lengths[name])) for name in self.node_sets}
        nodes = Nodes(in_order, None if _fill(counts, lengths) else torch.stack(list(every.values())))
        padded = frozenset(counts)
        needed = {name for shape in self.spec.targets if padded.intersection(shape) for name in shape}
        with_sizes = [
            number
            for number, (source, one) in enumerate(zip(self.sources, x, strict=True))
            if isinstance(one, Padded) and set(source.names) == needed and has_size_for_each(one, batch)
        ]
        wanted = {name: every[name].reshape(batch) for name in self.node_sets if name in needed}
        return _Graphs(nodes, wanted, padded, with_sizes[0] if with_sizes else None)

    def _check_same_sizes(
        self, node_set: str, sizes: tuple[Tensor | None, Tensor | None], names: tuple[str, str]
    ) -> None:
        one, other = sizes
        if one is other:
            return
        if one is None or other is None:
            plain, padded = names if one is None else names[::-1]
            raise SizesError(
                f"{self.call}: {padded} is a Padded with sizes of node set {node_set!r}, but {plain} is a tensor "
                f"without.\nPass Padded({plain}, sizes) with the same sizes."
            )
        if is_concrete(one) and not torch.equal(one, other):
            graph = int((one != other).nonzero()[0])
            raise SizesError(
                f"{self.call}: of node set {node_set!r} graph {graph} has {int(one[graph])} nodes in {names[0]}, but "
                f"{int(other[graph])} in {names[1]}.\nAll tensors must be about the same nodes."
            )

    def _new_sizes(self, sizes: Sizes, lengths: Mapping[str, int]) -> Mapping[str, int | Tensor]:
        """The sizes that a call passes for node sets that no input has, if they are complete."""
        checked = check_sizes(self.call, sizes, self.spec)
        for name, size in checked.items():
            if name in lengths and (isinstance(size, Tensor) or size != lengths[name]):
                shown = "a tensor" if isinstance(size, Tensor) else as_written(size)
                raise SizesError(
                    f"{self.call}: sizes[{name!r}] is {shown}, but the input already has {lengths[name]} nodes of that "
                    "set.\nPass sizes only for node sets that the input does not have; graphs of different sizes are a "
                    "bellnet.Padded(values, sizes)."
                )
        if missing := [name for name in self.target_only if name not in checked]:
            raise missing_sizes(self.call, missing)
        return {name: size for name, size in checked.items() if name not in lengths}

    def _wrap(
        self, x: Sequence[OverNodes], graphs: _Graphs, batch: tuple[int, ...], results: Sequence[Tensor]
    ) -> list[OverNodes]:
        """A Padded for every target with a padded node set, else a tensor."""
        if len(batch) != 1:
            results = _with_batch(batch, results)
        like: Any = None if graphs.like is None else x[graphs.like]
        wrapped: list[OverNodes] = []
        for shape, result in zip(self.spec.targets, results, strict=True):
            if graphs.padded.isdisjoint(shape):
                wrapped.append(result)
                continue
            if like is None:
                like = next(iter(graphs.sizes.values())) if len(graphs.sizes) == 1 else graphs.sizes
            like = zero_padded(result, like, shape)
            wrapped.append(like)
        return wrapped


def _with_batch(batch: tuple[int, ...], results: Sequence[Tensor]) -> list[Tensor]:
    return [one.reshape(*batch, *one.shape[1:]) for one in results]


def _fill(counts: dict[str, Tensor], lengths: dict[str, int]) -> bool:
    """Whether all graphs fill their axes, so that nothing is padded; False where that would need a synchronization."""
    return all(
        is_concrete(one) and one.device.type == "cpu" and one.numel() and int(one.min()) >= lengths[name]
        for name, one in counts.items()
    )


def check_collection(call: str, x: object, shapes: Sequence[Shape]) -> Collection:
    """A tuple with a tensor for each of several shapes; their types are not checked."""
    if len(shapes) == 1:
        return (x,)  # type: ignore[return-value]
    if isinstance(x, tuple | list) and len(x) == len(shapes):
        return tuple(x)
    got = f"one of {len(x)}" if isinstance(x, tuple | list) else type_name(x)
    advice = ""
    if not isinstance(x, tuple | list) and all(len(shape) <= 1 for shape in shapes):
        slots = " ".join(name for shape in shapes for name in shape)
        advice = f'\nIf they are the slots of one tensor, write "{slots}", without commas.'
    raise TensorError(
        f'{call}: expected a tuple of {len(shapes)} tensors, over "{text_of(tuple(shapes))}", got {got}.{advice}'
    )


def check_separate(call: str, x: object, shapes: Sequence[Shape]) -> Collection:
    """A tensor for every shape, for modules that act on each separately.

    Node features of all graphs in a row, beside a batch that is a `Sparse`, become a `Sparse`; `as_given` reverts that.
    """
    collection = check_collection(call, x, shapes)
    if len(shapes) == 1:
        return collection
    for number, one in enumerate(collection):
        if not isinstance(one, Tensor | Padded | Sparse):
            raise TensorError(
                f"{call} at x[{number}] takes a tensor, a bellnet.Padded or a bellnet.Sparse, not {type_name(one)}."
            )
    pairs = list(zip(collection, shapes, strict=True))
    sparse = [(one.support, shape) for one, shape in pairs if isinstance(one, Sparse) and one.support.counts.is_batch]
    batches = {name: support for support, shape in sparse for name in shape}
    return tuple(_rows_as_sparse(one, shape, batches) if batches else one for one, shape in pairs)


def _rows_as_sparse(x: OverNodes, shape: Shape, batches: Mapping[str, Support]) -> OverNodes:
    if not isinstance(x, Tensor) or len(shape) != 1 or x.ndim != 2 or shape[0] not in batches:
        return x
    return Sparse.on(every_node(batches[shape[0]], shape[0]), x)


def every_node(support: Support, name: str) -> Support:
    """The support of all nodes of a node set, for the graphs of another support; cached there."""
    return support.cached(("support of all nodes", (name,)), lambda: Support.every_node(support.counts, name))


def as_given(results: Sequence[OverNodes], x: object) -> OverNodes | Collection:
    """The results for what `check_separate` returned: one, or a tuple with nodes in a row where x has them."""
    if len(results) == 1:
        return results[0]
    assert isinstance(x, tuple | list)
    pairs = zip(results, x, strict=True)
    return tuple(one.values if isinstance(one, Sparse) and isinstance(was, Tensor) else one for one, was in pairs)


def check_sizes(call: str, sizes: object, spec: Spec) -> Mapping[str, int | Tensor]:
    """The sizes that a call passes, if they are valid for the node sets of a spec."""
    if sizes is None:
        return {}
    if not isinstance(sizes, Mapping):
        example = ", ".join(f"{name!r}: 10" for name in spec.target_only)
        raise SizesError(
            f"{call}: sizes must be a dict from node sets to numbers of nodes, not {as_written(sizes)}.\n"
            + (f"Pass for instance sizes={{{example}}}." if example else "This layer needs none: leave sizes out.")
        )
    for name, size in sizes.items():
        if name not in spec.node_sets:
            known = ", ".join(map(repr, spec.node_sets))
            raise SizesError(f"{call}: sizes has an entry for {name!r}, but the node sets are {known}.")
        if isinstance(size, Tensor):
            is_integer = not (size.is_floating_point() or size.is_complex() or size.dtype == torch.bool)
        else:
            is_integer = isinstance(size, int | torch.SymInt) and not isinstance(size, bool)
        if not is_integer:
            shown = f"a tensor of {size.dtype}" if isinstance(size, Tensor) else as_written(size)
            raise SizesError(
                f"{call}: the size of node set {name!r} must be an integer, or a tensor with one for each graph, "
                f"not {shown}."
            )
        smallest, largest = _bounds(size)
        if smallest < 0:
            raise SizesError(f"{call}: the size of node set {name!r} is negative: {as_written(smallest)}.")
        if largest >= MAX_SIZE:
            raise SizesError(
                f"{call}: the size of node set {name!r} is {as_written(largest)}: a tensor over so many nodes does "
                f"not fit into memory.\nSizes are numbers of nodes, below {MAX_SIZE:,}."
            )
    return sizes


def _bounds(size: int | Tensor) -> tuple[int, int]:
    """The smallest and the largest size; zero where they cannot be read while a graph is traced."""
    if isinstance(size, Tensor):
        return (int(size.min()), int(size.max())) if is_concrete(size) and size.numel() else (0, 0)
    return (size, size) if type(size) is int else (0, 0)


def missing_sizes(call: str, missing: Sequence[str]) -> SizesError:
    """The error for node sets of targets alone, for which a call passes no sizes."""
    return SizesError(
        f"{call}: no input has node set {missing[0]!r}, so its length is not known.\n"
        f"Pass it in the call: layer(x, sizes={{{', '.join(f'{name!r}: 10' for name in missing)}}})."
    )


def _conversion_to_tensor(x: object) -> str:
    """How an object of a known package becomes a tensor; empty for others."""
    packages = {kind.__module__.partition(".")[0] for kind in type(x).__mro__}  # a PyG Batch has a class made for it
    if "torch_geometric" in packages:
        return "\nbellnet.data.sparse_inputs.from_pyg(data) makes a Sparse of it."
    if packages & {"networkx", "scipy"}:
        return "\nbellnet.data.to_sparse([graph]) makes a Sparse of it, and bellnet.data.to_padded([graph]) a Padded."
    if "numpy" in packages:
        return "\nPass torch.from_numpy(x), in floating point numbers such as those of the layer."
    if isinstance(x, list | tuple) and x and isinstance(x[0], Tensor):
        return (
            "\nGraphs of one size become one tensor by torch.stack, of several sizes a bellnet.Padded by Padded.pack."
        )
    return ""
