"""The cost of a plan: how many maps a spec has, counted without listing them, and multiplications and bytes.

A spec with too many maps is refused before any work.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from math import comb, factorial, floor, log10, perm, prod
from operator import add
from textwrap import shorten
from typing import TYPE_CHECKING

from bellnet.combinatorics import bell, partitions_of_number, stirling2
from bellnet.errors import OptionError, SizesError, SpecError, as_written, count_of
from bellnet.plan.symmetry import Symmetry
from bellnet.spec import Shape, Spec

if TYPE_CHECKING:
    from bellnet.plan.plan import Plan

MOST_MAPS = 50_000
"""The most maps that a plan has unless more are asked for."""

MOST_SLOTS = 500
MOST_COUNTED_SLOTS = 300  # of one node set on one side; symmetric inputs of so many slots have 10^15 invariant maps
MOST_PRINTED = 10**15
MOST_STATES = 512  # more are not gone through one by one
MOST_STATES_APART = 2048  # of hollow inputs, for which there are few parts and no other bound
MOST_CHARACTERS = 80
BYTES = 4  # of a float32


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


@dataclass(frozen=True)
class Cost:
    """The cost of one forward pass in float32.

    Attributes:
        multiplications: Those of the matrix products, one for each rank; additions and copies are not counted.
        stacked_multiplications: Those of applying every map on its own and mixing the stacked results.
        input_bytes: The size of the input.
        output_bytes: The size of the output.
        extra_bytes: A bound on the memory beside input, output and weights, for a tensor; a `Padded` needs masks and a
            masked copy of input and output besides.
    """

    multiplications: int
    stacked_multiplications: int
    input_bytes: int
    output_bytes: int
    extra_bytes: int


def count_cost(
    plan: "Plan",
    sizes: int | Mapping[str, int],
    in_channels: int | Sequence[int],
    out_channels: int | Sequence[int],
    batch: int,
) -> Cost:
    """The cost of a plan for node sets of these sizes."""
    spec, call = plan.spec, f'plan("{plan.spec}").cost'
    lengths = check_sizes(call, spec.node_sets, sizes)
    inputs = _channels(call, "in_channels", in_channels, len(spec.sources))
    outputs = _channels(call, "out_channels", out_channels, len(spec.targets))
    check_count(call, "batch", batch)

    def entries(sets: Iterable[int]) -> int:
        return prod(lengths[spec.node_sets[node_set]] for node_set in sets)

    n_source, n_target = (
        [width * entries(sets) for sets, width in zip(shapes, several, strict=True)]
        for shapes, several in zip(spec.numbered, (inputs, outputs), strict=True)
    )
    multiplications, permuted = 0, [0]
    for number, level in enumerate(plan.levels):
        contracted = plan.source.stacks[plan.source.levels[number]].width(inputs)
        broadcast = plan.target.stacks[plan.target.levels[number]].width(outputs)
        multiplications += entries(level.axis_sets) * len(level.permutations) * contracted * broadcast
        if len(level.permutations) > 1:
            permuted.append(entries(level.axis_sets) * min(contracted, broadcast))
    # A stack and the parts that it is put together from exist at the same time, and one permuted copy of a stack.
    read = [entries(stack.axis_sets) * stack.width(inputs) for stack in plan.source.stacks[len(inputs) :]]
    written = [entries(stack.axis_sets) * stack.width(outputs) for stack in plan.target.stacks[len(outputs) :]]
    # Axes that are not grouped by node set are copied into that order.
    is_ordered = [root.kept == tuple(range(len(root.sets))) for root in plan.source.roots]
    ordered = sum(0 if is_root_ordered else n for is_root_ordered, n in zip(is_ordered, n_source, strict=True))
    return Cost(
        multiplications=batch * multiplications,
        stacked_multiplications=batch * sum(inputs[one.source] * n_target[one.target] for one in plan.diagrams),
        input_bytes=BYTES * batch * sum(n_source),
        output_bytes=BYTES * batch * sum(n_target),
        extra_bytes=BYTES * batch * (sum(read) + max(read, default=0) + sum(written) + max(permuted) + ordered),
    )


def _channels(call: str, name: str, given: int | Sequence[int], n_tensors: int) -> tuple[int, ...]:
    """The channels of every tensor."""
    channels = tuple(given) if isinstance(given, Sequence) else (given,) * n_tensors
    if len(channels) != n_tensors:
        raise SizesError(f"{call}: {name} must be one number for each of {n_tensors} tensors, not {as_written(given)}.")
    return tuple(check_count(call, name, one) for one in channels)


def check_count(call: str, name: str, number: int, least: int = 0) -> int:
    """The number, if it is an integer from `least` up; `call` is how messages name what was called."""
    if type(number) is not int or number < least:
        raise SizesError(f"{call}: {name} must be an integer from {least} up, not {as_written(number)}.")
    return number


def check_sizes(
    call: str, node_sets: Shape, sizes: int | Mapping[str, int], *, name: str = "sizes", least: int = 0
) -> dict[str, int]:
    """The size of every node set, from one number for all or a dict; `name` is that of the argument."""
    lengths = dict(sizes) if isinstance(sizes, Mapping) else dict.fromkeys(node_sets, sizes)
    if missing := [node_set for node_set in node_sets if node_set not in lengths]:
        raise SizesError(
            f"{call}: {name} has no entry for node set {missing[0]!r}.\nPass one number for all, or a dict such as "
            f"{{{', '.join(f'{node_set!r}: 10' for node_set in node_sets)}}}."
        )
    if unknown := [node_set for node_set in lengths if node_set not in node_sets]:
        known = ", ".join(map(repr, node_sets)) or "none"
        raise SizesError(f"{call}: {name} has an entry for {unknown[0]!r}, but the node sets are {known}.")
    for node_set, size in lengths.items():
        check_count(call, f"{name}[{node_set!r}]" if isinstance(sizes, Mapping) else name, size, least)
    return lengths
