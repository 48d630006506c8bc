"""The two bases, and the integer matrices between them.

A diagram demands *at least* its equalities, an orbit *exactly* its equalities. So a diagram is the sum of the orbits
coarser than or equal to it, and what that does to coefficients is a sum over refinements; its inverse is the Moebius
function. With a declared symmetry the same identities hold after orbits and diagrams that act alike are merged.
"""

from collections.abc import Callable
from functools import lru_cache

from bellnet.combinatorics import Partition, moebius, partitions, refinements
from bellnet.plan.declare import representative
from bellnet.plan.plan import Plan

Entries = tuple[tuple[int, int, int], ...]
"""The non-zero entries (row, column, value) of an integer matrix."""


@lru_cache(maxsize=64)
def orbit_to_diagram(plan: Plan) -> Entries:
    """The matrix that takes coefficients of orbits to coefficients of diagrams."""
    return _entries(plan, moebius)


@lru_cache(maxsize=64)
def diagram_to_orbit(plan: Plan) -> Entries:
    """The matrix that takes coefficients of diagrams to coefficients of orbits."""
    return _entries(plan, lambda fine, coarse: 1)


def _entries(plan: Plan, value: Callable[[Partition, Partition], int]) -> Entries:
    column = {diagram.partition: number for number, diagram in enumerate(plan.diagrams)}
    source, _ = plan.spec.set_numbers
    found: dict[tuple[int, int], int] = {}
    for coarse in partitions(plan.spec.slots):
        same = representative(coarse, source, symmetric=plan.symmetric, hollow=plan.hollow)
        if same is None:
            continue
        for fine in refinements(coarse):
            if fine in column:
                place = column[same], column[fine]
                found[place] = found.get(place, 0) + value(fine, coarse)
    return tuple((row, number, entry) for (row, number), entry in sorted(found.items()) if entry)
