"""Validation of inputs some of which are sparse: dense ones become sparse, and their results dense again."""

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor

from bellnet.backends import SparseLayout
from bellnet.errors import ShapeError, SizesError, SupportError
from bellnet.nn.inputs import (
    Collection,
    Inputs,
    InputValidator,
    OverNodes,
    Sizes,
    check_sizes,
    every_node,
    missing_sizes,
)
from bellnet.spec import Shape
from bellnet.tensors import NodeCounts, Padded, Sparse, Support, is_concrete
from bellnet.tensors.padded import zero_padded

Supports = Sparse | Support | Sequence[Sparse | Support | None] | None
"""One support, for all targets over its slots, or one for each target."""


class _Resolved(NamedTuple):
    """The supports of a call. None stands for one that the call has: that of a `Sparse`, or one passed for a target.

    Attributes:
        sources: For every source its support, and the positions of its entries in a padded tensor if there is padding.
        targets: For every target its support, or the number of the source that has it.
        lengths: The number of nodes of every node set, if all graphs have the same; else None.
    """

    sources: list[tuple[Support | None, Tensor | None]]
    targets: list[Support | int | None]
    lengths: tuple[int, ...] | None


class SparseInputValidator:
    """Checks the inputs of one module where some are a `Sparse`, or supports are passed for results."""

    def __init__(self, dense: InputValidator) -> None:
        self._dense, self.call, self.spec = dense, dense.call, dense.spec
        self._key = "resolved", self.spec.sources, self.spec.targets

    def validate(self, x: Collection, sizes: Sizes, supports: Supports, *, stored: bool) -> Inputs[SparseLayout]:
        """Check the inputs and find the supports of all results; `stored` is whether means divide by stored entries."""
        passed = [None] * len(self.spec.targets) if supports is None else self._passed(supports)
        pairs = list(zip(self._dense.sources, x, strict=True))
        dense = [None if isinstance(one, Sparse) else source.check(one)[0] for source, one in pairs]
        first, *others = [one.support for one in x if isinstance(one, Sparse)] + [one for one in passed if one]
        if sizes or any(isinstance(one, Padded) for one in x) or not is_concrete(first.index):
            resolved = self._resolve(x, passed, sizes)
        else:
            shapes = tuple([None if tensor is None else tensor.shape[:-1] for tensor in dense])
            key = self._key, shapes, tuple([one is None for one in passed])
            resolved = first.cached_with(others, key, lambda: self._resolve(x, passed, None))
        values: list[Tensor] = []
        sources: list[Support] = []
        for (source, one), tensor, (support, positions) in zip(pairs, dense, resolved.sources, strict=True):
            if isinstance(one, Sparse):
                _check_channels(source.call, one, source.channels)
                sources.append(one.support)
                values.append(one.values)
            elif tensor is not None and support is not None:
                rows = tensor.reshape(-1, tensor.shape[-1])
                sources.append(support)
                values.append(rows if positions is None else rows.index_select(0, positions))
        targets = []
        for found, support in zip(resolved.targets, passed, strict=True):
            known = sources[found] if isinstance(found, int) else found or support
            assert known is not None
            targets.append(known)
        layout = SparseLayout(tuple(sources), tuple(targets), resolved.lengths, stored)
        return Inputs(values, layout, (), partial(self._wrap, x, resolved, targets))

    def _wrap(
        self, x: Collection, resolved: _Resolved, supports: Sequence[Support], results: Sequence[Tensor]
    ) -> list[OverNodes]:
        """Every result in the form of an input over the same slots; else a `Sparse`, or a vector for each graph."""
        wrapped: list[OverNodes] = []
        for found, support, rows in zip(resolved.targets, supports, results, strict=True):
            if isinstance(found, int) and not isinstance(like := x[found], Sparse):
                wrapped.append(_dense_again(rows, like, resolved.sources[found][1], support.slots))
            elif support.slots:
                wrapped.append(Sparse.on(support, rows))
            else:
                wrapped.append(rows if support.counts.is_batch else rows.squeeze(0))
        return wrapped

    def _passed(self, supports: object) -> list[Support | None]:
        """For every target the support that the call passes, or None."""
        targets = self.spec.targets
        if not isinstance(supports, tuple | list):
            one = supports.support if isinstance(supports, Sparse) else supports
            if not isinstance(one, Support):
                raise SupportError(
                    f"{self.call}: support must be a bellnet.Sparse, whose support a result has, or a tuple with one "
                    f"for each target, not {type(supports).__name__}."
                )
            fits = [bool(shape) and not _is_misfit(one, shape) for shape in targets]
            if not any(fits):
                shapes = ", ".join(f'"{" ".join(shape)}"' if shape else "no slots" for shape in targets)
                target = "the target is" if len(targets) == 1 else "targets are"
                advice = "" if any(targets) else "\nLeave out support."
                raise SupportError(f'{self.call}: support is over "{one.shape}", but {target} over {shapes}.{advice}')
            return [one if fit else None for fit in fits]
        if len(supports) != len(targets):
            raise SupportError(
                f"{self.call}: support must have an entry for each of {len(targets)} targets, None for those with the "
                f"support of an input of the same shape, got {len(supports)}."
            )
        passed = [one.support if isinstance(one, Sparse) else one for one in supports]
        for number, (shape, one) in enumerate(zip(targets, passed, strict=True)):
            if one is not None and not isinstance(one, Support):
                raise SupportError(
                    f"{self.call}: support[{number}] must be a bellnet.Sparse, whose support the result has, or None, "
                    f"not {type(one).__name__}."
                )
            if one is not None and (not shape or _is_misfit(one, shape)):
                over = f'is over "{" ".join(shape)}"' if shape else "has no slots: pass None"
                raise SupportError(f'{self.call}: support[{number}] is over "{one.shape}", but the target {over}.')
        return passed

    def _resolve(self, x: Collection, passed: Sequence[Support | None], sizes: Sizes) -> _Resolved:
        supports: list[tuple[Support, Shape, str]] = []
        for source, name, one in zip(self._dense.sources, self._dense.names, x, strict=True):
            if isinstance(one, Sparse):
                _check_slots(source.call, one.support, source.shape)
                supports.append((one.support, source.shape, name))
        for shape, support in zip(self.spec.targets, passed, strict=True):
            if support is not None:
                supports.append((support, shape, "the support"))
        nodes = _NodeSets(self.call, *supports[0])
        for each in supports:
            nodes.add_support(*each)
        found = [self._source(number, one, nodes) for number, one in enumerate(x)]
        self._add_sizes(nodes, sizes)
        pairs = zip(self.spec.targets, passed, strict=True)
        targets = [self._target(shape, x, nodes) if support is None else None for shape, support in pairs]
        names = {name for shape in self.spec.sources for name in shape}
        lengths = [nodes.common[name] if name in names else 0 for name in self._dense.node_sets]
        return _Resolved(found, targets, None if None in lengths else tuple(lengths))  # type: ignore[arg-type]

    def _source(self, number: int, x: OverNodes, nodes: "_NodeSets") -> tuple[Support | None, Tensor | None]:
        """The support of all tuples of nodes for a dense input, and their positions in it if it is padded."""
        if isinstance(x, Sparse):
            return None, None
        source, name = self._dense.sources[number], self._dense.names[number]
        slots, axes = source.shape, x.shape[:-1]
        n_batch = len(axes) - len(slots)
        if nodes.is_batch and len(slots) == 1 and n_batch == 0 and not isinstance(x, Padded):
            counts = nodes.counts.get(slots[0])
            total = None if counts is None else int(counts.sum())
            if total != axes[0]:
                raise ShapeError(
                    f"{self.call}: {nodes.name} is {nodes.graphs}, so {name} must have a row for every node of node "
                    f"set {slots[0]!r} in all of them, or one batch axis.\n"
                    f"{'Their number is not known' if total is None else f'There are {total}'}, and its shape is "
                    f"{tuple(x.shape)}."
                )
            return nodes.every_tuple(slots), None
        if n_batch != nodes.is_batch or (n_batch and axes[0] != nodes.n_graphs):
            needed = f"one batch axis of length {nodes.n_graphs}" if nodes.is_batch else "no batch axis"
            raise ShapeError(
                f"{self.call}: {nodes.name} is {nodes.graphs}, so {name} must have {needed}; its shape is "
                f"{tuple(x.shape)}."
            )
        for slot, length in zip(slots, axes[n_batch:], strict=True):
            if isinstance(x, Padded):
                nodes.add(slot, source.sizes(x, slot, tuple(axes[:n_batch]), length), None, name)
            else:
                nodes.add(slot, torch.full((nodes.n_graphs,), length, device=x.device), length, name)
        support = nodes.every_tuple(slots)
        if support.nnz == axes.numel():
            return support, None
        return support, _inside([nodes.counts[slot] for slot in slots], axes[n_batch:]).flatten().nonzero().flatten()

    def _add_sizes(self, nodes: "_NodeSets", sizes: Sizes) -> None:
        if sizes is None:
            return
        for name, size in check_sizes(self.call, sizes, self.spec).items():
            counts = torch.as_tensor(size, device=nodes.first.index.device).to(torch.int64, copy=True)
            if counts.ndim > nodes.is_batch or (counts.ndim and len(counts) != nodes.n_graphs):
                raise SizesError(
                    f"{self.call}: {nodes.name} is {nodes.graphs}, but sizes[{name!r}] has the shape "
                    f"{tuple(counts.shape)}.\nPass one number, or for a batch one for each graph."
                )
            nodes.add(name, counts.expand(nodes.n_graphs), None, "sizes")

    def _target(self, shape: Shape, x: Collection, nodes: "_NodeSets") -> Support | int:
        """The support of a target: that of an input over the same slots, a `Sparse` before others, or all nodes."""
        same = [number for number, source in enumerate(self.spec.sources) if source == shape]
        if same:
            return min(same, key=lambda number: not isinstance(x[number], Sparse))
        if len(shape) > 1:
            each = "; or a tuple with one for each target" if len(self.spec.targets) > 1 else ""
            raise SupportError(
                f'{self.call}: the support of the result over "{" ".join(shape)}" is not known, since no input is over '
                f"these slots.\nPass it in the call: {self._dense.called}, support=...), with a bellnet.Sparse whose "
                f"stored entries the result has; its values are not used{each}."
            )
        if missing := [name for name in shape if name not in nodes.counts]:
            raise missing_sizes(self.call, missing)
        return nodes.every_tuple(shape)


