"""Which diagrams a spec has, and how many: declared symmetries, and the limit on the number of maps.

Declared symmetries determine which diagrams remain for symmetric or hollow inputs and for unordered slots.

On inputs that do not change when slots of one node set are exchanged, diagrams that differ by such an exchange of
source slots are the same map, so one of each orbit remains. Outputs with unordered slots are averages over exchanges,
and diagrams that differ by an exchange of target slots have the same average. On hollow inputs, zero wherever two slots
of one node set coincide, a diagram that takes such a diagonal is zero and is left out.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from math import comb, factorial, floor, log10, perm, prod
from operator import add
from textwrap import shorten
from typing import NamedTuple

from bellnet.combinatorics import (
    Partition,
    bell,
    blocks_of,
    canonical,
    first_of_orbit,
    moebius,
    orbit_size,
    partitions,
    partitions_of_number,
    stirling2,
)
from bellnet.errors import OptionError, SpecError, as_written, count_of
from bellnet.spec import Spec

MOST_MAPS = 50_000
"""The most maps that a plan has unless more are asked for."""

MOST_SLOTS = 500
MOST_COUNTED_SLOTS = 300  # of one node set on one side; symmetric inputs of so many slots have 10^15 invariant maps
MOST_PRINTED = 10**15
MOST_STATES = 512  # more are not gone through one by one
MOST_STATES_APART = 2048  # of hollow inputs, for which there are few parts and no other bound
MOST_CHARACTERS = 80


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


@lru_cache(maxsize=256)
def count_maps(spec: Spec, *, symmetric: bool = False, hollow: bool = False) -> int:
    """The number of maps of a spec; for hundreds of slots of one node set some number beyond 10^15 that is not larger.

    >>> spec = Spec(("n", "n"), ("n", "n"))
    >>> count_maps(spec), count_maps(spec, symmetric=True, hollow=True)
    (15, 6)
    >>> count_maps(Spec((("n", "n"), ("n",)), ("n", "n")))
    20
    """
    if spec.unordered:
        pairs = product(range(len(spec.sources)), range(len(spec.targets)))
        return sum(_count_orbits(Symmetry.of(spec.pair(*pair), symmetric=symmetric, hollow=hollow)) for pair in pairs)
    return sum(
        prod(_count(source[name], target[name], symmetric, hollow) for name in source | target)
        for source, target in product(map(Counter, spec.sources), map(Counter, spec.targets))
    )


def count_products(spec: Spec, *, symmetric: bool = False, hollow: bool = False) -> int:
    """The number of matrix products without unordered slots: at every rank one for each order of its axes that occurs.

    On symmetric inputs blocks with more source slots come first, so an order needs as many slots more than its axes as
    its major index says; on those that are hollow too, there are none.

    >>> count_products(Spec(("n", "n"), ("n", "n"))), count_products(Spec(("n", "n"), ("n", "n")), symmetric=True)
    (4, 3)
    """

    def indices(rank: int, slots: int) -> Iterable[int | None]:
        if not symmetric:
            return (None,)  # every order
        return range(1 if hollow else min(rank * (rank - 1) // 2, slots - rank) + 1)

    found: set[tuple[tuple[int, int | None], ...]] = set()  # of every node set the rank, and the index of some orders
    for source, target in product(map(Counter, spec.sources), map(Counter, spec.targets)):
        of_set = [
            [
                (rank, index)
                for rank in range(min(source[name], target[name]) + 1)
                for index in indices(rank, source[name])
            ]
            for name in spec.node_sets
        ]
        found |= set(product(*of_set))
    return sum(prod(factorial(rank) if index is None else _orders(rank)[index] for rank, index in one) for one in found)


@lru_cache(maxsize=64)
def _orders(axes: int) -> tuple[int, ...]:
    """How many orders of so many axes have the major index 0, 1, 2, ..."""
    numbers = [1]
    for more in range(1, axes):
        numbers = [sum(numbers[max(0, index - more) : index + 1]) for index in range(len(numbers) + more)]
    return tuple(numbers)


def refuse_giants(spec: Spec, *, symmetric: bool = False, hollow: bool = False, max_maps: int = MOST_MAPS) -> None:
    """Refuse a spec with more maps than were asked for, or with slots beyond all use."""
    shown = f'The spec "{short_spec(spec)}"'
    if type(max_maps) is not int or max_maps < 1:
        raise OptionError(f"{shown}: max_maps must be an integer from 1 up, not {as_written(max_maps)}.")
    n_maps = count_maps(spec, symmetric=symmetric, hollow=hollow)
    if n_maps > max_maps:
        raise SpecError(
            f"{shown} has {short_count(n_maps)} maps; plans are built for up to {max_maps:,} (max_maps).\n"
            "Lower the order, give some of the slots node sets of their own, or declare the input symmetric or hollow "
            "if it is.\nIf it is to be built all the same, raise max_maps: time and memory grow with the maps."
        )
    if len(spec.slots) > MOST_SLOTS:
        raise SpecError(
            f"{shown} has {len(spec.slots):,} slots; plans are built for up to {MOST_SLOTS}.\n"
            "A slot is one axis of a tensor; entries along an axis need no slots of their own."
        )


def short_count(n_maps: int) -> str:
    """A number of maps as messages show it; where it is not exact, it is not shown as if it were."""
    return f"{n_maps:,}" if n_maps < MOST_PRINTED else f"at least 10^{floor(log10(n_maps))}"


def _count(source: int, target: int, symmetric: bool, hollow: bool) -> int:
    """The number of maps between this many slots of one node set."""
    target = min(target, MOST_COUNTED_SLOTS)
    if not hollow:
        source = min(source, MOST_COUNTED_SLOTS)
    if not (symmetric or hollow):
        return bell(source + target)
    return sum(stirling2(target, blocks) * _ways(source, blocks, symmetric, hollow) for blocks in range(target + 1))


def _count_orbits(declared: Symmetry) -> int:
    """The number of orbits of diagrams: for each node set the ways to write the sizes of its groups as sums of parts.

    A part is a block: how many of its slots are in each group. Where they are too many, some number that is not larger:
    what fewer slots have, or all diagrams divided by all exchanges.
    """
    total = 1
    for node_set in dict.fromkeys(declared.sets):
        slots = [slot for slot, other in enumerate(declared.sets) if other == node_set]
        sizes = Counter(declared.groups[slot] for slot in slots)
        apart = tuple(group in declared.apart for group in sizes)
        fewer = list(sizes.values())
        while prod(size + 1 for size in fewer) > (MOST_STATES_APART if any(apart) else MOST_STATES):
            fewer[fewer.index(max(fewer))] -= 1
        found = _vector_partitions(tuple(fewer), apart)
        if fewer != list(sizes.values()) and not any(apart):
            found = max(found, bell(min(len(slots), MOST_COUNTED_SLOTS)) // prod(map(factorial, sizes.values())))
        total *= found
    return total


def _vector_partitions(sizes: tuple[int, ...], apart: tuple[bool, ...]) -> int:
    """The multisets of non-zero vectors that add up to sizes; of what is apart a part has at most one."""
    sums = list(product(*(range(size + 1) for size in sizes)))
    ways = dict.fromkeys(sums, 0) | {sums[0]: 1}
    for part in sums[1:]:
        if sum(number for number, alone in zip(part, apart, strict=True) if alone) <= 1:
            for before in sums:  # ascending, so that a part may be taken again
                after = tuple(map(add, before, part))
                if after in ways:
                    ways[after] += ways[before]
    return ways[sizes]


def _ways(slots: int, blocks: int, symmetric: bool, hollow: bool) -> int:
    """The ways to place source slots: some join blocks of the target, the others make blocks of their own."""
    if hollow:
        return sum(comb(blocks, n) * (1 if symmetric else perm(slots, n)) for n in range(min(slots, blocks) + 1))
    joined = (comb(blocks + n - 1, n) if n else 1 for n in range(slots + 1))
    return sum(ways * partitions_of_number(slots - n) for n, ways in enumerate(joined))


def short_spec(spec: Spec) -> str:
    """A spec as messages show it: the beginning, where there are very many slots."""
    text = str(spec)
    if len(text) <= MOST_CHARACTERS:
        return text
    beginning = shorten(text, MOST_CHARACTERS // 2, placeholder=" ...")
    source, target = (count_of(sum(map(len, shapes)), "slot") for shapes in (spec.sources, spec.targets))
    return f"{beginning} ({source}) -> ({target})"
