"""The spec of a map: over which node sets its sources and its targets run."""

import re
from dataclasses import dataclass

from bellnet.combinatorics import canonical
from bellnet.errors import SpecError

NAME = re.compile(r"[^\W\d]\w*")

Shape = tuple[str, ...]
"""The node set of every slot of one tensor."""

ONE = 'Give one name for each slot, for instance Spec(source=("n", "n"), target=("n",)).'
SEVERAL = 'Several tensors are a tuple of such tuples: Spec(source=(("n", "n"), ("n",)), target=("n",)).'


@dataclass(frozen=True, init=False, repr=False)
class Spec:
    """One node set for every slot of the source and of the target, or of each of several sources and targets.

    Args:
        source: The names of the slots of one tensor, or for a collection a tuple of such tuples, two or more.
        target: The same for what comes out.

    Attributes:
        sources: One shape for each tensor that goes in.
        targets: One shape for each tensor that comes out.

    >>> spec = Spec(source=("u", "i"), target=("u",))
    >>> str(spec), spec.node_sets
    ('u i -> u', ('u', 'i'))
    >>> eval(repr(spec)) == spec
    True
    >>> several = Spec(source=(("n", "n"), ("n",), ()), target=(("n", "n"), ("n",)))
    >>> str(several), several.sources
    ('n n, n, -> n n, n', (('n', 'n'), ('n',), ()))
    """

    sources: tuple[Shape, ...]
    targets: tuple[Shape, ...]

    def __init__(self, source: Shape | tuple[Shape, ...], target: Shape | tuple[Shape, ...]) -> None:
        object.__setattr__(self, "sources", _shapes("source", source))
        object.__setattr__(self, "targets", _shapes("target", target))

    def __repr__(self) -> str:
        source, target = (shapes[0] if len(shapes) == 1 else shapes for shapes in (self.sources, self.targets))
        return f"Spec(source={source!r}, target={target!r})"

    def __str__(self) -> str:
        return f"{text_of(self.sources)} -> {text_of(self.targets)}".strip()

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
        return Spec(self.sources[source], self.targets[target])

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
        numbers = canonical(self.slots)
        return numbers[: len(self.source)], numbers[len(self.source) : len(self.source) + len(self.target)]

    @property
    def target_only(self) -> Shape:
        """The node sets that no source has, whose lengths must therefore be given."""
        known = {name for shape in self.sources for name in shape}
        return tuple(dict.fromkeys(name for shape in self.targets for name in shape if name not in known))


def text_of(shapes: tuple[Shape, ...]) -> str:
    """Shapes as they are written on one side of an arrow."""
    return ", ".join(" ".join(shape) for shape in shapes).strip(" ")


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
