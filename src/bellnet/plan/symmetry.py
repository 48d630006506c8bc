"""Declared symmetries: which diagrams remain for symmetric or hollow inputs and for unordered slots.

On inputs that do not change when slots of one node set are exchanged, diagrams that differ by such an exchange of
source slots are the same map, so one of each orbit remains. Outputs with unordered slots are averages over exchanges,
and diagrams that differ by an exchange of target slots have the same average. On hollow inputs, zero wherever two slots
of one node set coincide, a diagram that takes such a diagonal is zero and is left out.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from bellnet.combinatorics import Partition, blocks_of, canonical, first_of_orbit, moebius, orbit_size, partitions
from bellnet.spec import Spec


@dataclass(frozen=True)
class Symmetry:
    """The symmetry of the slots, source slots first."""

    sets: tuple[int, ...]  # the node set of every slot
    groups: tuple[int, ...]  # the group of every slot; exchanging slots of one group changes nothing
    apart: frozenset[int]  # the slots of a hollow input: no two hold the same node where it is not zero

    @classmethod
    def of(cls, spec: Spec, *, symmetric: bool, hollow: bool) -> "Symmetry":
        """The symmetry that follows from a declared source and from unordered slots.

        >>> Symmetry.of(Spec(("u", "i", "u"), ("u",)), symmetric=True, hollow=False).groups
        (0, 1, 0, 3)
        >>> Symmetry.of(Spec(("n", "n"), ("n", "n"), unordered=((2, 3),)), symmetric=False, hollow=False).groups
        (0, 1, 2, 2)
        """
        source, target = spec.set_numbers
        groups = list(range(len(spec.slots)))
        for group in spec.unordered:
            groups[group[0] : group[-1] + 1] = [group[0]] * len(group)
        if symmetric:
            groups[: len(source)] = [source.index(node_set) for node_set in source]
        return cls(source + target, tuple(groups), frozenset(range(len(source)) if hollow else ()))

    def partitions(self) -> tuple[Partition, ...]:
        """The first diagram of every orbit, in canonical order, without those that are zero.

        >>> Symmetry.of(Spec(("n", "n"), ("n",)), symmetric=True, hollow=True).partitions()
        ((0, 1, 0), (0, 1, 2))
        """
        return partitions(self.sets, groups=self.groups, apart=self.apart)

    def representative(self, partition: Partition) -> Partition | None:
        """The first diagram in canonical order that is the same map on declared inputs; None for the zero map.

        >>> declared = Symmetry.of(Spec(("n", "n"), ("n", "n")), symmetric=True, hollow=True)
        >>> declared.representative((0, 1, 1, 0)), declared.representative((0, 0, 1, 1))
        ((0, 1, 0, 1), None)
        """
        if len({partition[slot] for slot in self.apart}) < len(self.apart):
            return None
        return first_of_orbit(partition, self.groups)

    def coarsenings(self, fine: Partition, fixed: Collection[int] = ()) -> "Iterator[Coarsening]":
        """The coarser partitions of a representative, except those of the zero map and those that merge `fixed` blocks.

        >>> for found in Symmetry.of(Spec(("n",) * 3, ()), symmetric=True, hollow=False).coarsenings((0, 1, 2)):
        ...     print(*found)
        (0, 0, 0) 1 2
        (0, 0, 1) 3 -1
        (0, 1, 2) 1 1
        """
        blocks = blocks_of(fine)
        kinds = canonical(-1 - n if n in fixed else self.sets[block[0]] for n, block in enumerate(blocks))
        groups = canonical(
            n if n in fixed else tuple(self.groups[slot] for slot in block) for n, block in enumerate(blocks)
        )
        apart = frozenset(n for n, block in enumerate(blocks) if not self.apart.isdisjoint(block))
        for merged, n_alike, sign in _mergings(kinds, groups, apart):
            yield Coarsening(tuple(merged[block] for block in fine), n_alike, sign)


class Coarsening(NamedTuple):
    """A coarser partition than another one."""

    partition: Partition
    n_alike: int  # partitions that differ from it only by an exchange of blocks with the same groups
    moebius: int  # the Moebius function between the two


@lru_cache(maxsize=4096)
def _mergings(kinds: Partition, groups: Partition, apart: frozenset[int]) -> tuple[Coarsening, ...]:
    """The ways to merge blocks, cached because many diagrams have blocks of the same kinds and groups."""
    finest = tuple(range(len(kinds)))
    found = partitions(kinds, groups=groups, apart=apart)
    return tuple(Coarsening(merged, orbit_size(merged, groups), moebius(finest, merged)) for merged in found)
