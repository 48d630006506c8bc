"""Initial weights that keep the second moment of the activations, whatever the order and the number of nodes.

Independent weights for every diagram would not: several diagrams add to a diagonal, which would grow with depth, and a
mean of independent entries is nearly zero. Therefore independent coefficients are drawn for maps that do not overlap,
and converted to coefficients of diagrams.

On the target side these are maps onto single orbits: only maps for its own equality pattern reach an entry of the
output. On the source side they are the components of an analysis of variance: the mean of all entries, the effects of
rows and of columns, the remainder. The components of a tensor are orthogonal, so their second moments add up to that of
the tensor, and coefficients of the right variance keep the sum.
"""

from collections import Counter
from collections.abc import Iterable
from functools import lru_cache
from itertools import combinations, product
from math import perm, prod

import torch
from torch import Tensor

from bellnet.combinatorics import Partition, canonical, orbit_size, stirling2
from bellnet.plan import Diagram, Entries, Plan

RELU_GAIN = 2.0
SMALL_SHARE = 0.1

Axes = tuple[int, ...]
"""The number of axes over every node set."""


def initial_weight(
    plan: Plan, in_channels: int, out_channels: int, *, mean: bool, generator: torch.Generator | None = None
) -> Tensor:
    """Draw a weight (n_maps, in_channels, out_channels) for diagrams, in float32 on the CPU.

    Args:
        plan: The maps.
        in_channels: The number of channels of the input.
        out_channels: The number of channels of the output.
        mean: Whether the layer takes means. With sums no weights keep the second moment for every number of nodes, and
            the source is not split into components.
        generator: The source of random numbers, on the CPU; torch's own if None.
    """
    cpu = torch.device("cpu")
    shares = torch.tensor(variance_shares(plan), dtype=torch.float32, device=cpu)
    scale = (shares * RELU_GAIN / in_channels).sqrt().unsqueeze(-1)
    shape = plan.n_maps, in_channels * out_channels
    weight = torch.randn(shape, generator=generator, dtype=torch.float32, device=cpu) * scale
    if mean:
        weight = _multiply(_components_to_contractions(plan), weight)
    weight = _multiply(_orbits_to_broadcasts(plan), weight)
    return weight.reshape(plan.n_maps, in_channels, out_channels)


def shares_of_sources(plan: Plan) -> list[float]:
    """For every pair of a source and a target the share of the source in the variance of the target; they sum to one.

    A source with more axes than the target loses components, so it gets a small share where others fit.

    >>> from bellnet import plan
    >>> [round(share, 2) for share in shares_of_sources(plan("n n, n -> n n, n"))]
    [0.5, 0.09, 0.5, 0.91]
    """
    sources, targets = ([_count_sets(plan, sets) for sets in shapes] for shapes in plan.spec.numbered)
    shares = []
    for source in sources:
        for target in targets:
            fit = [_fits(one, target) for one in sources]
            portions = [1.0 if one or not any(fit) else SMALL_SHARE for one in fit]
            shares.append((1.0 if _fits(source, target) or not any(fit) else SMALL_SHARE) / sum(portions))
    return shares


