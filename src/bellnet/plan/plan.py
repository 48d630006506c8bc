"""The plan of a spec: all its diagrams, grouped by rank, to be executed, counted and printed."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

from bellnet.combinatorics import Partition
from bellnet.errors import count_of
from bellnet.plan.contraction import Contraction, ContractionTree, Permutation
from bellnet.plan.cost import Cost, count_cost
from bellnet.plan.diagram import MOST_MAPS, Diagram, Symmetry, count_maps, count_products, refuse_giants, short_count
from bellnet.spec import Spec, parse_spec

Absent = tuple[frozenset[Partition], ...]
"""For every tensor on one side the equality patterns without stored entries."""


MOST_SHOWN = 8
"""The largest number of contractions that a row of the table names."""


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


class Pair(NamedTuple):
    """The maps from one source to one target: `n_maps` of them, numbered from `start` on."""

    source: int
    target: int
    start: int
    n_maps: int


@dataclass(frozen=True)
class Plan:
    """Every linear map of a spec, and how they are computed together.

    Everything is made at once, because `torch.compile` cannot trace the construction.

    Attributes:
        spec: The shapes of sources and targets.
        symmetric: Whether the input is declared symmetric.
        hollow: Whether the input is declared hollow.
        absent_source: For every source the equality patterns without stored entries; their maps are left out.
        absent_target: The same for the targets.
        diagrams: The maps in canonical order (restricted growth strings, source slots first, sorted), which is the
            order of a weight's first axis. With several tensors those of the first source to the first target come
            first, then those of the first source to the second target.
        pairs: Which diagrams belong to which source and target.
        bias_patterns: The equality patterns of every target, in canonical order, each of which has a bias.
        source_patterns: The equality patterns of every source that some diagram contracts.
        levels: The diagrams grouped by rank.
        source: The contractions of all levels, and how each is computed from another one.
        target: The same for the broadcasts.
    """

    spec: Spec
    symmetric: bool
    hollow: bool
    absent_source: Absent = field(repr=False)
    absent_target: Absent = field(repr=False)
    diagrams: tuple[Diagram, ...] = field(compare=False, repr=False)
    pairs: tuple[Pair, ...] = field(compare=False, repr=False)
    bias_patterns: tuple[tuple[Partition, ...], ...] = field(compare=False, repr=False)
    source_patterns: tuple[tuple[Partition, ...], ...] = field(compare=False, repr=False)
    levels: tuple[Level, ...] = field(compare=False, repr=False)
    source: ContractionTree = field(compare=False, repr=False)
    target: ContractionTree = field(compare=False, repr=False)

    @property
    def n_maps(self) -> int:
        """The number of linear maps: the product over node sets of Bell(k + l), fewer with a declared symmetry.

        With several tensors it is the sum over all pairs of a source and a target.
        """
        return len(self.diagrams)

    @property
    def biases(self) -> tuple[Partition, ...]:
        """The equality patterns of the target, or of all targets one after the other."""
        return tuple(pattern for patterns in self.bias_patterns for pattern in patterns)

    @property
    def numbered_biases(self) -> tuple[tuple[int, Partition], ...]:
        """The same, each with the number of its target."""
        return tuple((target, pattern) for target, patterns in enumerate(self.bias_patterns) for pattern in patterns)

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
        absent = (self.absent_source[source],), (self.absent_target[target],)
        return build(self.spec.pair(source, target), self.symmetric, self.hollow, *absent)

    def cost(
        self,
        sizes: int | Mapping[str, int],
        in_channels: int | Sequence[int] = 1,
        out_channels: int | Sequence[int] = 1,
        batch: int = 1,
    ) -> Cost:
        """The cost of one forward pass, for node sets of these sizes; several tensors may differ in their channels.

        >>> plan("n n -> n n").cost(10, in_channels=2, out_channels=3).multiplications  # (2n^2 + 9n + 4) d d'
        1764
        """
        return count_cost(self, sizes, in_channels, out_channels, batch)

    def __str__(self) -> str:
        names = tuple(name for name in ("symmetric", "hollow") if getattr(self, name))
        shown = plan_table(self.spec, self.levels, self.n_maps, self.n_biases, names)
        if not self.spec.unordered:
            return shown
        here = sum(len(level.permutations) for level in self.levels)
        # Counted and not listed, for they may be millions. Maps that a restricted plan leaves out are counted as well.
        known = {"symmetric": self.symmetric, "hollow": self.hollow}
        n_maps, there = count_maps(self.spec.ordered, **known), count_products(self.spec.ordered, **known)
        saved = f"{self.n_maps:,} of {short_count(n_maps)} maps, {here} of {there:,} products"
        return f"{shown}\n  unordered slots: {saved}"

    @property
    def has_gaps(self) -> bool:
        """Whether some level may lack a combination of permutation, contraction and broadcast."""
        return self.symmetric or bool(self.spec.unordered)

    @property
    def symmetry(self) -> Symmetry:
        """The symmetry of the slots of the one source and the one target."""
        return Symmetry.of(self.spec, symmetric=self.symmetric, hollow=self.hollow)

    def __reduce__(self) -> tuple[object, ...]:
        # A pickle or a copy of a layer has the arguments only; the plan comes from the cache again.
        return build, (self.spec, self.symmetric, self.hollow, self.absent_source, self.absent_target)


def plan(spec: str | Spec, *, symmetric: bool = False, hollow: bool = False, max_maps: int = MOST_MAPS) -> Plan:
    """The plan of a spec; equal arguments give the same plan, from a cache.

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

    With several tensors a number in brackets is that of the tensor that is contracted, or broadcast to.

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
def build(spec: Spec, symmetric: bool, hollow: bool, absent_source: Absent, absent_target: Absent) -> Plan:
    """A plan whose arguments are checked, from the cache if it is there."""
    if any(absent_source) or any(absent_target):
        nothing = frozenset[Partition]()
        whole = build(spec, symmetric, hollow, (nothing,) * len(absent_source), (nothing,) * len(absent_target))
        sources, targets = (tuple(root.sets for root in tree.roots) for tree in (whole.source, whole.target))
        by_pair = [list(whole.diagrams[pair.start : pair.start + pair.n_maps]) for pair in whole.pairs]
        constants = whole.bias_patterns
    else:
        sources, targets = spec.numbered
        by_pair = [
            [
                Diagram(partition, source_sets, target_sets, source, target)
                for partition in Symmetry.of(spec.pair(source, target), symmetric=symmetric, hollow=hollow).partitions()
            ]
            for source, source_sets in enumerate(sources)
            for target, target_sets in enumerate(targets)
        ]
        constants = tuple(
            Symmetry.of(spec.constants(target), symmetric=False, hollow=False).partitions()
            for target in range(len(targets))
        )
    diagrams: list[Diagram] = []
    pairs = []
    for number, of_pair in enumerate(by_pair):
        source, target = divmod(number, len(targets))
        remaining = [
            diagram
            for diagram in of_pair
            if diagram.contraction.blocks not in absent_source[source]
            and diagram.broadcast.blocks not in absent_target[target]
        ]
        pairs.append(Pair(source, target, len(diagrams), len(remaining)))
        diagrams += remaining
    levels = group_by_rank(diagrams, len({node_set for sets in (*sources, *targets) for node_set in sets}))
    patterns: list[dict[Partition, None]] = [{} for _ in sources]
    for diagram in diagrams:
        patterns[diagram.source][diagram.contraction.blocks] = None
    return Plan(
        spec,
        symmetric,
        hollow,
        absent_source,
        absent_target,
        diagrams=tuple(diagrams),
        pairs=tuple(pairs),
        bias_patterns=tuple(
            tuple(pattern for pattern in found if pattern not in absent)
            for found, absent in zip(constants, absent_target, strict=True)
        ),
        source_patterns=tuple(map(tuple, patterns)),
        levels=levels,
        source=ContractionTree.of(sources, tuple(level.contractions for level in levels)),
        target=ContractionTree.of(targets, tuple(level.broadcasts for level in levels)),
    )


