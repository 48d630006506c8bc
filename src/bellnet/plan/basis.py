"""The orbit basis and the diagram basis, and the integer matrices between them.

A diagram requires *at least* its equalities, an orbit *exactly* its equalities. So a diagram is the sum of the orbits
coarser than or equal to it, and on coefficients that is a sum over refinements; the inverse is the Moebius function.
With a declared symmetry the same identities hold between sums over the orbits, or diagrams, of one class.
"""

from collections import Counter
from collections.abc import Callable
from functools import lru_cache

from bellnet.plan.diagram import Coarsening
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
    symmetry = plan.symmetry
    entries: Counter[tuple[int, int]] = Counter()
    for fine, column in number.items():
        for coarser in symmetry.coarsenings(fine):
            same = symmetry.representative(coarser.partition)
            assert same is not None
            entries[number[same], column] += coarser.n_alike * value(coarser)
    return tuple((row, column, entry) for (row, column), entry in sorted(entries.items()) if entry)
