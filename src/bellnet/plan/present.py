"""What is left of a plan where some diagonals are known to be empty: most graphs have no loops."""

from functools import lru_cache
from typing import NamedTuple

from bellnet.plan.plan import Absent, Plan, build


class Present(NamedTuple):
    """The maps that can differ from zero, as a plan of their own.

    Attributes:
        plan: The plan of these maps.
        maps: Their numbers in the whole plan.
        biases: The numbers of the biases that are left.
        whole: The plan that they were left of.
    """

    plan: Plan
    maps: tuple[int, ...]
    biases: tuple[int, ...]
    whole: Plan

    @property
    def is_whole(self) -> bool:
        """Whether nothing was left out."""
        return len(self.maps) == self.whole.n_maps and len(self.biases) == self.whole.n_biases


@lru_cache(maxsize=256)
def present(plan: Plan, absent_reads: Absent, absent_writes: Absent) -> Present:
    """Leave out the maps that read or write where there is nothing.

    Args:
        plan: The whole plan.
        absent_reads: For every source the equality patterns of its slots that no tuple has.
        absent_writes: The same for the targets.

    >>> from bellnet.plan import plan
    >>> print(present(plan("n n -> n n"), (frozenset({(0, 0)}),), (frozenset({(0, 0)}),)).plan)
    n n -> n n    7 maps, 1 bias
      rank  contract      permute  broadcast     maps
         2  ab->ab              2  ab->ab           2
         1  ab->a  ab->b        1  a->ab  b->ab     4
         0  ab->                1  ->ab             1
    """
    left = build(plan.spec, plan.symmetric, plan.hollow, absent_reads, absent_writes)
    here, constants = set(left.diagrams), set(left.numbered_biases)
    maps = tuple(number for number, diagram in enumerate(plan.diagrams) if diagram in here)
    biases = tuple(number for number, one in enumerate(plan.numbered_biases) if one in constants)
    return Present(left, maps, biases, plan)
