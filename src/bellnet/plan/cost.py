"""What a plan costs: multiplications and bytes."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

from bellnet.errors import SizesError
from bellnet.plan.program import Program
from bellnet.spec import Spec


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
    program: Program,
    sizes: int | Mapping[str, int],
    in_channels: int,
    out_channels: int,
    batch: int,
    bytes_per_number: int = 4,
) -> Cost:
    """Count what a program costs for node sets of these sizes."""
    lengths = _lengths(spec, sizes)
    for name, number in (("in_channels", in_channels), ("out_channels", out_channels), ("batch", batch)):
        if type(number) is not int or number < 0:
            raise SizesError(f'plan("{spec}").cost({name}=...) must be a whole number from 0 up, not {number!r}.')
    source = batch * prod(lengths[name] for name in spec.source)
    target = batch * prod(lengths[name] for name in spec.target)
    by_number = tuple(lengths[name] for name in spec.node_sets)
    multiplications = n_maps = 0
    for level in program.levels:
        rows = batch * prod(by_number[node_set] for node_set in level.axis_sets)
        products = len(level.swaps) * len(level.reads) * len(level.writes)
        multiplications += rows * products * in_channels * out_channels
        n_maps += level.n_maps
    return Cost(
        multiplications=multiplications,
        stacked_multiplications=n_maps * target * in_channels * out_channels,
        input_bytes=bytes_per_number * source * in_channels,
        output_bytes=bytes_per_number * target * out_channels,
        extra_bytes=bytes_per_number * batch * _extra_numbers(program, by_number, in_channels, out_channels),
    )


def _extra_numbers(program: Program, lengths: tuple[int, ...], in_channels: int, out_channels: int) -> int:
    """The numbers held beside input and output for one graph: folds, levels, and one swapped copy at a time."""

    def size(sets: tuple[int, ...]) -> int:
        return prod(lengths[node_set] for node_set in sets)

    sets_of_fold = [tuple(sorted(program.source))]
    folds = [0]
    for step in program.read_steps:
        parent = sets_of_fold[step.parent]
        sets_of_fold.append(parent[: step.axes[-1]] + parent[step.axes[-1] + 1 :])
        if step.kind == "sum":  # a diagonal is a view
            folds.append(size(sets_of_fold[-1]) * in_channels)
    levels, swapped = 0, [0]
    for level in program.levels:
        reads = size(level.axis_sets) * len(level.reads) * in_channels
        writes = size(level.axis_sets) * len(level.writes) * out_channels
        levels += reads * (level.axis_sets != sets_of_fold[0])
        levels += writes * (level.axis_sets != tuple(sorted(program.target)))
        swapped.append(min(reads, writes) * (len(level.swaps) > 1))
    sums = [0, *(size(step.sets) * out_channels for step in program.write_steps[:-1])]
    # A sum and its quotient, or a sum and the next one, exist side by side for a moment.
    # Axes that are not grouped by node set are copied into that order.
    ordered = size(program.source) * in_channels * (program.source_order != tuple(range(len(program.source))))
    return sum(folds) + max(folds) + levels + sum(sums) + max(sums) + max(swapped) + ordered


def _lengths(spec: Spec, sizes: int | Mapping[str, int]) -> dict[str, int]:
    call = f'plan("{spec}").cost(sizes=...)'
    lengths = dict(sizes) if isinstance(sizes, Mapping) else dict.fromkeys(spec.node_sets, sizes)
    names = ", ".join(map(repr, spec.node_sets))
    if missing := [name for name in spec.node_sets if name not in lengths]:
        raise SizesError(
            f"{call} needs the size of every node set; there is none for {', '.join(map(repr, missing))}.\n"
            f"Pass one number for all, or a dict such as {{{', '.join(f'{name!r}: 10' for name in spec.node_sets)}}}."
        )
    if unknown := [name for name in lengths if name not in spec.node_sets]:
        raise SizesError(f"{call} has an entry for {unknown[0]!r}, but the node sets are {names}.")
    for name, size in lengths.items():
        if int is not type(size):
            raise SizesError(f"{call}: the size of {name!r} must be a whole number, not {size!r}.")
        if size < 0:
            raise SizesError(f"{call}: the size of {name!r} is negative: {size}.")
    return lengths
