"""Graphs of different sizes, one by one and as one padded batch with garbage outside the true sizes."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from bellnet.errors import SizesError
from bellnet.spec import Spec
from bellnet.tensors import Padded
from bellnet.testing.subject import Subject

GARBAGE = 5e3
"""How large garbage is: enough to be noticed, and finite even in half precision."""

_EXTRA = 2
"""By how much all graphs are padded, the largest too."""

_SIZES = ((4, 1, 3), (2, 5, 1), (3, 2, 4))
"""For one node set after the other: how many nodes each of three graphs has."""

_SHIFT = 2.0
"""How far from zero the entries of a graph lie on average."""

GivenSizes = Sequence[int] | Mapping[str, Sequence[int]] | None


@dataclass(frozen=True)
class Graphs:
    """The same random graphs twice, ready to be differentiated.

    Attributes:
        spec: The spec of the module they are for.
        sizes: For every node set how many nodes each graph has.
        apart: Each graph as a batch of one: for every source (1, node axes, channels).
        values: All graphs, padded: for every source (graphs, node axes, channels).
    """

    spec: Spec
    sizes: dict[str, list[int]]
    apart: list[list[Tensor]]
    values: list[Tensor]

    @property
    def together(self) -> list[Padded | Tensor]:
        """The padded batch of every source; a plain tensor if it has no node sets, so that there is nothing to pad."""
        return [self._padded(values, shape) for values, shape in zip(self.values, self.spec.sources, strict=True)]

    def _padded(self, values: Tensor, shape: tuple[str, ...]) -> Padded | Tensor:
        counts = self._counts(dict.fromkeys(shape))
        if not counts:
            return values
        return Padded(values, counts[shape[0]] if len(counts) == 1 else counts)

    def _counts(self, names: Iterable[str]) -> dict[str, Tensor]:
        return {name: torch.tensor(self.sizes[name], device=self.values[0].device) for name in names}

    def missing(self, graph: int | None = None) -> dict[str, int | Tensor]:
        """The sizes of the node sets that only the target has, of one graph or of all."""
        if graph is not None:
            return {name: self.sizes[name][graph] for name in self.spec.target_only}
        return {**self._counts(self.spec.target_only)}

    def inside(self, axes: tuple[str, ...], graph: int) -> tuple[slice, ...]:
        """Where one graph stands in a padded tensor with these axes."""
        return slice(graph, graph + 1), *(slice(self.sizes[name][graph]) for name in axes)

    def outside(self, axes: tuple[str, ...], tensor: Tensor) -> Tensor:
        """Which entries of a padded tensor with these axes belong to no graph."""
        outside = torch.ones_like(tensor, dtype=torch.bool)
        for graph in range(len(self.apart)):
            outside[self.inside(axes, graph)] = False
        return outside


def draw_graphs(subject: Subject, sizes: GivenSizes, *, empty: bool, nan: bool) -> Graphs:
    """Random graphs for a subject."""
    spec = subject.spec
    chosen = _choose(spec, sizes, empty=empty)
    generator = torch.Generator().manual_seed(subject.seed)
    n_graphs = max(len(counts) for counts in chosen.values())
    apart: list[list[Tensor]] = [[] for _ in range(n_graphs)]
    padded: list[Tensor] = []
    graphs = Graphs(spec, chosen, apart, padded)
    for shape, channels in zip(spec.sources, subject.channels, strict=True):
        lengths = (max(chosen[name]) + _EXTRA for name in shape)
        values = subject.draw((n_graphs, *lengths, channels), generator)
        # Most entries of one graph are positive and of the next negative: a maximum that meets a zero shows then.
        sign = (1 - 2 * (torch.arange(n_graphs) % 2)).to(values)
        values = values + _SHIFT * sign.reshape(-1, *[1] * (values.ndim - 1))
        for graph, parts in enumerate(apart):
            parts.append(values[graphs.inside(shape, graph)].clone().requires_grad_())
        outside = graphs.outside(shape, values)
        values = torch.where(outside, torch.full_like(values, torch.nan) if nan else GARBAGE * values, values)
        padded.append(values.requires_grad_())
    return graphs


def _choose(spec: Spec, sizes: GivenSizes, *, empty: bool) -> dict[str, list[int]]:
    names = spec.node_sets
    if not names:
        raise SizesError(f'The spec "{spec}" has no nodes, so there is nothing to pad.')
    if sizes is None:
        chosen = {name: list(_SIZES[number % len(_SIZES)]) for number, name in enumerate(names)}
    elif isinstance(sizes, Mapping):
        if missing := [name for name in names if name not in sizes]:
            raise SizesError(
                f'The check of "{spec}" needs the sizes of every node set; there are none for '
                f"{', '.join(map(repr, missing))}."
            )
        chosen = {name: list(sizes[name]) for name in names}
    else:
        chosen = {name: list(sizes) for name in names}
    if len({len(counts) for counts in chosen.values()}) > 1 or not chosen[names[0]]:
        raise SizesError(
            f'The check of "{spec}" needs one size of every node set for each graph, and at least one graph, but came '
            f"{chosen}."
        )
    return {name: counts + [0] * empty for name, counts in chosen.items()}
