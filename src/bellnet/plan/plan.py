"""The plan of a spec: all its diagrams, grouped by rank, ready to be executed, counted and printed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

from bellnet.combinatorics import Partition
from bellnet.plan.cost import Cost, count_cost
from bellnet.plan.count import MOST_MAPS, count_maps, count_products, refuse_giants, short_count
from bellnet.plan.declare import Declared
from bellnet.plan.diagram import Diagram
from bellnet.plan.level import Level, group_by_rank
from bellnet.plan.show import show_plan
from bellnet.plan.tree import Tree
from bellnet.spec import Spec, parse_spec

Absent = tuple[frozenset[Partition], ...]
"""For every tensor on one side the equality patterns that none of its tuples has."""


class Pair(NamedTuple):
    """The maps from one source to one target: `n_maps` of them, numbered from `start` on."""

    source: int
    target: int
    start: int
    n_maps: int


@dataclass(frozen=True)
class Plan:
    """Every linear map that a spec allows, and how they are computed together.

    `diagrams` are numbered in canonical order (restricted growth strings, source slots first, sorted): a weight's
    first axis counts them in that order. With several sources and targets those of the first source to the first target
    come first, then those of the first source to the second target; `pairs` says which are whose.
    `written` are the equality patterns of every target, in the same order, each of which has a bias, and
    `read_patterns` those equality patterns of every source that some diagram reads.
    `levels` group the diagrams by rank; `source` and `target` are the contractions that levels read and write, and how
    each comes from another. Everything is made at once, because `torch.compile` cannot trace the making of it.

    A plan may leave out maps for inputs or results that have nothing on some diagonals: `absent_reads` and
    `absent_writes` are the equality patterns that no tuple has.
    """

    spec: Spec
    symmetric: bool
    hollow: bool
    absent_reads: Absent = field(repr=False)
    absent_writes: Absent = field(repr=False)
    diagrams: tuple[Diagram, ...] = field(compare=False, repr=False)
    pairs: tuple[Pair, ...] = field(compare=False, repr=False)
    written: tuple[tuple[Partition, ...], ...] = field(compare=False, repr=False)
    read_patterns: tuple[tuple[Partition, ...], ...] = field(compare=False, repr=False)
    levels: tuple[Level, ...] = field(compare=False, repr=False)
    source: Tree = field(compare=False, repr=False)
    target: Tree = field(compare=False, repr=False)

    @property
    def n_maps(self) -> int:
        """The number of linear maps: the product over node sets of Bell(k + l), less with a declared symmetry.

        That is summed over all pairs of a source and a target.
        """
        return len(self.diagrams)

    @property
    def biases(self) -> tuple[Partition, ...]:
        """The equality patterns of the target, or of all targets one after the other."""
        return tuple(pattern for patterns in self.written for pattern in patterns)

    @property
    def numbered_biases(self) -> tuple[tuple[int, Partition], ...]:
        """The same, each with the number of its target."""
        return tuple((target, pattern) for target, patterns in enumerate(self.written) for pattern in patterns)

    @property
    def n_biases(self) -> int:
        """The number of constant maps: the product over node sets of Bell(l)."""
        return len(self.biases)

    @property
    def n_products(self) -> int:
        """The number of matrix products: one for each rank, min(k, l) + 1 of them for one node set."""
        return len(self.levels)

    def pair(self, source: int, target: int) -> "Plan":
        """The plan of the maps from one of the sources to one of the targets alone."""
        absent = (self.absent_reads[source],), (self.absent_writes[target],)
        return build(self.spec.pair(source, target), self.symmetric, self.hollow, *absent)

    def cost(
        self,
        sizes: int | Mapping[str, int],
        in_channels: int | Sequence[int] = 1,
        out_channels: int | Sequence[int] = 1,
        batch: int = 1,
    ) -> Cost:
        """What one forward pass costs, for node sets of these sizes; several tensors may differ in their channels.

        >>> plan("n n -> n n").cost(10, in_channels=2, out_channels=3).multiplications  # (2n^2 + 9n + 4) d d'
        1764
        """
        return count_cost(self.spec, self.levels, (self.source, self.target), sizes, in_channels, out_channels, batch)

    def __str__(self) -> str:
        names = tuple(name for name in ("symmetric", "hollow") if getattr(self, name))
        shown = show_plan(self.spec, self.levels, self.n_maps, self.n_biases, names)
        return f"{shown}\n{self._saved()}" if self.spec.unordered else shown

    def _saved(self) -> str:
        """What unordered slots save of maps and of products, one of which each swap takes."""
        here = sum(len(level.permutations) for level in self.levels)
        # Counted and not listed, for they may be millions. What a plan has nothing to read of is counted as well.
        known = {"symmetric": self.symmetric, "hollow": self.hollow}
        n_maps, there = count_maps(self.spec.ordered, **known), count_products(self.spec.ordered, **known)
        return f"  unordered slots: {self.n_maps:,} of {short_count(n_maps)} maps, {here} of {there:,} products"

    @property
    def has_gaps(self) -> bool:
        """Whether some level may lack a combination of swap, read and write."""
        return self.symmetric or bool(self.spec.unordered)

    @property
    def declared(self) -> Declared:
        """What was declared of the one input, slot by slot."""
        return Declared.of(self.spec, symmetric=self.symmetric, hollow=self.hollow)

    def __reduce__(self) -> tuple[object, ...]:
        # A pickle or a copy of a layer holds the question, not the answer: the plan is found again in the cache.
        return build, (self.spec, self.symmetric, self.hollow, self.absent_reads, self.absent_writes)


def plan(spec: str | Spec, *, symmetric: bool = False, hollow: bool = False, max_maps: int = MOST_MAPS) -> Plan:
    """The plan of a spec, from the cache if it was asked for before.

    Args:
        spec: The shape of source and target, for instance "n n -> n".
        symmetric: The input does not change when slots of one node set are exchanged.
        hollow: The input is zero wherever two slots of one node set coincide.
        max_maps: A spec with more maps is refused before any work; they are counted, not listed. Nine slots of one
            node set (21,147 maps) are within the default, ten (115,975) are not.

    >>> print(plan("n n -> n n"))
    n n -> n n    15 maps, 2 biases
      rank  contract             permute  broadcast            maps
         2  ab->ab                     2  ab->ab                  2
         1  aa->a  ab->a  ab->b        1  a->aa  a->ab  b->ab     9
         0  aa->  ab->                 1  ->aa  ->ab              4

    With several tensors numbers in brackets say of which one the reads are, and to which one the writes go.

    >>> print(plan("n n, n -> n"))
    n n, n -> n    7 maps, 1 bias
      rank  contract                           permute  broadcast  maps
         1  [0] aa->a  ab->a  ab->b  [1] a->a        1  a->a          4
         0  [0] aa->  ab->  [1] a->                  1  ->a           3
    """
    spec, symmetric, hollow = parse_spec(spec), bool(symmetric), bool(hollow)
    refuse_giants(spec, symmetric=symmetric, hollow=hollow, max_maps=max_maps)
    nothing = frozenset[Partition]()
    return build(spec, symmetric, hollow, (nothing,) * len(spec.sources), (nothing,) * len(spec.targets))


@lru_cache(maxsize=256)
def build(spec: Spec, symmetric: bool, hollow: bool, absent_reads: Absent, absent_writes: Absent) -> Plan:
    """Make a plan, or find it in the cache."""
    sources, targets = spec.numbered
    diagrams: list[Diagram] = []
    pairs = []
    for source, reads in enumerate(sources):
        for target, writes in enumerate(targets):
            chosen = Declared.of(spec.pair(source, target), symmetric=symmetric, hollow=hollow).partitions()
            left = [
                diagram
                for diagram in (Diagram(partition, reads, writes, source, target) for partition in chosen)
                if diagram.contraction.blocks not in absent_reads[source]
                and diagram.broadcast.blocks not in absent_writes[target]
            ]
            pairs.append(Pair(source, target, len(diagrams), len(left)))
            diagrams += left
    levels = group_by_rank(diagrams, len(spec.node_sets))
    patterns: list[dict[Partition, None]] = [{} for _ in sources]
    for diagram in diagrams:
        patterns[diagram.source][diagram.contraction.blocks] = None
    return Plan(
        spec,
        symmetric,
        hollow,
        absent_reads,
        absent_writes,
        diagrams=tuple(diagrams),
        pairs=tuple(pairs),
        written=tuple(
            tuple(pattern for pattern in _constants(spec, target) if pattern not in absent)
            for target, absent in enumerate(absent_writes)
        ),
        read_patterns=tuple(map(tuple, patterns)),
        levels=levels,
        source=Tree.of(sources, tuple(level.contractions for level in levels)),
        target=Tree.of(targets, tuple(level.broadcasts for level in levels)),
    )


def _constants(spec: Spec, target: int) -> tuple[Partition, ...]:
    """The equality patterns of a target, one of those that exchanges of unordered slots make of each other."""
    return Declared.of(spec.constants(target), symmetric=False, hollow=False).partitions()
