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

from bellnet.combinatorics import bell, partitions_of_number, stirling2
from bellnet.errors import OptionError, SizesError, SpecError, as_written
from bellnet.plan.contraction import ContractionTree
from bellnet.plan.level import Level
from bellnet.plan.symmetry import Symmetry
from bellnet.spec import Shape, Spec

MOST_MAPS = 50_000
"""The most maps that a plan has unless more are asked for."""

MOST_SLOTS = 500
MOST_COUNTED_SLOTS = 300  # of one node set on one side; symmetric inputs of so many slots have 10^15 invariant maps
MOST_PRINTED = 10**15
MOST_STATES = 512  # more are not gone through one by one
MOST_STATES_APART = 2048  # of hollow inputs, for which there are few parts and no other bound
MOST_CHARACTERS = 80


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
        raise OptionError(f"{shown}: max_maps must be a whole number from 1 up, not {as_written(max_maps)}.")
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
    numbers = (sum(map(len, shapes)) for shapes in (spec.sources, spec.targets))
    source, target = (f"({number:,} slot{'s' * (number != 1)})" for number in numbers)
    return f"{beginning} {source} -> {target}"


@dataclass(frozen=True)
class Cost:
    """The cost of one forward pass, numbers taken as four bytes.

    Attributes:
        multiplications: Those of the matrix products, one for each rank; adding and copying is not counted.
        stacked_multiplications: What applying every map on its own and mixing the stacked results would take.
        input_bytes: The size of the input.
        output_bytes: The size of the output.
        extra_bytes: At most this much is held at once beside input, output and weights, for a tensor; a `Padded` takes
            masks and a cleaned copy of input and output besides.
    """

    multiplications: int
    stacked_multiplications: int
    input_bytes: int
    output_bytes: int
    extra_bytes: int


def count_cost(
    spec: Spec,
    levels: Sequence[Level],
    trees: tuple[ContractionTree, ContractionTree],
    sizes: int | Mapping[str, int],
    in_channels: int | Sequence[int],
    out_channels: int | Sequence[int],
    batch: int,
    bytes_per_number: int = 4,
) -> Cost:
    """Count what levels cost that read from one tree and write to another, for node sets of these sizes."""
    call = f'plan("{spec}").cost'
    lengths = check_lengths(call, spec.node_sets, sizes)
    inside = _channels(call, "in_channels", in_channels, len(spec.sources))
    outside = _channels(call, "out_channels", out_channels, len(spec.targets))
    check_count(call, "batch", batch)
    by_number = tuple(lengths[name] for name in spec.node_sets)
    n_source, n_target = (
        [channels * prod(lengths[name] for name in shape) for shape, channels in zip(shapes, several, strict=True)]
        for shapes, several in ((spec.sources, inside), (spec.targets, outside))
    )
    multiplications = stacked = 0
    for level in levels:
        rows = batch * prod(by_number[node_set] for node_set in level.axis_sets)
        read = sum(inside[contraction.tensor] for contraction in level.contractions)
        multiplications += (
            rows * len(level.permutations) * read * sum(outside[contraction.tensor] for contraction in level.broadcasts)
        )
        for plane in level.index:
            for contraction, numbers in zip(level.contractions, plane, strict=True):
                pairs = zip(numbers, level.broadcasts, strict=True)
                onto = sum(n_target[write.tensor] for number, write in pairs if number is not None)
                stacked += batch * inside[contraction.tensor] * onto
    return Cost(
        multiplications=multiplications,
        stacked_multiplications=stacked,
        input_bytes=bytes_per_number * batch * sum(n_source),
        output_bytes=bytes_per_number * batch * sum(n_target),
        extra_bytes=bytes_per_number * batch * _extra_numbers(levels, trees, by_number, inside, outside),
    )


def _channels(call: str, name: str, given: int | Sequence[int], n_tensors: int) -> tuple[int, ...]:
    """The channels of every tensor."""
    if isinstance(given, Sequence):
        if len(given) != n_tensors:
            raise SizesError(
                f"{call}({name}=...) must have one number for each of {n_tensors} tensors, not {as_written(given)}."
            )
        return tuple(check_count(call, name, one) for one in given)
    return (check_count(call, name, given),) * n_tensors


def check_count(call: str, name: str, number: int) -> int:
    """The number, if it is a whole one from 0 up; `call` is how messages name what was called."""
    if type(number) is not int or number < 0:
        raise SizesError(f"{call}({name}=...) must be a whole number from 0 up, not {as_written(number)}.")
    return number


def _extra_numbers(
    levels: Sequence[Level],
    trees: tuple[ContractionTree, ContractionTree],
    lengths: tuple[int, ...],
    inside: tuple[int, ...],
    outside: tuple[int, ...],
) -> int:
    """The numbers held beside input and output for one graph: stacks, and one swapped copy at a time."""

    def size(sets: tuple[int, ...]) -> int:
        return prod(lengths[node_set] for node_set in sets)

    source, target = trees
    # A stack and the parts that it is put together from exist side by side for a moment.
    read = [size(stack.axis_sets) * stack.width(inside) for stack in source.stacks[len(inside) :]]
    written = [size(stack.axis_sets) * stack.width(outside) for stack in target.stacks[len(outside) :]]
    permuted = [0]
    for number, level in enumerate(levels):
        if len(level.permutations) > 1:
            read_width = source.stacks[source.levels[number]].width(inside)
            written_width = target.stacks[target.levels[number]].width(outside)
            permuted.append(size(level.axis_sets) * min(read_width, written_width))
    # Axes that are not grouped by node set are copied into that order.
    ordered = sum(
        size(root.axes) * channels * (root.order != tuple(range(len(root.sets))))
        for root, channels in zip(source.roots, inside, strict=True)
    )
    return sum(read) + max(read, default=0) + sum(written) + max(permuted) + ordered


def check_lengths(call: str, node_sets: Shape, sizes: int | Mapping[str, int]) -> dict[str, int]:
    """The size of every node set, from one number for all or a dict."""
    call = f"{call}(sizes=...)"
    lengths = dict(sizes) if isinstance(sizes, Mapping) else dict.fromkeys(node_sets, sizes)
    names = ", ".join(map(repr, node_sets))
    if missing := [name for name in node_sets if name not in lengths]:
        raise SizesError(
            f"{call} needs the size of every node set; there is none for {', '.join(map(repr, missing))}.\n"
            f"Pass one number for all, or a dict such as {{{', '.join(f'{name!r}: 10' for name in node_sets)}}}."
        )
    if unknown := [name for name in lengths if name not in node_sets]:
        raise SizesError(f"{call} has an entry for {unknown[0]!r}, but the node sets are {names}.")
    for name, size in lengths.items():
        if int is not type(size):
            raise SizesError(f"{call}: the size of {name!r} must be a whole number, not {as_written(size)}.")
        if size < 0:
            raise SizesError(f"{call}: the size of {name!r} is negative: {as_written(size)}.")
    return lengths