class RestrictedPlan(NamedTuple):
    """The maps and biases of a plan whose equality patterns have stored entries."""

    plan: Plan
    maps: tuple[int, ...]  # their numbers in the whole plan
    biases: tuple[int, ...]  # the numbers of the remaining biases in the whole plan
    whole: Plan

    @property
    def is_whole(self) -> bool:
        """Whether nothing was left out."""
        return len(self.maps) == self.whole.n_maps and len(self.biases) == self.whole.n_biases


@lru_cache(maxsize=256)
def restrict(plan: Plan, absent_source: Absent, absent_target: Absent) -> RestrictedPlan:
    """Leave out the maps that contract, or broadcast to, an equality pattern without stored entries.

    Most graphs have no loops, so that their diagonal is such a pattern.

    >>> print(restrict(plan("n n -> n n"), (frozenset({(0, 0)}),), (frozenset({(0, 0)}),)).plan)
    n n -> n n    7 maps, 1 bias
      rank  contract      permute  broadcast     maps
         2  ab->ab              2  ab->ab           2
         1  ab->a  ab->b        1  a->ab  b->ab     4
         0  ab->                1  ->ab             1
    """
    remaining = build(plan.spec, plan.symmetric, plan.hollow, absent_source, absent_target)
    diagrams, constants = set(remaining.diagrams), set(remaining.numbered_biases)
    maps = tuple(number for number, diagram in enumerate(plan.diagrams) if diagram in diagrams)
    biases = tuple(number for number, bias in enumerate(plan.numbered_biases) if bias in constants)
    return RestrictedPlan(remaining, maps, biases, plan)


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
