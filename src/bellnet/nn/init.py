"""Initial weights that keep the second moment of the activations, whatever the order and the number of nodes.

The entries of the output fall into orbits, and a diagram that writes on a diagonal adds to what is there already. If
diagrams were drawn independently, diagonals would come out larger, feed the next layer's reads, and grow with depth.
So every orbit of the output gets coefficients of its own, and those are then written as coefficients of diagrams,
which is a Moebius inversion over the equalities of the target alone.

Within an orbit, half the variance goes to the reads that sum over nothing and half to those that do: a mean of
unrelated numbers is nearly zero and a mean of equal numbers is that number, so a layer keeps between half and all of
the second moment, and all of it as depth makes the entries alike.
"""

from functools import lru_cache

import torch
from torch import Tensor

from bellnet.combinatorics import Partition, blocks_of, canonical, moebius, partitions, refinements
from bellnet.plan import Plan
from bellnet.plan.declare import representative

RELU_GAIN = 2.0


def initial_weight(plan: Plan, in_channels: int, out_channels: int) -> Tensor:
    """Draw a weight (n_maps, in_channels, out_channels) for diagrams, in float32 on the CPU's generator."""
    shares = torch.tensor(variance_shares(plan))
    scale = (RELU_GAIN / max(in_channels, 1) * shares).sqrt()
    for_orbits = torch.randn(plan.n_maps, in_channels * out_channels) * scale.unsqueeze(-1)
    rows, columns, values = zip(*_target_moebius(plan), strict=True)
    matrix = torch.sparse_coo_tensor(
        torch.tensor([rows, columns]),
        torch.tensor(values, dtype=for_orbits.dtype),
        (plan.n_maps, plan.n_maps),
        check_invariants=False,
    )
    weight: Tensor = torch.sparse.mm(matrix, for_orbits)
    return weight.reshape(plan.n_maps, in_channels, out_channels)


@lru_cache(maxsize=256)
def variance_shares(plan: Plan) -> tuple[float, ...]:
    """For every diagram its share of the variance in the orbit of the output that it is drawn for.

    The shares of one orbit sum to one.
    """
    order = len(plan.spec.source)
    groups: dict[tuple[Partition, bool], list[int]] = {}
    for number, diagram in enumerate(plan.diagrams):
        orbit = canonical(diagram.partition[order:])
        groups.setdefault((orbit, bool(diagram.read.dropped)), []).append(number)
    shares = [0.0] * plan.n_maps
    for (orbit, summing), numbers in groups.items():
        half = 0.5 if (orbit, not summing) in groups else 1.0
        for number in numbers:
            shares[number] = half / len(numbers)
    return tuple(shares)


@lru_cache(maxsize=64)
def _target_moebius(plan: Plan) -> tuple[tuple[int, int, int], ...]:
    """The matrix from coefficients that hold on one orbit of the target to coefficients of diagrams."""
    order = len(plan.spec.source)
    column = {diagram.partition: number for number, diagram in enumerate(plan.diagrams)}
    source, _ = plan.spec.set_numbers
    found: dict[tuple[int, int], int] = {}
    for coarse in partitions(plan.spec.slots):
        same = representative(coarse, source, symmetric=plan.symmetric, hollow=plan.hollow)
        if same is None:
            continue
        unwritten = _n_unwritten(coarse, order)
        for fine in refinements(coarse):
            if fine in column and _n_unwritten(fine, order) == unwritten:
                place = column[same], column[fine]
                found[place] = found.get(place, 0) + moebius(fine, coarse)
    return tuple((row, number, value) for (row, number), value in sorted(found.items()) if value)


def _n_unwritten(partition: Partition, order: int) -> int:
    return sum(max(block) < order for block in blocks_of(partition))
