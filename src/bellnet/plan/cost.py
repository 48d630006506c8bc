"""What a plan costs: multiplications and bytes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

from bellnet.errors import SizesError, as_written
from bellnet.plan.level import Level
from bellnet.plan.tree import Tree
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
    levels: Sequence[Level],
    trees: tuple[Tree, Tree],
    sizes: int | Mapping[str, int],
    in_channels: int,
    out_channels: int,
    batch: int,
    bytes_per_number: int = 4,
) -> Cost:
    """Count what levels cost that read from one tree and write to another, for node sets of these sizes."""
    lengths = _lengths(spec, sizes)
    for name, number in (("in_channels", in_channels), ("out_channels", out_channels), ("batch", batch)):
        if type(number) is not int or number < 0:
            raise SizesError(
                f'plan("{spec}").cost({name}=...) must be a whole number from 0 up, not {as_written(number)}.'
            )
    source = batch * prod(lengths[name] for name in spec.source)
    target = batch * prod(lengths[name] for name in spec.target)
    by_number = tuple(lengths[name] for name in spec.node_sets)
    multiplications = n_maps = 0
    for level in levels:
        rows = batch * prod(by_number[node_set] for node_set in level.axis_sets)
        products = len(level.swaps) * len(level.reads) * len(level.writes)
        multiplications += rows * products * in_channels * out_channels
        n_maps += level.n_maps
    return Cost(
        multiplications=multiplications,
        stacked_multiplications=n_maps * target * in_channels * out_channels,
        input_bytes=bytes_per_number * source * in_channels,
        output_bytes=bytes_per_number * target * out_channels,
        extra_bytes=bytes_per_number * batch * _extra_numbers(levels, trees, by_number, in_channels, out_channels),
    )


def _extra_numbers(
    levels: Sequence[Level], trees: tuple[Tree, Tree], lengths: tuple[int, ...], in_channels: int, out_channels: int
) -> int:
    """The numbers held beside input and output for one graph: bundles, and one swapped copy at a time."""

    def size(sets: tuple[int, ...]) -> int:
        return prod(lengths[node_set] for node_set in sets)

    source, target = trees
    # A bundle and the parts that it is put together from exist side by side for a moment.
    read = [size(bundle.axis_sets) * len(bundle.folds) * in_channels for bundle in source.bundles[1:]]
    written = [size(bundle.axis_sets) * len(bundle.folds) * out_channels for bundle in target.bundles[1:]]
    swapped = [0]
    for level in levels:
        if len(level.swaps) > 1:
            narrower = min(len(level.reads) * in_channels, len(level.writes) * out_channels)
            swapped.append(size(level.axis_sets) * narrower)
    # Axes that are not grouped by node set are copied into that order.
    ordered = size(source.axes) * in_channels * (source.order != tuple(range(len(source.sets))))
    return sum(read) + max(read, default=0) + sum(written) + max(swapped) + ordered


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
            raise SizesError(f"{call}: the size of {name!r} must be a whole number, not {as_written(size)}.")
        if size < 0:
            raise SizesError(f"{call}: the size of {name!r} is negative: {as_written(size)}.")
    return lengths