class _NodeSets:
    """The number of nodes of every node set in every graph, collected from the parts of a call, which must agree."""

    def __init__(self, call: str, first: Support, shape: Shape, name: str) -> None:
        self._call, self.first, self._shape = call, first, shape
        self.name = "the input" if name == "x" else name
        self.is_batch, self.n_graphs = first.counts.is_batch, first.counts.n_graphs
        self.graphs = _graphs(first.counts)
        self.counts: dict[str, Tensor] = {}
        self.common: dict[str, int | None] = {}
        self._names: dict[str, str] = {}

    def add_support(self, support: Support, shape: Shape, name: str) -> None:
        """Add the node sets of another support."""
        counts = support.counts
        if (counts.is_batch, counts.n_graphs) != (self.is_batch, self.n_graphs):
            raise SupportError(f"{self._call}: {self.name} is {self.graphs}, but {name} is that of {_graphs(counts)}.")
        device = self.first.index.device
        if support.index.device != device:
            raise SupportError(
                f"{self._call}: {self.name} is on {device}, but {name} is on {support.index.device}.\n"
                f'Move one of them: .to("{device}").'
            )
        for slot in dict.fromkeys(shape):
            key = counts.key(slot)
            self.add(slot, counts.by_set[key], counts.common[key], name)

    def add(self, slot: str, counts: Tensor, common: int | None, name: str) -> None:
        """Add a node set: its number of nodes in each graph, and in all graphs if these have the same."""
        known, origin = self.counts.setdefault(slot, counts), self._names.setdefault(slot, name)
        self.common.setdefault(slot, common)
        if known is counts or torch.equal(known, counts):
            return
        graph = int((known != counts).nonzero()[0])
        raise SupportError(
            f"{self._call}: graph {graph} has {int(known[graph])} nodes of node set {slot!r} in {origin}, but "
            f"{int(counts[graph])} in {name}.\nAll must be about the same nodes; Sparse(..., sizes=) and "
            "from_edge_index(..., n_nodes=) set their number."
        )

    def every_tuple(self, shape: Shape) -> Support:
        """All tuples of nodes, cached with the first support if that has their node sets; every graph for no slots."""
        first = self.first
        if not shape:
            return first.cached(("support of all nodes", ()), lambda: Support.every_graph(first.counts))
        if not set(shape) <= set(self._shape):
            by_set = {slot: self.counts[slot] for slot in dict.fromkeys(shape)}
            return _every_tuple(NodeCounts(by_set, is_batch=self.is_batch), shape)
        if len(shape) == 1:
            return every_node(first, shape[0])
        return first.cached(("support of all nodes", shape), lambda: _every_tuple(first.counts, shape))


