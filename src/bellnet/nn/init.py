"""Initial weights that keep the second moment of the activations, whatever the order and the number of nodes.

Independent weights for every diagram would not: a diagram that writes on a diagonal adds to what is there already, so
diagonals would grow with depth; and a mean of unrelated entries is nearly zero, so the maps that average would
lose what they are given. Both are mended by drawing independent coefficients for maps that do not overlap, and then
writing those as combinations of diagrams.

On the target side these are maps onto single orbits: an entry of the output is reached only by maps for its own
equality pattern. On the source side they are the components of an analysis of variance: the mean over everything,
what rows add to it, what columns add, what remains. The components of a tensor are orthogonal, so their second
moments add up to that of the tensor, and coefficients of the right variance keep the sum.
"""

from collections import Counter
from functools import lru_cache
from itertools import combinations

import torch
from torch import Tensor

from bellnet.combinatorics import Partition, blocks_of, canonical, moebius, partitions, refinements
from bellnet.plan import Diagram, Entries, Plan
from bellnet.plan.declare import representative

RELU_GAIN = 2.0
SMALL_SHARE = 0.1


def initial_weight(
    plan: Plan, in_channels: int, out_channels: int, *, mean: bool, generator: torch.Generator | None = None
) -> Tensor:
    """Draw a weight (n_maps, in_channels, out_channels) for diagrams, in float32 on the CPU.

    Args:
        plan: The maps.
        in_channels: The number of channels of the input.
        out_channels: The number of channels of the output.
        mean: Whether the layer takes means. With sums no weights could keep the second moment for every number of
            nodes, and the components of the source are left as they are.
        generator: Where the random numbers come from, on the CPU; torch's own if None.
    """
    cpu = torch.device("cpu")
    shares = torch.tensor(variance_shares(plan), dtype=torch.float32, device=cpu)
    scale = (shares * RELU_GAIN / in_channels).sqrt().unsqueeze(-1)
    shape = plan.n_maps, in_channels * out_channels
    weight = torch.randn(shape, generator=generator, dtype=torch.float32, device=cpu) * scale
    if mean:
        weight = _multiply(_components_to_reads(plan), weight)
    weight = _multiply(_orbits_to_writes(plan), weight)
    return weight.reshape(plan.n_maps, in_channels, out_channels)


@lru_cache(maxsize=256)
def variance_shares(plan: Plan) -> tuple[float, ...]:
    """For every map the variance of its coefficient, so that a tensor of second moment one gives one of the same.

    On every orbit of the output the diagonals of the source share the variance, and each gives every component its
    share; a component that can be placed in several ways divides it among those.
    """
    alive = [diagram for diagram in _all_diagrams(plan) if _same_as(plan, diagram.partition) is not None]
    diagonals = {diagram.read.blocks for diagram in alive}
    orbits = {diagram.write.blocks for diagram in alive}
    placings = Counter((diagram.read, diagram.write.blocks) for diagram in alive)
    shares = {orbit: _shares_of_diagonals(plan, orbit, diagonals) for orbit in orbits}
    number = {diagram.partition: number for number, diagram in enumerate(plan.diagrams)}
    found = [0.0] * plan.n_maps
    for diagram in alive:
        same = _same_as(plan, diagram.partition)
        assert same is not None
        place = diagram.read, diagram.write.blocks
        found[number[same]] += shares[diagram.write.blocks][diagram.read.blocks] / placings[place]
    return tuple(found)


def _shares_of_diagonals(plan: Plan, orbit: Partition, diagonals: set[Partition]) -> dict[Partition, float]:
    """How the diagonals of the source share one orbit of the output; the shares sum to one.

    A diagonal with more axes than the orbit loses the components that do not fit. Where other diagonals do fit, it
    gets a small share only, or the loss would add up through a deep stack.
    """
    whole = tuple(range(len(plan.spec.target)))
    source, target = plan.spec.set_numbers
    deep = all(_fits(diagonal, source, whole, target) for diagonal in diagonals)
    portions = {
        diagonal: 1.0 if not deep or _fits(diagonal, source, orbit, target) else SMALL_SHARE for diagonal in diagonals
    }
    total = sum(portions.values())
    return {diagonal: portion / total for diagonal, portion in portions.items()}


def _fits(diagonal: Partition, source: tuple[int, ...], orbit: Partition, target: tuple[int, ...]) -> bool:
    """Whether the orbit has as many axes as the diagonal in every node set."""
    axes = Counter(dict(zip(diagonal, source, strict=True)).values())
    return axes <= Counter(dict(zip(orbit, target, strict=True)).values())


def _all_diagrams(plan: Plan) -> list[Diagram]:
    return [Diagram(partition, *plan.spec.set_numbers) for partition in partitions(plan.spec.slots)]


@lru_cache(maxsize=64)
def _components_to_reads(plan: Plan) -> Entries:
    """A component is what its read leaves after the reads that average over more are taken away, with signs."""
    entries: Counter[tuple[int, int]] = Counter()
    number = {diagram.partition: number for number, diagram in enumerate(plan.diagrams)}
    for column, diagram in enumerate(plan.diagrams):
        for n_cut in range(len(diagram.crossing) + 1):
            for cut in combinations(diagram.crossing, n_cut):
                same = _same_as(plan, _cut(diagram, cut))
                assert same is not None
                entries[number[same], column] += (-1) ** n_cut
    return _non_zero(entries)


@lru_cache(maxsize=64)
def _orbits_to_writes(plan: Plan) -> Entries:
    """A map onto one orbit is a Moebius inversion over the equalities between blocks that reach the target."""
    order = len(plan.spec.source)
    entries: Counter[tuple[int, int]] = Counter()
    number = {diagram.partition: number for number, diagram in enumerate(plan.diagrams)}
    for coarse in partitions(plan.spec.slots):
        same = _same_as(plan, coarse)
        if same is None:
            continue
        for fine in refinements(coarse):
            if fine in number and _n_unwritten(fine, order) == _n_unwritten(coarse, order):
                entries[number[same], number[fine]] += moebius(fine, coarse)
    return _non_zero(entries)


def _same_as(plan: Plan, partition: Partition) -> Partition | None:
    return representative(partition, plan.spec.set_numbers[0], symmetric=plan.symmetric, hollow=plan.hollow)


def _cut(diagram: Diagram, blocks: tuple[int, ...]) -> Partition:
    """The diagram with these crossing blocks cut into their source part and their target part."""
    order = len(diagram.source_sets)
    return canonical(
        (block, slot < order) if block in blocks else (block, True) for slot, block in enumerate(diagram.partition)
    )


def _n_unwritten(partition: Partition, order: int) -> int:
    return sum(max(block) < order for block in blocks_of(partition))


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
