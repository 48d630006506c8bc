"""What a declared symmetry of the input leaves of the diagrams.

On inputs that do not change when slots of one node set are exchanged, diagrams that differ by such an exchange of
source slots are the same map, so one of each orbit remains. On hollow inputs, zero wherever two slots of one node set
coincide, a diagram that reads such a diagonal is zero, so it goes.
"""

from itertools import groupby, permutations, product

from bellnet.combinatorics import Partition, canonical


def representative(
    partition: Partition, source_sets: tuple[int, ...], *, symmetric: bool, hollow: bool
) -> Partition | None:
    """The first diagram in canonical order that is the same map on declared inputs; None for the zero map.

    >>> representative((0, 1, 1, 0), (0, 0), symmetric=True, hollow=False)
    (0, 1, 0, 1)
    >>> representative((0, 0, 1, 1), (0, 0), symmetric=True, hollow=True) is None
    True
    """
    source = partition[: len(source_sets)]
    if hollow and len(set(source)) < len(source):
        return None
    if not symmetric:
        return partition
    rest = partition[len(source_sets) :]
    return min(canonical((*(source[slot] for slot in exchange), *rest)) for exchange in exchanges(source_sets))


def exchanges(sets: tuple[int, ...]) -> list[tuple[int, ...]]:
    """All reorderings of the slots that move each slot to a slot of the same node set.

    >>> exchanges((0, 1, 0))
    [(0, 1, 2), (2, 1, 0)]
    """
    order = sorted(range(len(sets)), key=lambda slot: sets[slot])
    groups = [list(group) for _, group in groupby(order, key=lambda slot: sets[slot])]
    found = []
    for moved in product(*(permutations(group) for group in groups)):
        where = dict(zip(order, (slot for group in moved for slot in group), strict=True))
        found.append(tuple(where[slot] for slot in range(len(sets))))
    return sorted(found)
