"""Levels: all diagrams of one rank, that is, with one number of crossing blocks in every node set."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from bellnet.errors import count_of
from bellnet.plan.contraction import Contraction
from bellnet.plan.diagram import Diagram, Permutation
from bellnet.spec import Spec

MOST_SHOWN = 8


@dataclass(frozen=True)
class Level:
    """The diagrams of one rank; `index[permutation][contraction][broadcast]` is the number of a diagram.

    Contractions are of all sources, one after the other, and broadcasts to all targets. `index` is None where a
    combination is not among the diagrams; that happens only with a declared symmetry.
    """

    rank: tuple[int, ...]
    contractions: tuple[Contraction, ...]
    permutations: tuple[Permutation, ...]
    broadcasts: tuple[Contraction, ...]
    index: tuple[tuple[tuple[int | None, ...], ...], ...]

    @property
    def axis_sets(self) -> tuple[int, ...]:
        """The node set of every axis of the tensors on this level."""
        return self.contractions[0].axis_sets

    @property
    def n_maps(self) -> int:
        """The number of diagrams on this level."""
        return sum(entry is not None for plane in self.index for row in plane for entry in row)


def group_by_rank(diagrams: Iterable[Diagram], n_sets: int) -> tuple[Level, ...]:
    """The diagrams, in the order of their numbers, grouped into levels of ascending rank."""
    by_rank: dict[tuple[int, ...], dict[tuple[Permutation, Contraction, Contraction], int]] = {}
    for number, diagram in enumerate(diagrams):
        axis_sets = diagram.contraction.axis_sets
        rank = tuple(axis_sets.count(node_set) for node_set in range(n_sets))
        by_rank.setdefault(rank, {})[diagram.permutation, diagram.contraction, diagram.broadcast] = number
    levels = []
    for rank in sorted(by_rank, key=lambda rank: (sum(rank), rank)):
        numbers = by_rank[rank]
        permutations = sorted({permutation for permutation, _, _ in numbers})
        contractions = sorted({contraction for _, contraction, _ in numbers}, key=_canonical_order)
        broadcasts = sorted({broadcast for _, _, broadcast in numbers}, key=_canonical_order)
        index = tuple(
            tuple(tuple(numbers.get((permutation, one, other)) for other in broadcasts) for one in contractions)
            for permutation in permutations
        )
        levels.append(Level(rank, tuple(contractions), tuple(permutations), tuple(broadcasts), index))
    return tuple(levels)


def _canonical_order(contraction: Contraction) -> tuple[int, tuple[int, ...], tuple[int, ...]]:
    return contraction.tensor, contraction.blocks, contraction.kept


def plan_table(spec: Spec, levels: Sequence[Level], n_maps: int, n_biases: int, declared: tuple[str, ...]) -> str:
    """One row for each rank, highest first: contractions, the number of permutations, broadcasts, maps."""
    several_sets = len(spec.node_sets) > 1
    rows = [("rank", "contract", "permute", "broadcast", "maps")]
    for level in reversed(levels):
        rank = " ".join(map(str, level.rank)) if several_sets else str(sum(level.rank))
        contract = _some(level.contractions, [one.contraction_name for one in level.contractions], len(spec.sources))
        broadcast = _some(level.broadcasts, [one.broadcast_name for one in level.broadcasts], len(spec.targets))
        rows.append((rank, contract, str(len(level.permutations)), broadcast, str(level.n_maps)))
    widths = [max(len(row[column]) for row in rows) for column in range(5)]
    lines = [f"{spec}    {count_of(n_maps, 'map')}, {count_of(n_biases, 'bias', 'biases')}"]
    if several_sets:
        lines[0] += f"    ranks: {' '.join(spec.node_sets)}"
    if declared:
        lines[0] += f"    on {' and '.join(declared)} inputs"
    for rank, contract, permute, broadcast, maps in rows:
        cells = (rank.rjust(widths[0]), contract.ljust(widths[1]), permute.rjust(widths[2]))
        lines.append("  " + "  ".join((*cells, broadcast.ljust(widths[3]), maps.rjust(widths[4]))))
    return "\n".join(lines)


def _some(contractions: Sequence[Contraction], names: list[str], n_tensors: int) -> str:
    """The names; with several tensors the first of each has its number in front."""
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
