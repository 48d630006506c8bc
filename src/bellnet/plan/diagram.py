"""Diagrams: the basis of the equivariant linear maps, each a partition of source slots and target slots.

A diagram is a contraction of the source, a permutation of the blocks that cross from source to target, and a broadcast
to the target, that is, a contraction of the target transposed. The words for a diagram are of matrices, with rows,
columns and a diagonal; for tensors of higher order they use the letters of its name.

A declared symmetry leaves out diagrams that are the same map on all such inputs, or zero. The diagrams of a spec are
counted without listing them, and too many are refused.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
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
from bellnet.plan.contraction import Contraction, Permutation, letters
from bellnet.spec import Spec


@dataclass(frozen=True)
class Diagram:
    """A partition of all slots, source slots first; `source_sets` and `target_sets` are the node sets of the slots.

    `source` and `target` are the numbers of the two tensors, where there are several.

    >>> transpose = Diagram((0, 1, 1, 0), source_sets=(0, 0), target_sets=(0, 0))
    >>> transpose.name, transpose.permutation, transpose.describe()
    ('ab->ba', (1, 0), 'permute the axes')
    """

    partition: Partition
    source_sets: tuple[int, ...]
    target_sets: tuple[int, ...]
    source: int = 0
    target: int = 0

    def __str__(self) -> str:
        return self.name

    @property
    def _sides(self) -> tuple[Partition, Partition]:
        """The blocks of the source slots and of the target slots."""
        order = len(self.source_sets)
        return self.partition[:order], self.partition[order:]

    @property
    def name(self) -> str:
        """Source slots, arrow, target slots; slots with one letter hold the same node."""
        source, target = self._sides
        return f"{letters(source)}->{letters(target)}"

    @cached_property
    def crossing(self) -> tuple[int, ...]:
        """The blocks with slots on both sides."""
        source, target = self._sides
        return tuple(sorted(set(source) & set(target)))

    @cached_property
    def contraction(self) -> Contraction:
        """The contraction of the source that keeps the crossing blocks."""
        return self._contraction(self._sides[0], self.source_sets, self.source)

    @cached_property
    def broadcast(self) -> Contraction:
        """The contraction of the target that keeps the crossing blocks."""
        return self._contraction(self._sides[1], self.target_sets, self.target)

    @cached_property
    def permutation(self) -> Permutation:
        """For every axis of `broadcast` its position among the axes of `contraction`."""
        source, target = self._sides
        block_in_source = dict(zip(self.contraction.blocks, source, strict=True))
        block_in_target = dict(zip(self.broadcast.blocks, target, strict=True))
        axes = [block_in_source[block] for block in self.contraction.kept]
        return tuple(axes.index(block_in_target[block]) for block in self.broadcast.kept)

    def describe(self) -> str:
        """The steps of the map, in words that no other map of the spec has."""
        source, target = self._sides
        words = []
        if shared := _diagonals(source):
            words.append(f"take the {shared}")
        if summed := [block for block in dict.fromkeys(source) if block not in target]:
            words.append("sum over " + letters(summed))
        crossing = [block for block in dict.fromkeys(source) if block in target]
        in_target = [block for block in dict.fromkeys(target) if block in source]
        if crossing != in_target:
            words.append("permute the axes")
        if repeated := [block for block in dict.fromkeys(target) if block not in source]:
            words.append("repeat along " + letters(repeated))
        if shared := _diagonals(target):
            words.append(f"place on the {shared}")
        elif (crossing and repeated) or (crossing != in_target and len(crossing) > 2):
            words[-1] += f" as {letters(target)}"  # which axis is which
        return ", ".join(words) or "copy"

    def words(self, *, means: bool = True) -> str:
        """The result of the map, in words that no other map of the spec has; `means` if sums are divided, as in layers.

        >>> row_means = Diagram((0, 1, 0, 0), source_sets=(0, 0), target_sets=(0, 0))
        >>> row_means.words(), row_means.describe()
        ('row means, on the diagonal', 'sum over b, place on the diagonal a')
        """
        source, target = self._sides
        if source == target and len(set(source)) == len(source):
            return "the input, unchanged"
        if (source, target) == ((0, 1), (1, 0)):
            return "the transpose"
        where = _where(source, target)
        return _contracted(source, target, "mean" if means else "sum") + (where and f", {where}")

    def _contraction(self, labels: Partition, sets: tuple[int, ...], tensor: int) -> Contraction:
        blocks = canonical(labels)
        kept = {block for block, label in zip(blocks, labels, strict=True) if label in self.crossing}
        return Contraction.keeping(blocks, sets, kept, tensor=tensor)


def _diagonals(side: Partition) -> str:
    """The letters that several slots of a side share; with more than two slots, also which slots those are."""
    shared = [block for block in dict.fromkeys(side) if side.count(block) > 1]
    of = f" of {letters(side)}" if len(side) > 2 else ""
    return f"diagonal{'s' * (len(shared) > 1)} {', '.join(letters([block]) for block in shared)}{of}" if shared else ""


def _contracted(source: Partition, target: Partition, mean: str) -> str:
    if not source:
        return "one value"
    blocks = list(dict.fromkeys(source))
    dropped = [block for block in blocks if block not in target]
    diagonal = _diagonal(source)
    if not dropped:
        return diagonal or ("the entries" if len(source) > 1 else "the values")
    if dropped == blocks:
        of = diagonal or "all entries" * (len(source) > 1)
        return f"the {mean}" + (of and f" of {of}")
    if len(source) == 2:
        return f"{'row' if dropped[0] == source[1] else 'column'} {mean}s"
    return f"{mean}s over {letters(dropped)}" + (diagonal and f" of {diagonal}")


def _where(source: Partition, target: Partition) -> str:
    if diagonal := _diagonal(target):
        return f"on {diagonal}"
    carried = tuple(block for block in dict.fromkeys(source) if block in target)
    if carried == target:
        return ""
    if len(carried) == len(target):
        return "transposed" if len(target) == 2 else f"as {letters(target)}"
    if not carried:
        return "everywhere" if len(target) > 1 else "at every node"
    if len(target) == 2:
        return f"along the {'rows' if carried[0] == target[0] else 'columns'}"
    return f"repeated as {letters(target)}"


def _diagonal(side: Partition) -> str:
    """The diagonal of a side, with its letters where there are several; "" for all entries."""
    n_blocks = len(set(side))
    return "" if n_blocks == len(side) else "the diagonal" + f" {letters(side)}" * (n_blocks > 1)


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
