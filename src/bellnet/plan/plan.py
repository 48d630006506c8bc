"""The plan of a spec: all its diagrams, grouped by rank, ready to be executed, counted and printed."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from bellnet.combinatorics import Partition
from bellnet.plan.cost import Cost, count_cost
from bellnet.plan.count import MOST_MAPS, refuse_giants
from bellnet.plan.declare import Declared
from bellnet.plan.diagram import Diagram
from bellnet.plan.level import Level, group_by_rank
from bellnet.plan.show import show_plan
from bellnet.plan.tree import Tree
from bellnet.spec import Spec, parse_spec


@dataclass(frozen=True)
class Plan:
    """Every linear map that a spec allows, and how they are computed together.

    `diagrams` are numbered in canonical order (restricted growth strings, source slots first, sorted): a weight's
    first axis counts them in that order. `biases` are the equality patterns of the target, in the same order, and
    `read_patterns` those equality patterns of the source that some diagram reads.
    `levels` group the diagrams by rank; `source` and `target` are the folds that levels read and write, and how each
    comes from another. Everything is made at once, because `torch.compile` cannot trace the making of it.

    A plan may leave out maps for inputs or results that have nothing on some diagonals: `absent_reads` and
    `absent_writes` are the equality patterns that no tuple has.
    """

    spec: Spec
    symmetric: bool
    hollow: bool
    absent_reads: frozenset[Partition] = field(repr=False)
    absent_writes: frozenset[Partition] = field(repr=False)
    diagrams: tuple[Diagram, ...] = field(compare=False, repr=False)
    biases: tuple[Partition, ...] = field(compare=False, repr=False)
    read_patterns: tuple[Partition, ...] = field(compare=False, repr=False)
    levels: tuple[Level, ...] = field(compare=False, repr=False)
    source: Tree = field(compare=False, repr=False)
    target: Tree = field(compare=False, repr=False)

    @property
    def n_maps(self) -> int:
        """The number of linear maps: the product over node sets of Bell(k + l), less with a declared symmetry."""
        return len(self.diagrams)

    @property
    def n_biases(self) -> int:
        """The number of constant maps: the product over node sets of Bell(l)."""
        return len(self.biases)

    @property
    def n_products(self) -> int:
        """The number of matrix products: one for each rank, min(k, l) + 1 of them for one node set."""
        return len(self.levels)

    def cost(self, sizes: int | Mapping[str, int], in_channels: int = 1, out_channels: int = 1, batch: int = 1) -> Cost:
        """What one forward pass costs, for node sets of these sizes.

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
        ordered = build(Spec(self.spec.source, self.spec.target), self.symmetric, self.hollow, frozenset(), frozenset())
        here, there = (sum(len(level.swaps) for level in one.levels) for one in (self, ordered))
        return f"  unordered slots: {self.n_maps:,} of {ordered.n_maps:,} maps, {here} of {there} products"

    @property
    def has_gaps(self) -> bool:
        """Whether some level lacks a combination of swap, read and write."""
        return any(None in row for level in self.levels for plane in level.index for row in plane)

    @property
    def declared(self) -> Declared:
        """What was declared of the input, slot by slot."""
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
      rank  reads                swaps  writes               maps
         2  ab->ab                   2  ab->ab                  2
         1  aa->a  ab->a  ab->b      1  a->aa  a->ab  b->ab     9
         0  aa->  ab->               1  ->aa  ->ab              4
    """
    spec, symmetric, hollow = parse_spec(spec), bool(symmetric), bool(hollow)
    refuse_giants(spec, symmetric=symmetric, hollow=hollow, max_maps=max_maps)
    return build(spec, symmetric, hollow, frozenset(), frozenset())


@lru_cache(maxsize=256)
def build(
    spec: Spec,
    symmetric: bool,
    hollow: bool,
    absent_reads: frozenset[Partition],
    absent_writes: frozenset[Partition],
) -> Plan:
    """Make a plan, or find it in the cache."""
    source, target = spec.set_numbers
    chosen = Declared.of(spec, symmetric=symmetric, hollow=hollow).partitions()
    diagrams = tuple(
        diagram
        for diagram in (Diagram(partition, source, target) for partition in chosen)
        if diagram.read.blocks not in absent_reads and diagram.write.blocks not in absent_writes
    )
    constants = Declared.of(spec.constants(), symmetric=False, hollow=False).partitions()
    biases = tuple(pattern for pattern in constants if pattern not in absent_writes)
    read_patterns = tuple(dict.fromkeys(diagram.read.blocks for diagram in diagrams))
    levels = group_by_rank(diagrams, len(spec.node_sets))
    return Plan(
        spec,
        symmetric,
        hollow,
        absent_reads,
        absent_writes,
        diagrams=diagrams,
        biases=biases,
        read_patterns=read_patterns,
        levels=levels,
        source=Tree.of(source, tuple(level.reads for level in levels)),
        target=Tree.of(target, tuple(level.writes for level in levels)),
    )
