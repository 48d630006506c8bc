"""What a layer between several tensors was handed: all about the same nodes, and brought into one form."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor

from bellnet.backends import DenseLayout, Layout, Nodes
from bellnet.errors import ShapeError, SizesError, TensorError
from bellnet.nn.given_sizes import GivenSizes
from bellnet.nn.inputs import Input, Reception, add_given
from bellnet.spec import Spec, text_of
from bellnet.tensors import Padded, Sparse, is_concrete
from bellnet.tensors.padded import cached_by_sizes, share_sizes, zero_padded

OverNodes = Tensor | Padded | Sparse
Collection = tuple[OverNodes, ...]


class Received(NamedTuple):
    """Values in the form in which a layout has them, and how results become what a caller gets.

    Attributes:
        values: For every source.
        layout: How they are held.
        wrap: From the result of every target.
    """

    values: Sequence[Tensor]
    layout: Layout
    wrap: Callable[[Sequence[Tensor]], list[OverNodes]]


class SeveralReception:
    """Checks what comes to one layer between several tensors.

    Args:
        call: How messages name the layer.
        spec: Its spec.
        channels: Of every source; None for any number.
        names: What messages call the sources; the entries of a tuple x if not given.
        called: How messages write a call, up to its options.
    """

    def __init__(
        self,
        call: str,
        spec: Spec,
        channels: Sequence[int | None],
        *,
        names: Sequence[str] | None = None,
        called: str = "layer(x",
    ) -> None:
        self.call, self.spec, self.called = call, spec, called
        n_sources = len(spec.sources)
        of_tuple = ["x"] if n_sources == 1 else [f"x[{number}]" for number in range(n_sources)]
        self.names = of_tuple if names is None else list(names)
        self.parts = [
            Reception(call if n_sources == 1 else f"{call} at {name}", Spec(shape, ()), width, forgets=False)
            for name, shape, width in zip(self.names, spec.sources, channels, strict=True)
        ]

    def collection(self, x: object) -> Collection:
        """The tensors of every source, if there are so many; what they are is not looked at."""
        if len(self.parts) == 1:
            return (x,)  # type: ignore[return-value]
        if not isinstance(x, tuple | list):
            alone = all(len(shape) <= 1 for shape in self.spec.sources)
            slots = " ".join(name for shape in self.spec.sources for name in shape)
            advice = f'\nIf they are the slots of one tensor, write "{slots}", without commas.' if alone else ""
            raise TensorError(
                f'{self.call} takes a tuple of {len(self.parts)} tensors, over "{text_of(self.spec.sources)}", not '
                f"{type(x).__module__}.{type(x).__qualname__}.{advice}"
            )
        if len(x) != len(self.parts):
            raise TensorError(
                f'{self.call} takes a tuple of {len(self.parts)} tensors, over "{text_of(self.spec.sources)}", but '
                f"{len(x)} came."
            )
        return tuple(x)

    def receive(self, x: Sequence[Tensor | Padded], sizes: GivenSizes) -> Received:
        """Check tensors and Padded, and bring them into one form."""
        inputs = [part.receive(one) for part, one in zip(self.parts, x, strict=True)]
        batch = self._batch(inputs)
        padded = [one for one in x if isinstance(one, Padded)]
        lengths, counts = self._nodes(x, inputs)
        device, given = inputs[0].tensor.device, bool(sizes or self.spec.target_only)

        def fit(given: Tensor, name: str) -> Tensor:
            return self.parts[0].fitting(given.to(device), name, batch, None).reshape(-1)

        if given:
            add_given(self.call, self.spec, {} if sizes is None else sizes, lengths, counts, fit)
        in_order = tuple(lengths[name] for name in self.spec.node_sets)

        def make() -> Nodes:
            if not counts:
                return Nodes(in_order)
            rows = [counts.get(name) for name in self.spec.node_sets]
            like = next(row for row in rows if row is not None)
            pairs = zip(rows, in_order, strict=True)
            return Nodes(
                in_order, torch.stack([torch.full_like(like, length) if row is None else row for row, length in pairs])
            )

        if padded and not given and all(share_sizes(one, padded[0]) for one in padded):
            nodes = cached_by_sizes(padded[0], (self.spec, batch, in_order), make)
        else:
            nodes = make()
        wrap = partial(self._wrapped, x=x, nodes=nodes, batch=batch, names=set(counts))
        return Received([one.tensor for one in inputs], DenseLayout(nodes), wrap)

    def _batch(self, inputs: Sequence[Input]) -> tuple[int, ...]:
        batch = inputs[0].batch
        for name, one in zip(self.names, inputs, strict=True):
            if one.batch != batch:
                raise ShapeError(
                    f"{self.call}: the batch axes of {self.names[0]} are {batch}, but those of {name} are {one.batch}."
                    "\nAll tensors must be about the same graphs."
                )
        return batch

    def _nodes(self, x: Sequence[Tensor | Padded], inputs: Sequence[Input]) -> tuple[dict[str, int], dict[str, Tensor]]:
        """The lengths of all node sets of the sources, and the numbers of nodes of those that are padded."""
        lengths: dict[str, int] = {}
        counts: dict[str, Tensor] = {}
        first: dict[str, int] = {}
        for number, (part, one) in enumerate(zip(self.parts, inputs, strict=True)):
            for place, name in enumerate(part.node_sets):
                row = None if one.nodes.counts is None else one.nodes.counts[place]
                before = first.setdefault(name, number)
                if before == number:
                    lengths[name] = one.nodes.lengths[place]
                    if row is not None:
                        counts[name] = row
                    continue
                names = self.names[before], self.names[number]
                if lengths[name] != one.nodes.lengths[place]:
                    raise ShapeError(
                        f"{self.call}: node set {name!r} has length {lengths[name]} in {names[0]}, but "
                        f"{one.nodes.lengths[place]} in {names[1]}.\nAll tensors must be about the same nodes."
                    )
                self._check_counts(name, names, counts.get(name), row, same=share_sizes(x[before], x[number]))
        return lengths, counts

    def _check_counts(
        self, name: str, names: tuple[str, str], one: Tensor | None, other: Tensor | None, *, same: bool
    ) -> None:
        if (one is None) != (other is None):
            plain, padded = names if one is None else names[::-1]
            raise SizesError(
                f"{self.call}: {padded} is a Padded with sizes of node set {name!r}, but {plain} is a tensor without.\n"
                f"Pass Padded({plain}, sizes) with the same sizes."
            )
        if same or one is None or other is None or not is_concrete(one) or torch.equal(one, other):
            return
        graph = int((one != other).nonzero()[0])
        raise SizesError(
            f"{self.call}: of node set {name!r} graph {graph} has {int(one[graph])} nodes in {names[0]}, but "
            f"{int(other[graph])} in {names[1]}.\nAll tensors must be about the same nodes."
        )

    def _wrapped(
        self,
        results: Sequence[Tensor],
        *,
        x: Sequence[Tensor | Padded],
        nodes: Nodes,
        batch: tuple[int, ...],
        names: set[str],
    ) -> list[OverNodes]:
        """A Padded for every target with one of these node sets, of which graphs may have different numbers."""
        if len(batch) != 1:
            results = [one.reshape(*batch, *one.shape[1:]) for one in results]
        if nodes.counts is None:
            return list(results)
        padded = [bool(set(shape) & names) for shape in self.spec.targets]
        needed = {name for shape, one in zip(self.spec.targets, padded, strict=True) if one for name in shape}
        like = self._with_sizes_of(needed, x, batch)
        wrapped: list[OverNodes] = []
        for shape, result, is_padded in zip(self.spec.targets, results, padded, strict=True):
            if not is_padded:
                wrapped.append(result)
                continue
            if like is None:
                rows = zip(self.spec.node_sets, nodes.counts, strict=True)
                sizes = {name: row.reshape(batch) for name, row in rows if name in needed}
                like = zero_padded(result, sizes if len(sizes) > 1 else next(iter(sizes.values())), shape)
                wrapped.append(like)
            else:
                wrapped.append(zero_padded(result, like, shape))
        return wrapped

    def _with_sizes_of(self, needed: set[str], x: Sequence[Tensor | Padded], batch: tuple[int, ...]) -> Padded | None:
        """One of the inputs that has the sizes of all these node sets, for every graph."""
        for part, one in zip(self.parts, x, strict=True):
            if isinstance(one, Padded) and needed <= set(part.names):
                sizes = one.sizes
                rows = [sizes[name] for name in needed] if isinstance(sizes, Mapping) else [sizes]
                if all(tuple(row.shape) == batch for row in rows):
                    return one
        return None
