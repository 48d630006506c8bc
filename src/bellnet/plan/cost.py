"""What a plan costs: multiplications and bytes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

from bellnet.errors import SizesError, as_written
from bellnet.plan.level import Level
from bellnet.plan.tree import Tree
from bellnet.spec import Shape, Spec


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
    trees: tuple[Tree, Tree],
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
    trees: tuple[Tree, Tree],
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
