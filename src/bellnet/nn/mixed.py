"""Several tensors of which some are listed: the others are listed as well, and results become again what those were."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor

from bellnet.backends import SparseLayout
from bellnet.errors import ShapeError, SizesError, SupportError
from bellnet.nn.given_sizes import GivenSizes, check_given
from bellnet.nn.listed import check_sparse, is_misfit
from bellnet.nn.several import Collection, OverNodes, Received, SeveralReception
from bellnet.spec import Shape
from bellnet.tensors import NodeCounts, Padded, Sparse, Support
from bellnet.tensors.padded import zero_padded

GivenSupports = Sparse | Support | Sequence[Sparse | Support | None] | None
"""One support, for all targets over its slots, or one for each target."""


class Place(NamedTuple):
    """Where values stand in listed tuples.

    Attributes:
        support: The tuples.
        back: From a row for each of them to what a caller gets.
    """

    support: Support
    back: Callable[[Tensor], OverNodes]


class Known:
    """What is known of the nodes: of every node set how many each graph has, and who says so."""

    def __init__(self, call: str, first: Support, name: str) -> None:
        self.call, self.first, self.name = call, first, name
        self.is_batch, self.n_graphs = first.counts.is_batch, first.counts.n_graphs
        self.counts: dict[str, Tensor] = {}
        self.common: dict[str, int | None] = {}
        self._said: dict[str, str] = {}

    @property
    def graphs(self) -> str:
        """How many graphs there are, in words."""
        return f"a batch of {self.n_graphs}" if self.is_batch else "one graph"

    def add_support(self, support: Support, slots: Shape, name: str) -> None:
        """What another support says; refuses what does not agree."""
        counts = support.counts
        if (counts.is_batch, counts.n_graphs) != (self.is_batch, self.n_graphs):
            other = f"a batch of {counts.n_graphs}" if counts.is_batch else "one graph"
            raise SupportError(f"{self.call}: {self.name} is {self.graphs}, but {name} is that of {other}.")
        if support.index.device != self.first.index.device:
            raise SupportError(
                f"{self.call}: {self.name} is on {self.first.index.device}, but {name} is on {support.index.device}.\n"
                f'Move one of them: .to("{self.first.index.device}").'
            )
        for slot in dict.fromkeys(slots):
            key = counts.key(slot)
            self.add(slot, counts.by_set[key], counts.common[key], name)

    def add(self, slot: str, counts: Tensor, common: int | None, name: str) -> None:
        """The numbers of nodes of a set, one for each graph, and that of all graphs if they have the same."""
        here = self.counts.setdefault(slot, counts)
        said = self._said.setdefault(slot, name)
        self.common.setdefault(slot, common)
        if here is counts or torch.equal(here, counts):
            return
        graph = int((here != counts).nonzero()[0])
        raise SupportError(
            f"{self.call}: of node set {slot!r} graph {graph} has {int(here[graph])} nodes by {said}, but "
            f"{int(counts[graph])} by {name}.\n"
            "All tensors must be about the same nodes; Sparse(..., sizes=) and from_edge_index(..., n_nodes=) say how "
            "many."
        )

    def cached(self, slots: Shape, key: str, make: Callable[[NodeCounts], Support]) -> Support:
        """A support that depends on these node sets alone, kept with the first support if that has all of them."""
        first = self.first
        if set(slots) <= set(first.slots):
            return first.cached((key, slots), lambda: make(first.counts))
        by_set = {slot: self.counts[slot] for slot in dict.fromkeys(slots)}
        return make(NodeCounts(by_set, is_batch=self.is_batch))


class MixedReception:
    """Checks what comes to one layer between several tensors, some of them listed."""

    def __init__(self, several: SeveralReception) -> None:
        self._several, self.call, self.spec = several, several.call, several.spec

    def receive(self, x: Collection, given: GivenSupports, sizes: GivenSizes, *, listed: bool) -> Received:
        """Check inputs and find the supports of results; `listed` says by what means divide."""
        supports = self._given(given)
        known = self._known(x, supports)
        places, values = [], []
        for number, one in enumerate(x):
            place, rows = self._listed(number, one, known)
            places.append(place)
            values.append(rows)
        self._add_sizes(known, sizes)
        pairs = zip(self.spec.targets, supports, strict=True)
        targets = [self._target(shape, support, x, places, known) for shape, support in pairs]
        sources = tuple(place.support for place in places)
        layout = SparseLayout(sources, tuple(place.support for place in targets), self._lengths(known), listed)
        backs = [place.back for place in targets]
        return Received(values, layout, lambda results: [back(one) for back, one in zip(backs, results, strict=True)])

    def _given(self, given: GivenSupports) -> list[Support | None]:
        """The support of every target, where one was given."""
        targets = self.spec.targets
        if given is None:
            return [None] * len(targets)
        if isinstance(given, tuple | list):
            if len(given) != len(targets):
                raise SupportError(
                    f"{self.call}: support must have an entry for each of {len(targets)} targets, None for those that "
                    f"list what an input of the same shape does, but {len(given)} came."
                )
            supports = [one.support if isinstance(one, Sparse) else one for one in given]
            for number, (shape, support) in enumerate(zip(targets, supports, strict=True)):
                if support is not None:
                    self._check_support(shape, support, f"support[{number}]")
            return supports
        one = given.support if isinstance(given, Sparse) else given
        if not isinstance(one, Support):
            raise SupportError(
                f"{self.call}: support must be a bellnet.Sparse, whose tuples a result is to list, or a tuple with one "
                f"for each target, not {type(given).__name__}."
            )
        fits = [bool(shape) and not is_misfit(one, shape) for shape in targets]
        if not any(fits):
            shapes = ", ".join(f'"{" ".join(shape)}"' for shape in targets)
            raise SupportError(
                f'{self.call}: targets are over {shapes}, but the support that was given is over "{one.shape}".'
            )
        return [one if fit else None for fit in fits]

    def _check_support(self, shape: Shape, support: object, name: str) -> None:
        if not isinstance(support, Support):
            raise SupportError(
                f"{self.call}: {name} must be a bellnet.Sparse, whose tuples the result is to list, or None, not "
                f"{type(support).__name__}."
            )
        if not shape or is_misfit(support, shape):
            over = f'over "{" ".join(shape)}"' if shape else "without slots"
            raise SupportError(f'{self.call}: {name} is over "{support.shape}", but that target is {over}.')

    def _known(self, x: Collection, given: Sequence[Support | None]) -> Known:
        """What listed tensors and given supports say of the nodes."""
        said: list[tuple[Support, Shape, str]] = []
        for name, part, one in zip(self._several.names, self._several.parts, x, strict=True):
            if isinstance(one, Sparse):
                check_sparse(part.call, one, part.spec.source, part.channels)
                said.append((one.support, part.spec.source, name))
        for shape, support in zip(self.spec.targets, given, strict=True):
            if support is not None:
                said.append((support, shape, "the support"))
        known = Known(self.call, said[0][0], said[0][2])
        for support, shape, name in said:
            known.add_support(support, shape, name)
        return known

    def _listed(self, number: int, x: OverNodes, known: Known) -> tuple[Place, Tensor]:
        """An input as values of listed tuples, and how results over the same slots become what it is."""
        if isinstance(x, Sparse):
            return Place(x.support, partial(Sparse.on, x.support)), x.values
        part, name = self._several.parts[number], self._several.names[number]
        values, slots = x.values if isinstance(x, Padded) else x, part.spec.source
        part.check(values)
        n_batch = values.ndim - len(slots) - 1
        if known.is_batch and len(slots) == 1 and n_batch == 0 and not isinstance(x, Padded):
            return self._nodes_in_a_row(values, slots, name, known)
        if n_batch != known.is_batch or (n_batch and len(values) != known.n_graphs):
            raise ShapeError(
                f"{self.call}: {known.name} is {known.graphs}, so {name} must have "
                f"{f'one batch axis of length {known.n_graphs}' if known.is_batch else 'no batch axis'}; its shape is "
                f"{tuple(values.shape)}."
            )
        lengths = dict(zip(slots, values.shape[n_batch:-1], strict=True))
        is_full = True
        for slot, length in lengths.items():
            if isinstance(x, Padded):
                sizes = part.padded_sizes(x, slot, tuple(values.shape[:n_batch]), length).reshape(-1)
            else:
                sizes = torch.full((known.n_graphs,), length, device=values.device)
            known.add(slot, sizes, None if isinstance(x, Padded) else length, name)
            is_full = is_full and bool((sizes == length).all())
        support = self._every_tuple(slots, known)
        flat = values.reshape(-1, values.shape[-1])
        places = None if is_full else self._places(slots, tuple(values.shape[n_batch:-1]), known)
        back = partial(_dense_again, x, places, values.shape[:-1], slots)
        return Place(support, back), flat if places is None else flat.index_select(0, places)

    def _nodes_in_a_row(self, values: Tensor, slots: Shape, name: str, known: Known) -> tuple[Place, Tensor]:
        """The nodes of all graphs one after the other, as PyTorch Geometric has them."""
        counts = known.counts.get(slots[0])
        total = None if counts is None else int(counts.sum())
        if total != len(values):
            there = "nobody says how many there are" if total is None else f"there are {total}"
            raise ShapeError(
                f"{self.call}: {known.name} is {known.graphs}, so {name} must have a row for every node of node set "
                f"{slots[0]!r} in all of them, or one batch axis.\nOf these {there}, and its shape is "
                f"{tuple(values.shape)}."
            )
        return Place(self._every_tuple(slots, known), lambda rows: rows), values

    def _every_tuple(self, slots: Shape, known: Known) -> Support:
        """All tuples of nodes, or every graph for none."""
        if not slots:
            return known.first.cached("every graph support", lambda: Support.every_graph(known.first.counts))
        if len(slots) == 1:
            return known.cached(slots, "every node of", lambda counts: Support.every_node(counts, slots[0]))
        return known.cached(slots, "every tuple of", lambda counts: _every_tuple(counts, slots))

    def _places(self, slots: Shape, lengths: tuple[int, ...], known: Known) -> Tensor:
        """Where the tuples of nodes stand in a padded tensor."""
        counts = [known.counts[slot] for slot in slots]
        return _inside(counts, lengths).flatten().nonzero().flatten()

    def _add_sizes(self, known: Known, sizes: GivenSizes) -> None:
        given = check_given(self.call, sizes or {}, self.spec.node_sets, self.spec.target_only)
        for name, size in given.items():
            counts = torch.as_tensor(size, device=known.first.index.device).to(torch.int64, copy=True)
            if counts.ndim > known.is_batch or (counts.ndim and len(counts) != known.n_graphs):
                raise SizesError(
                    f"{self.call}: {known.name} is {known.graphs}, but sizes[{name!r}] has the shape "
                    f"{tuple(counts.shape)}.\nGive one number, or for a batch one for each graph."
                )
            known.add(name, counts.expand(known.n_graphs), None, "sizes")

    def _target(
        self, shape: Shape, given: Support | None, x: Collection, places: Sequence[Place], known: Known
    ) -> Place:
        """Where the result of a target stands, and what is made of it."""
        if given is not None:
            return Place(given, partial(Sparse.on, given))
        alike = [number for number, source in enumerate(self.spec.sources) if source == shape]
        alike.sort(key=lambda number: not isinstance(x[number], Sparse))
        if alike:
            return places[alike[0]]
        if len(shape) > 1:
            several = "; or a tuple with one for each target" if len(self.spec.targets) > 1 else ""
            raise SupportError(
                f'{self.call}: which tuples over "{" ".join(shape)}" is a result to list? No input is over these '
                f"slots.\nPass them in the call: {self._several.called}, support=...), with a bellnet.Sparse whose "
                f"tuples are taken and whose values are not looked at{several}."
            )
        if missing := [name for name in shape if name not in known.counts]:
            raise SizesError(
                f"{self.call}: only targets have node set {missing[0]!r}, so the input cannot tell its length.\n"
                f"Pass it in the call: layer(x, sizes={{{missing[0]!r}: 10}})."
            )
        support = self._every_tuple(shape, known)
        if shape:
            return Place(support, partial(Sparse.on, support))
        return Place(support, lambda rows: rows if known.is_batch else rows.squeeze(0))

    def _lengths(self, known: Known) -> tuple[int, ...] | None:
        """The number of nodes of every node set that can be summed over, if all graphs have the same; else None."""
        sources = {name for shape in self.spec.sources for name in shape}
        lengths = [known.common[name] if name in sources else 0 for name in self.spec.node_sets]
        return None if None in lengths else tuple(lengths)  # type: ignore[arg-type]


def _inside(counts: Sequence[Tensor], lengths: Sequence[int]) -> Tensor:
    """(n_graphs, *lengths): where there is a node in every slot."""
    inside = torch.ones(len(counts[0]), *lengths, dtype=torch.bool, device=counts[0].device)
    for axis, (several, length) in enumerate(zip(counts, lengths, strict=True)):
        around = [1] * len(lengths)
        around[axis] = length
        there = torch.arange(length, device=several.device) < several.unsqueeze(-1)
        inside = inside & there.reshape(len(several), *around)
    return inside


def _every_tuple(counts: NodeCounts, slots: Shape) -> Support:
    numbers = [counts.by_set[counts.key(slot)] for slot in slots]
    lengths = [int(several.max()) if len(several) else 0 for several in numbers]
    index = _inside(numbers, lengths).nonzero().T.contiguous()
    return Support(index if counts.is_batch else index[1:], counts.only(slots), slots)


def _dense_again(x: Tensor | Padded, places: Tensor | None, shape: torch.Size, slots: Shape, rows: Tensor) -> OverNodes:
    """Rows of all tuples of nodes in the form of an input."""
    if places is not None:
        rows = rows.new_zeros(shape.numel(), rows.shape[-1]).index_copy(0, places, rows)
    values = rows.reshape(*shape, rows.shape[-1])
    return zero_padded(values, x, slots) if isinstance(x, Padded) else values
