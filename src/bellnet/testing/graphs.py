"""Graphs of different sizes, one by one and as one padded batch with garbage outside the true sizes."""

from collections.abc import Mapping, Sequence
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
        apart: Each graph as a batch of one, (1, node axes, channels).
        values: All graphs, padded: (graphs, node axes, channels).
    """

    spec: Spec
    sizes: dict[str, list[int]]
    apart: list[Tensor]
    values: Tensor

    @property
    def together(self) -> Padded | Tensor:
        """The padded batch; a plain tensor if the source has no node sets, so that there is nothing to pad."""
        names = tuple(dict.fromkeys(self.spec.source))
        counts = {name: torch.tensor(self.sizes[name], device=self.values.device) for name in names}
        if not names:
            return self.values
        return Padded(self.values, counts[names[0]] if len(names) == 1 else counts)

    def missing(self, graph: int | None = None) -> dict[str, int | Tensor]:
        """The sizes of the node sets that only the target has, of one graph or of all."""
        if graph is not None:
            return {name: self.sizes[name][graph] for name in self.spec.target_only}
        return {name: torch.tensor(self.sizes[name], device=self.values.device) for name in self.spec.target_only}

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
    lengths = (max(chosen[name]) + _EXTRA for name in spec.source)
    values = subject.draw((n_graphs, *lengths, subject.channels[0]), generator)
    # Most entries of one graph are positive and of the next negative: a maximum that meets a zero shows then.
    values = values + _SHIFT * (1 - 2 * (torch.arange(n_graphs) % 2)).to(values).reshape(-1, *[1] * (values.ndim - 1))
    graphs = Graphs(spec, chosen, [values] * n_graphs, values)
    apart = [values[graphs.inside(spec.source, graph)].clone().requires_grad_() for graph in range(n_graphs)]
    outside = graphs.outside(spec.source, values)
    values = torch.where(outside, torch.full_like(values, torch.nan) if nan else GARBAGE * values, values)
    return Graphs(spec, chosen, apart, values.requires_grad_())


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
