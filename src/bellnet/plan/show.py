"""The plan as a table."""

from collections.abc import Iterable, Sequence

from bellnet.plan.contraction import Contraction
from bellnet.plan.level import Level
from bellnet.spec import Spec

MOST_SHOWN = 8


def show_plan(spec: Spec, levels: Iterable[Level], n_maps: int, n_biases: int, declared: tuple[str, ...]) -> str:
    """One row a rank, highest first: what is read, in how many orders it is swapped, what is written."""
    several_sets = len(spec.node_sets) > 1
    rows = [("rank", "contract", "permute", "broadcast", "maps")]
    for level in reversed(list(levels)):
        rank = " ".join(map(str, level.rank)) if several_sets else str(sum(level.rank))
        reads = _some(
            level.contractions, [contraction.contraction_name for contraction in level.contractions], len(spec.sources)
        )
        writes = _some(
            level.broadcasts, [contraction.broadcast_name for contraction in level.broadcasts], len(spec.targets)
        )
        rows.append((rank, reads, str(len(level.permutations)), writes, str(level.n_maps)))
    widths = [max(len(row[column]) for row in rows) for column in range(5)]
    lines = [f"{spec}    {_count(n_maps, 'map')}, {_count(n_biases, 'bias', 'biases')}"]
    if several_sets:
        lines[0] += f"    ranks: {' '.join(spec.node_sets)}"
    if declared:
        lines[0] += f"    on {' and '.join(declared)} inputs"
    for rank, reads, permutations, writes, maps in rows:
        cells = (rank.rjust(widths[0]), reads.ljust(widths[1]), permutations.rjust(widths[2]))
        lines.append("  " + "  ".join((*cells, writes.ljust(widths[3]), maps.rjust(widths[4]))))
    return "\n".join(lines)


def _some(contractions: Sequence[Contraction], names: list[str], n_tensors: int) -> str:
    """The names; of several tensors each begins with its number, as in a tuple."""
    if n_tensors > 1:
        begins = [
            number == 0 or contractions[number - 1].tensor != contraction.tensor
            for number, contraction in enumerate(contractions)
        ]
        names = [
            f"[{contraction.tensor}] {name}" if first else name
            for contraction, name, first in zip(contractions, names, begins, strict=True)
        ]
    if len(names) <= MOST_SHOWN:
        return "  ".join(names)
    return "  ".join([*names[: MOST_SHOWN - 1], f"... {len(names)} in all"])


def _count(number: int, singular: str, plural: str | None = None) -> str:
    return f"{number:,} {singular if number == 1 else plural or singular + 's'}"
