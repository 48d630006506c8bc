"""The cost of a plan: multiplications and bytes."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

from bellnet.errors import SizesError, as_written
from bellnet.spec import Shape

if TYPE_CHECKING:
    from bellnet.plan.plan import Plan

BYTES = 4
"""The size of a float32."""


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
