"""The attributes of nodes and edges of a list of graphs, and the choice among them where the caller names none.

Numbers become features and texts labels, where every node (or edge) of every graph has one. If there is an attribute
with the default name, it is the only one. Each attribute that is not used is reported with the argument that uses it.
"""

import math
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from bellnet.data.attributes import ROLES, Names

MOST_TEXTS = 128
"""An attribute with more different texts is taken for names, not for labels; there are 118 chemical elements."""
NUMBERS, TEXT, OTHER = "numbers", "text", "other"
ROLES_OF = {"node": ("node_attrs", "node_labels"), "edge": ("edge_attrs", "edge_labels")}
"""For nodes and edges the arguments that name features and labels."""


@dataclass
class Attribute:
    """A summary of all values of an attribute."""

    count: int = 0
    kinds: set[str] = field(default_factory=set)
    widths: set[int] = field(default_factory=set)
    texts: set[str] = field(default_factory=set)
    whole: bool = True

    def add(self, value: object) -> None:
        """Adds the value of one node or edge; None and NaN are missing values."""
        if isinstance(value, str):
            self._count(TEXT, 1)
            if len(self.texts) <= MOST_TEXTS:
                self.texts.add(value)
        elif isinstance(value, int | float):
            if isinstance(value, int) or math.isfinite(value):
                self._count(NUMBERS if abs(value) <= sys.float_info.max else OTHER, 1)
                self.widths.add(1)
                self.whole &= type(value) is int
        elif value is not None:
            try:
                numbers = torch.as_tensor(value, dtype=torch.float64)
            except (TypeError, ValueError, RuntimeError, OverflowError):
                self._count(OTHER, 1)
                return
            if bool(numbers.isfinite().all()):
                self._count(NUMBERS, 1)
                self.widths.add(numbers.numel())
                self.whole &= hasattr(value, "__index__") and not isinstance(value, Tensor)

    def add_column(self, values: Tensor) -> None:
        """Adds the values of all nodes or edges of a graph, a row for each."""
        if values.ndim > 2 or values.is_complex():
            self._count(OTHER, len(values))
            return
        rows = values.unsqueeze(-1) if values.ndim == 1 else values
        self._count(NUMBERS, int(rows.isfinite().all(1).sum()))
        self.widths.add(rows.shape[1])
        self.whole &= not values.is_floating_point() and values.dtype != torch.bool and rows.shape[1] == 1

    @property
    def kind(self) -> str:
        """Numbers, text, or other."""
        return next(iter(self.kinds)) if len(self.kinds) == 1 else OTHER

    def _count(self, kind: str, count: int) -> None:
        self.kinds.add(kind)
        self.count += count


class Survey:
    """The attributes of all nodes and edges of some graphs.

    Args:
        defaults: For each role the default names of its attribute, of which the first that exists is used.
        separate: Whether nodes and edges may have different attributes of one name.
    """

    def __init__(self, defaults: Mapping[str, tuple[str, ...]], *, separate: bool) -> None:
        self.defaults = defaults
        self.separate = separate
        self.totals = {"node": 0, "edge": 0}
        self.found: dict[str, dict[str, Attribute]] = {"node": {}, "edge": {}}

    def add_rows(self, owner: str, rows: Iterable[Mapping[Any, object]]) -> None:
        """Adds all attributes of some nodes or edges, a mapping for each; names are texts."""
        for row in rows:
            self.totals[owner] += 1
            for name, value in row.items():
                if isinstance(name, str):
                    self.found[owner].setdefault(name, Attribute()).add(value)

    def add_column(self, owner: str, name: str, values: Tensor | Iterable[object]) -> None:
        """Adds one attribute of all nodes or edges of a graph."""
        attribute = self.found[owner].setdefault(name, Attribute())
        if isinstance(values, Tensor):
            attribute.add_column(values)
            return
        for value in values:
            attribute.add(value)

    def choose(self, names: Names) -> tuple[Names, list[str]]:
        """The names to read, and a sentence for each attribute that is not used.

        A role with names from the caller is unchanged and not reported. None stands for the default name.
        """
        chosen: dict[str, tuple[str, ...] | None] = {}
        left: list[str] = []
        for owner, roles in ROLES_OF.items():
            taken = {name for role in (roles if self.separate else ROLES) for name in getattr(names, role) or ()}
            found, said = self._choose(owner, {role: getattr(names, role) for role in roles}, taken)
            chosen |= found
            left += said
        return Names(**chosen), left

    def _choose(
        self, owner: str, given: dict[str, tuple[str, ...] | None], taken: set[str]
    ) -> tuple[dict[str, tuple[str, ...] | None], list[str]]:
        features, labels = ROLES_OF[owner]
        attributes = self.found[owner]
        defaults = {role: self._default(role, attributes, taken) for role, names in given.items() if names is None}
        chosen = dict(given)
        for role, there in defaults.items():
            if there is None and any(name in taken for name in self.defaults[role]):
                chosen[role] = ()  # an attribute named in another role is no default
            elif there is not None and role == "edge_labels":
                chosen[role] = (there,)  # without a name, edge labels are not read
        used = taken | {name for name in defaults.values() if name is not None}
        left = []
        for name in sorted(attributes.keys() - used):
            attribute = attributes[name]
            fitting = {NUMBERS: features, TEXT: labels}.get(attribute.kind)
            if fitting is None:
                if defaults:
                    left.append(f"Of {owner}s: {name!r}, which is neither all numbers nor all text.")
            elif fitting in defaults:
                why = self._why_not(owner, name, role=fitting, defaults=defaults[fitting])
                if why:
                    left.append(f"Of {owner}s: {name!r}, {why}")
                else:
                    chosen[fitting] = (*(chosen[fitting] or ()), name)
        return chosen, left

    def _default(self, role: str, attributes: Mapping[str, Attribute], taken: set[str]) -> str | None:
        """The default name that exists; edge types must be integers."""
        for name in self.defaults[role]:
            if name in attributes and name not in taken:
                complete = attributes[name].count == self.totals["edge"]
                if role != "edge_labels" or (complete and attributes[name].whole):
                    return name
        return None

    def _why_not(self, owner: str, name: str, *, role: str, defaults: str | None) -> str:
        """The reason why an attribute is not used; empty if it is used."""
        attribute, total = self.found[owner][name], self.totals[owner]
        if attribute.count < total:
            return f"which {attribute.count} of {total} have; {role}={name!r} takes it where all have it."
        if len(attribute.widths) > 1:
            return "which has not equally many numbers everywhere."
        if defaults is not None:
            return f"since {defaults!r} is there; {role}={[defaults, name]!r} takes both."
        if len(attribute.texts) > MOST_TEXTS:
            return f"which has more than {MOST_TEXTS} different texts; {role}={name!r} takes it."
        return ""
