"""What a plan costs: multiplications and bytes."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import prod

from bellnet.errors import SizesError
from bellnet.plan.level import Level
from bellnet.spec import Spec


@dataclass(frozen=True)
class Cost:
    """The cost of one forward pass.

    Attributes:
        multiplications: Those of the matrix products, one for each rank; adding and copying is not counted.
        stacked_multiplications: What applying every map on its own and mixing the stacked results would take.
        input_bytes: The size of the input.
        output_bytes: The size of the output.
        extra_bytes: The most that is held at once beside input, output and weights.
    """

    multiplications: int
    stacked_multiplications: int
    input_bytes: int
    output_bytes: int
    extra_bytes: int


def count_cost(
    spec: Spec,
    levels: Iterable[Level],
    sizes: int | Mapping[str, int],
    in_channels: int,
    out_channels: int,
    batch: int,
    bytes_per_number: int = 4,
) -> Cost:
    """Count what the levels cost for node sets of these sizes."""
    lengths = _lengths(spec, sizes)
    source = batch * prod(lengths[name] for name in spec.source)
    target = batch * prod(lengths[name] for name in spec.target)
    by_number = tuple(lengths[name] for name in spec.node_sets)
    multiplications = n_maps = extra = 0
    for level in levels:
        rows = batch * prod(size**rank for size, rank in zip(by_number, level.rank, strict=True))
        reads, writes, swaps = len(level.reads), len(level.writes), len(level.swaps)
        multiplications += rows * swaps * reads * writes * in_channels * out_channels
        n_maps += level.n_maps
        # What a level reads is kept for the backward pass; what is read as it stands is not copied.
        extra += rows * reads * in_channels * (swaps > 1 or rows != source)
        extra += rows * writes * out_channels * (rows != target)
    return Cost(
        multiplications=multiplications,
        stacked_multiplications=n_maps * target * in_channels * out_channels,
        input_bytes=bytes_per_number * source * in_channels,
        output_bytes=bytes_per_number * target * out_channels,
        extra_bytes=bytes_per_number * extra,
    )


def _lengths(spec: Spec, sizes: int | Mapping[str, int]) -> dict[str, int]:
    lengths = dict.fromkeys(spec.node_sets, sizes) if isinstance(sizes, int) else dict(sizes)
    if missing := [name for name in spec.node_sets if name not in lengths]:
        raise SizesError(
            f'plan("{spec}").cost(sizes=...) needs the size of every node set; there is none for '
            f"{', '.join(map(repr, missing))}.\nPass one number for all, or a dict such as "
            f"{{{', '.join(f'{name!r}: 10' for name in spec.node_sets)}}}."
        )
    if negative := [name for name in spec.node_sets if lengths[name] < 0]:
        name = negative[0]
        raise SizesError(f'plan("{spec}").cost(sizes=...): the size of {name!r} is negative: {lengths[name]}.')
    return lengths
