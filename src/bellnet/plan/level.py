"""Levels: all diagrams of one rank, that is, with one number of crossing blocks in every node set."""

from collections.abc import Iterable
from dataclasses import dataclass

from bellnet.plan.contraction import Contraction
from bellnet.plan.diagram import Diagram, Permutation


@dataclass(frozen=True)
class Level:
    """Every diagram of one rank is one read, one swap and one write, and `index[swap][read][write]` is its number.

    Reads are of all sources, one after the other, and writes to all targets.

    `index` is None where a combination is not among the diagrams; that happens only with a declared symmetry.
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

    def transposed(self) -> "Level":
        """The level of the transposed maps: reads and writes change places, permutations are undone."""
        columns = tuple(tuple(zip(*plane, strict=True)) for plane in self.index)
        return Level(
            self.rank,
            self.broadcasts,
            tuple(_inverse(permutation) for permutation in self.permutations),
            self.contractions,
            columns,
        )


def group_by_rank(diagrams: Iterable[Diagram], n_sets: int) -> tuple[Level, ...]:
    """The diagrams, in the order they are numbered, grouped into levels of ascending rank."""
    by_rank: dict[tuple[int, ...], dict[tuple[Permutation, Contraction, Contraction], int]] = {}
    for number, diagram in enumerate(diagrams):
        axis_sets = diagram.contraction.axis_sets
        rank = tuple(axis_sets.count(node_set) for node_set in range(n_sets))
        by_rank.setdefault(rank, {})[diagram.permutation, diagram.contraction, diagram.broadcast] = number
    return tuple(_level(rank, by_rank[rank]) for rank in sorted(by_rank, key=lambda rank: (sum(rank), rank)))


def _level(rank: tuple[int, ...], numbers: dict[tuple[Permutation, Contraction, Contraction], int]) -> Level:
    permutations = tuple(sorted({permutation for permutation, _, _ in numbers}))
    contractions = tuple(sorted({read for _, read, _ in numbers}, key=_canonical_order))
    broadcasts = tuple(sorted({write for _, _, write in numbers}, key=_canonical_order))
    index = tuple(
        tuple(tuple(numbers.get((permutation, read, write)) for write in broadcasts) for read in contractions)
        for permutation in permutations
    )
    return Level(rank, contractions, permutations, broadcasts, index)


def _canonical_order(contraction: Contraction) -> tuple[int, tuple[int, ...], tuple[int, ...]]:
    return contraction.tensor, contraction.blocks, contraction.kept


def _inverse(permutation: Permutation) -> Permutation:
    return tuple(permutation.index(axis) for axis in range(len(permutation)))
