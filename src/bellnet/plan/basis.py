"""The two bases, and the integer matrices between them.

A diagram demands *at least* its equalities, an orbit *exactly* its equalities. So a diagram is the sum of the orbits
coarser than or equal to it, and what that does to coefficients is a sum over refinements; its inverse is the Moebius
function. With a declared symmetry the same identities hold after orbits and diagrams that act alike are merged.
"""

from collections import Counter
from collections.abc import Callable
from functools import lru_cache

from bellnet.plan.declare import Coarsening
from bellnet.plan.plan import Plan

Entries = tuple[tuple[int, int, int], ...]
"""The non-zero entries (row, column, value) of an integer matrix."""


@lru_cache(maxsize=64)
def orbit_to_diagram(plan: Plan) -> Entries:
    """The matrix that takes coefficients of orbits to coefficients of diagrams."""
    return _entries(plan, lambda coarser: coarser.moebius)


@lru_cache(maxsize=64)
def diagram_to_orbit(plan: Plan) -> Entries:
    """The matrix that takes coefficients of diagrams to coefficients of orbits."""
    return _entries(plan, lambda coarser: 1)


def _entries(plan: Plan, value: Callable[[Coarsening], int]) -> Entries:
    number = {diagram.partition: number for number, diagram in enumerate(plan.diagrams)}
    declared = plan.declared
    found: Counter[tuple[int, int]] = Counter()
    for fine, column in number.items():
        for coarser in declared.coarsenings(fine):
            same = declared.representative(coarser.partition)
            assert same is not None
            found[number[same], column] += coarser.n_alike * value(coarser)
    return tuple((row, column, entry) for (row, column), entry in sorted(found.items()) if entry)
