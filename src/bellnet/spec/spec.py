"""The spec of a map: over which node sets its sources and its targets run."""

import re
from dataclasses import dataclass
from itertools import count

from bellnet.combinatorics import canonical
from bellnet.errors import SpecError

NAME = re.compile(r"[^\W\d]\w*")

Shape = tuple[str, ...]
"""The node set of every slot of one tensor."""

Groups = tuple[tuple[int, ...], ...]
"""Groups of slots that may be exchanged."""

ONE = 'Give one name for each slot, for instance Spec(source=("n", "n"), target=("n",)).'
GROUPS = "Give the numbers of slots that may be exchanged, source slots first, for instance unordered=((0, 1),)."
SEVERAL = 'Several tensors are a tuple of such tuples: Spec(source=(("n", "n"), ("n",)), target=("n",)).'


@dataclass(frozen=True, init=False, repr=False)
class Spec:
    """One node set for every slot of the source and of the target, or of each of several sources and targets.

    Args:
        source: The names of the slots of one tensor, or for a collection a tuple of such tuples, two or more.
        target: The same for what comes out.
        unordered: Groups of slots, numbered through all tensors, source slots first; exchanging those of a group
            changes nothing. In a text they have braces around them.

    Attributes:
        sources: One shape for each tensor that goes in.
        targets: One shape for each tensor that comes out.
        unordered: The groups.

    >>> spec = Spec(source=("u", "i"), target=("u",))
    >>> str(spec), spec.node_sets
    ('u i -> u', ('u', 'i'))
    >>> eval(repr(spec)) == spec
    True
    >>> several = Spec(source=(("n", "n"), ("n",), ()), target=(("n", "n"), ("n",)))
    >>> str(several), several.sources
    ('n n, n, -> n n, n', (('n', 'n'), ('n',), ()))
    >>> str(Spec(("n", "n"), ("n",), unordered=((0, 1),)))
    '{n n} -> n'
    """

    sources: tuple[Shape, ...]
    targets: tuple[Shape, ...]
    unordered: Groups

    def __init__(
        self, source: Shape | tuple[Shape, ...], target: Shape | tuple[Shape, ...], unordered: Groups = ()
    ) -> None:
        object.__setattr__(self, "sources", _shapes("source", source))
        object.__setattr__(self, "targets", _shapes("target", target))
        object.__setattr__(self, "unordered", _groups(unordered, (*self.sources, *self.targets)))

    def __repr__(self) -> str:
        source, target = self._sides
        groups = f", unordered={self.unordered!r}" if self.unordered else ""
        return f"Spec(source={source!r}, target={target!r}{groups})"

    def __str__(self) -> str:
        n_source = sum(map(len, self.sources))
        of_source, of_target = text_of(self.sources, self.unordered), text_of(self.targets, self.unordered, n_source)
        return f"{of_source} -> {of_target}".strip()

    @property
    def is_single(self) -> bool:
        """Whether it leads from one tensor to one tensor."""
        return len(self.sources) == len(self.targets) == 1

    @property
    def source(self) -> Shape:
        """The node set of every slot of the one source."""
        return self._one("source", self.sources)

    @property
    def target(self) -> Shape:
        """The node set of every slot of the one target."""
        return self._one("target", self.targets)

    def _one(self, side: str, shapes: tuple[Shape, ...]) -> Shape:
        if len(shapes) > 1:
            raise SpecError(f'The spec "{self}" has {len(shapes)} {side}s: see spec.{side}s for the shape of each.')
        return shapes[0]

    def pair(self, source: int, target: int) -> "Spec":
        """The spec of the maps from one of the sources to one of the targets."""
        return self._part([source], len(self.sources) + target)

    def constants(self, target: int = 0) -> "Spec":
        """The spec of the constant maps to one of the targets, which need no source."""
        return self._part([], len(self.sources) + target)

    def _part(self, sources: list[int], target: int) -> "Spec":
        """The spec between some of its tensors, which are numbered sources first."""
        shapes, starts = (*self.sources, *self.targets), [0]
        for shape in shapes:
            starts.append(starts[-1] + len(shape))
        kept = [slot for one in (*sources, target) for slot in range(starts[one], starts[one + 1])]
        groups = tuple(tuple(map(kept.index, group)) for group in self.unordered if group[0] in kept)
        return Spec(shapes[sources[0]] if sources else (), shapes[target], groups)

    @property
    def ordered(self) -> "Spec":
        """The same without braces."""
        source, target = self._sides
        return Spec(source, target)

    @property
    def to_itself(self) -> "Spec":
        """From the sources to tensors of the same shapes, unordered where those are."""
        side, _ = self._sides
        n_slots = sum(map(len, self.sources))
        groups = tuple(group for group in self.unordered if group[0] < n_slots)
        return Spec(side, side, groups + tuple(tuple(slot + n_slots for slot in group) for group in groups))

    @property
    def _sides(self) -> tuple[Shape | tuple[Shape, ...], Shape | tuple[Shape, ...]]:
        """Source and target as they are given: the shape of one tensor, or several shapes."""
        source, target = (shapes[0] if len(shapes) == 1 else shapes for shapes in (self.sources, self.targets))
        return source, target

    @property
    def slots(self) -> Shape:
        """The node set of every slot, source slots first."""
        return tuple(name for shape in (*self.sources, *self.targets) for name in shape)

    @property
    def node_sets(self) -> Shape:
        """The node sets, in order of first appearance."""
        return tuple(dict.fromkeys(self.slots))

    @property
    def numbered(self) -> tuple[tuple[tuple[int, ...], ...], tuple[tuple[int, ...], ...]]:
        """For the slots of every source and of every target: which of `node_sets` each runs over."""
        numbers = iter(canonical(self.slots))
        source, target = (
            tuple(tuple(next(numbers) for _ in shape) for shape in shapes) for shapes in (self.sources, self.targets)
        )
        return source, target

    @property
    def set_numbers(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The same for the slots of the one source and of the one target."""
        assert len(self.source) + len(self.target) == len(self.slots)
        (source,), (target,) = self.numbered
        return source, target

    @property
    def target_only(self) -> Shape:
        """The node sets that no source has, whose lengths must therefore be given."""
        known = {name for shape in self.sources for name in shape}
        return tuple(dict.fromkeys(name for shape in self.targets for name in shape if name not in known))


def text_of(shapes: tuple[Shape, ...], unordered: Groups = (), start: int = 0) -> str:
    """Shapes as they are written on one side of an arrow; their slots are numbered from `start`."""
    first, last = {group[0] for group in unordered}, {group[-1] for group in unordered}
    numbers = count(start)
    words = [
        [f"{'{' * (slot in first)}{name}{'}' * (slot in last)}" for name, slot in zip(shape, numbers, strict=False)]
        for shape in shapes
    ]
    return ", ".join(map(" ".join, words)).strip(" ")


def _shapes(side: str, given: object) -> tuple[Shape, ...]:
    """One shape for each tensor, from the names of one or from several shapes."""
    call = "Spec(source, target)"
    if not isinstance(given, tuple):
        raise SpecError(f"{call}: {side} must be a tuple of names, not {given!r}.\n{ONE}")
    several = any(isinstance(one, tuple) for one in given)
    if several and (len(given) < 2 or not all(isinstance(one, tuple) for one in given)):
        raise SpecError(
            f"{call}: {side} must be the names of one tensor, or at least two tuples of names, not {given!r}.\n"
            f"{ONE}\n{SEVERAL}"
        )
    shapes = given if several else (given,)
    for name in (name for shape in shapes for name in shape):
        if NAME.fullmatch(str(name)) is None or str(name) != name:
            raise SpecError(f"{call}: {name!r} is not the name of a node set.\n{ONE}")
    return shapes


def _groups(given: object, shapes: tuple[Shape, ...]) -> Groups:
    """The groups in order, if each has neighbouring slots of one tensor and one node set."""
    of_slot = [(number, name) for number, shape in enumerate(shapes) for name in shape]
    groups = given if isinstance(given, tuple) else None
    for group in groups or ():
        fits = (
            isinstance(group, tuple)
            and len(group) > 1
            and all(type(slot) is int and 0 <= slot < len(of_slot) for slot in group)
            and group == tuple(range(group[0], group[0] + len(group)))
            and len({of_slot[slot] for slot in group}) == 1
        )
        groups = groups if fits else None
        if groups is None:
            break
    if groups is None or len({slot for group in groups for slot in group}) < sum(map(len, groups)):
        raise SpecError(
            f"Spec(source, target, unordered): unordered must be groups of neighbouring slots of one tensor and one "
            f"node set, not {given!r}.\n{GROUPS}"
        )
    return tuple(sorted(groups))