@lru_cache(maxsize=256)
def variance_shares(plan: Plan) -> tuple[float, ...]:
    """For every map the variance of its coefficient with which the output has the second moment of the input.

    The diagonals of the source share the variance of every orbit of the output, and each divides its share among the
    ways to place its components. A map that represents several, which are equal by a declared symmetry, has the shares
    of all of them. Over unordered slots of the target it represents the average of m different maps, which has an m-th
    of their second moment.
    """
    groups, diagonals = plan.symmetry.groups, _count_diagonals(plan)
    order = len(plan.spec.source)
    of_source = (*groups[:order], *range(order, len(groups)))
    shares: dict[tuple[Axes, Axes], float] = {}
    found = []
    for diagram in plan.diagrams:
        diagonal, orbit, rank = (
            _count_sets(plan, sets)
            for sets in (
                diagram.contraction.set_of_block.values(),
                diagram.broadcast.set_of_block.values(),
                diagram.contraction.axis_sets,
            )
        )
        if (diagonal, orbit) not in shares:
            shares[diagonal, orbit] = _share_of_diagonal(plan, diagonals, diagonal, orbit)
        placings = prod(map(perm, orbit, rank))
        n_alike, n_all = (orbit_size(diagram.partition, exchanged) for exchanged in (of_source, groups))
        found.append(n_all * (n_all // n_alike) * (shares[diagonal, orbit] / placings))
    return tuple(found)


def _share_of_diagonal(plan: Plan, diagonals: dict[Axes, int], diagonal: Axes, orbit: Axes) -> float:
    """The share of one diagonal of the source in one orbit of the output; the shares of all diagonals sum to one.

    A diagonal with more axes than the orbit loses components, so it gets a small share where other diagonals fit; or
    else the losses would accumulate through a deep stack.
    """
    source, target = (_count_sets(plan, sets) for sets in plan.spec.set_numbers)
    deep = _fits(source, target)

    def portion(axes: Axes) -> float:
        return 1.0 if not deep or _fits(axes, orbit) else SMALL_SHARE

    return portion(diagonal) / sum(number * portion(axes) for axes, number in diagonals.items())


def _fits(diagonal: Axes, orbit: Axes) -> bool:
    """Whether the orbit has as many axes as the diagonal in every node set."""
    return all(needed <= there for needed, there in zip(diagonal, orbit, strict=True))


def _count_diagonals(plan: Plan) -> dict[Axes, int]:
    """The number of diagonals of the source with each number of axes."""
    slots = _count_sets(plan, plan.spec.set_numbers[0])
    choices = [(n_slots,) if plan.hollow else range(min(n_slots, 1), n_slots + 1) for n_slots in slots]
    return {axes: prod(map(stirling2, slots, axes)) for axes in product(*choices)}


def _count_sets(plan: Plan, sets: Iterable[int]) -> Axes:
    numbers = Counter(sets)
    return tuple(numbers[node_set] for node_set in range(len(plan.spec.node_sets)))


@lru_cache(maxsize=64)
def _components_to_contractions(plan: Plan) -> Entries:
    """A component is a contraction minus those that average over more axes, by inclusion and exclusion."""
    entries: Counter[tuple[int, int]] = Counter()
    number = {diagram.partition: number for number, diagram in enumerate(plan.diagrams)}
    declared = plan.symmetry
    for column, diagram in enumerate(plan.diagrams):
        for n_cut in range(len(diagram.crossing) + 1):
            for cut in combinations(diagram.crossing, n_cut):
                same = declared.representative(_cut(diagram, cut))
                assert same is not None
                entries[number[same], column] += (-1) ** n_cut
    return _non_zero(entries)


@lru_cache(maxsize=64)
def _orbits_to_broadcasts(plan: Plan) -> Entries:
    """A map onto one orbit is a Moebius inversion over the equalities between blocks of the target."""
    order, declared = len(plan.spec.source), plan.symmetry
    entries: Counter[tuple[int, int]] = Counter()
    number = {diagram.partition: number for number, diagram in enumerate(plan.diagrams)}
    for fine, column in number.items():
        for coarser in declared.coarsenings(fine, fixed=set(fine[:order]) - set(fine[order:])):
            same = declared.representative(coarser.partition)
            assert same is not None
            entries[number[same], column] += coarser.n_alike * coarser.moebius
    return _non_zero(entries)


def _cut(diagram: Diagram, blocks: tuple[int, ...]) -> Partition:
    """The diagram with these crossing blocks cut into their source part and their target part."""
    order = len(diagram.source_sets)
    source, target = diagram.partition[:order], diagram.partition[order:]
    return canonical([*source, *[-1 - block if block in blocks else block for block in target]])


def _non_zero(entries: Counter[tuple[int, int]]) -> Entries:
    return tuple((row, column, value) for (row, column), value in sorted(entries.items()) if value)


def _multiply(entries: Entries, weight: Tensor) -> Tensor:
    rows, columns, values = zip(*entries, strict=True)
    size = (weight.shape[0], weight.shape[0])
    index = torch.tensor([rows, columns], device=weight.device)
    filled = torch.tensor(values, dtype=weight.dtype, device=weight.device)
    matrix = torch.sparse_coo_tensor(index, filled, size, device=weight.device, check_invariants=False)
    product: Tensor = torch.sparse.mm(matrix, weight)
    return product