def _graphs(counts: NodeCounts) -> str:
    return f"a batch of {counts.n_graphs}" if counts.is_batch else "one graph"


def _every_tuple(counts: NodeCounts, shape: Shape) -> Support:
    if len(shape) == 1:
        return Support.every_node(counts, shape[0])
    numbers = [counts.by_set[counts.key(slot)] for slot in shape]
    index = _inside(numbers, [int(one.max()) if len(one) else 0 for one in numbers]).nonzero().T.contiguous()
    return Support(index if counts.is_batch else index[1:], counts.only(shape), shape)


def _inside(counts: Sequence[Tensor], lengths: Sequence[int]) -> Tensor:
    """(n_graphs, *lengths): True where every slot has a node."""
    inside = torch.ones(len(counts[0]), *lengths, dtype=torch.bool, device=counts[0].device)
    for axis, (count, length) in enumerate(zip(counts, lengths, strict=True)):
        around = [1] * len(lengths)
        around[axis] = length
        inside = inside & (torch.arange(length, device=count.device) < count.unsqueeze(-1)).reshape(len(count), *around)
    return inside


def _dense_again(rows: Tensor, like: Tensor | Padded, positions: Tensor | None, slots: Shape) -> OverNodes:
    """A dense or padded tensor of rows for all tuples of nodes."""
    axes = like.shape[:-1]
    if positions is not None:
        rows = rows.new_zeros(axes.numel(), rows.shape[-1]).index_copy(0, positions, rows)
    values = rows.reshape(*axes, rows.shape[-1])
    return zero_padded(values, like, slots) if isinstance(like, Padded) else values


def check_sparse(call: str, x: Sparse, slots: Shape, channels: int | None) -> None:
    """Refuse a Sparse over other slots, or with another number of channels; None for any number."""
    _check_slots(call, x.support, slots)
    _check_channels(call, x, channels)


def _check_slots(call: str, support: Support, slots: Shape) -> None:
    if _is_misfit(support, slots):
        expected = f'a Sparse over "{" ".join(slots)}"' if slots else "one vector for each graph, a tensor"
        raise SupportError(f'{call}: expected {expected}, got a Sparse over "{support.shape}".')


def _check_channels(call: str, x: Sparse, channels: int | None) -> None:
    if channels is not None and x.values.shape[1] != channels:
        raise ShapeError(f"{call}: expected {channels} channels, got a Sparse with {x.values.shape[1]}.")


def _is_misfit(support: Support, slots: Shape) -> bool:
    """Whether a support is over other slots."""
    return support.slots != slots if support.counts.is_named else support.order != len(slots)
