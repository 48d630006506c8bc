"""The spec of a map: over which node sets its source and its target run."""

import re
from dataclasses import dataclass

from bellnet.combinatorics import canonical
from bellnet.errors import SpecError

NAME = re.compile(r"[^\W\d]\w*")


@dataclass(frozen=True, slots=True)
class Spec:
    """One node set for every slot of the source and of the target.

    >>> spec = Spec(source=("u", "i"), target=("u",))
    >>> str(spec), spec.node_sets
    ('u i -> u', ('u', 'i'))
    >>> eval(repr(spec)) == spec
    True
    """

    source: tuple[str, ...]
    target: tuple[str, ...]

    def __post_init__(self) -> None:
        for side in ("source", "target"):
            if not isinstance(getattr(self, side), tuple):
                raise SpecError(
                    f"Spec(source, target): {side} must be a tuple of names, not {getattr(self, side)!r}.\n"
                    'Give one name for each slot, for instance Spec(source=("n", "n"), target=("n",)).'
                )
        for name in self.slots:
            if NAME.fullmatch(str(name)) is None or str(name) != name:
                raise SpecError(
                    f"Spec(source, target): {name!r} is not the name of a node set.\n"
                    'Give one name for each slot, for instance Spec(source=("n", "n"), target=("n",)).'
                )

    def __str__(self) -> str:
        return " ".join([*self.source, "->", *self.target])

    @property
    def slots(self) -> tuple[str, ...]:
        """The node set of every slot, source slots first."""
        return self.source + self.target

    @property
    def node_sets(self) -> tuple[str, ...]:
        """The node sets, in order of first appearance."""
        return tuple(dict.fromkeys(self.slots))

    @property
    def set_numbers(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """For the source slots and for the target slots: which of `node_sets` each runs over."""
        numbers = canonical(self.slots)
        return numbers[: len(self.source)], numbers[len(self.source) :]

    @property
    def target_only(self) -> tuple[str, ...]:
        """The node sets that the source does not have, whose lengths must therefore be given."""
        return tuple(name for name in dict.fromkeys(self.target) if name not in self.source)
