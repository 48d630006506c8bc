"""The matrices between the bases, against their definition: sums over all pairs of partitions of which one is finer."""

from collections import Counter
from itertools import product

import pytest

from bellnet import plan
from bellnet.combinatorics import is_finer, moebius, partitions
from bellnet.plan import diagram_to_orbit, orbit_to_diagram
from tests.plan.test_declared import SPECS


def _by_definition(the_plan, value):
    """For every remaining diagram and every coarser partition, one more for the class of that partition."""
    number = {diagram.partition: number for number, diagram in enumerate(the_plan.diagrams)}
    found = Counter()
    for coarse in partitions(the_plan.spec.slots):
        same = the_plan.symmetry.representative(coarse)
        for fine in number:
            if same is not None and is_finer(fine, coarse):
                found[number[same], number[fine]] += value(fine, coarse)
    return {place: entry for place, entry in found.items() if entry}


@pytest.mark.parametrize(("symmetric", "hollow"), list(product([False, True], repeat=2)))
def test_the_entries_are_those_of_the_definition(symmetric, hollow):
    for spec in [*SPECS, "n n n n ->", "u u u i i -> u"]:
        the_plan = plan(spec, symmetric=symmetric, hollow=hollow)
        for entries, value in ((orbit_to_diagram, moebius), (diagram_to_orbit, lambda fine, coarse: 1)):
            found = entries(the_plan)
            assert list(found) == sorted(found)
            assert {(row, column): entry for row, column, entry in found} == _by_definition(the_plan, value), spec


@pytest.mark.parametrize("hollow", [False, True])
@pytest.mark.parametrize("spec", ["n n n n n n n ->", "n n n n n n -> n", "u u u u i i i ->"])
def test_the_matrices_of_many_slots_are_inverse(spec, hollow):
    the_plan = plan(spec, symmetric=True, hollow=hollow)
    there, back = (
        {(row, column): entry for row, column, entry in entries(the_plan)}
        for entries in (diagram_to_orbit, orbit_to_diagram)
    )
    everything = range(the_plan.n_maps)
    for row, column in product(everything, everything):
        entry = sum(there.get((row, middle), 0) * back.get((middle, column), 0) for middle in everything)
        assert entry == (row == column)
