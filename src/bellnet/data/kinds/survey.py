"""What attributes the nodes and edges of a list of graphs have, and which of them are used without being named.

Numbers become features and texts labels, where every node, or every edge, of every graph has one. Where there is an
attribute under the usual name, that one alone is used: its author has said what the features are. Whatever is left out
is told, with the argument that would take it.
"""

import math
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from bellnet.data.columns import ROLES
from bellnet.data.kinds.names import Names

MOST_TEXTS = 128
"""An attribute with more texts than that names things rather than kinds of things; there are 118 elements."""
NUMBERS, TEXT, OTHER = "numbers", "text", "other"
OF_OWNER = {"node": ("node_attrs", "node_labels"), "edge": ("edge_attrs", "edge_labels")}
"""For nodes and edges the argument that names features, and the one that names labels."""


@dataclass
class Attribute:
    """What is known of all values of an attribute."""

    count: int = 0
    kinds: set[str] = field(default_factory=set)
    widths: set[int] = field(default_factory=set)
    texts: set[str] = field(default_factory=set)
    whole: bool = True

    def see(self, value: object) -> None:
        """Take note of the value of one node or edge; None and NaN are gaps."""
        if isinstance(value, str):
            self._note(TEXT, 1)
            if len(self.texts) <= MOST_TEXTS:
                self.texts.add(value)
        elif isinstance(value, int | float):
            if isinstance(value, int) or math.isfinite(value):
                self._note(NUMBERS if abs(value) <= sys.float_info.max else OTHER, 1)
                self.widths.add(1)
                self.whole &= type(value) is int
        elif value is not None:
            try:
                numbers = torch.as_tensor(value, dtype=torch.float64)
            except (TypeError, ValueError, RuntimeError, OverflowError):
                self._note(OTHER, 1)
                return
            if bool(numbers.isfinite().all()):
                self._note(NUMBERS, 1)
                self.widths.add(numbers.numel())
                self.whole &= hasattr(value, "__index__") and not isinstance(value, Tensor)

    def see_column(self, values: Tensor) -> None:
        """Take note of the values of all nodes or edges of a graph, a row for each."""
        if values.ndim > 2 or values.is_complex():
            self._note(OTHER, len(values))
            return
        rows = values.unsqueeze(-1) if values.ndim == 1 else values
        self._note(NUMBERS, int(rows.isfinite().all(1).sum()))
        self.widths.add(rows.shape[1])
        self.whole &= not values.is_floating_point() and values.dtype != torch.bool and rows.shape[1] == 1

    @property
    def kind(self) -> str:
        """Numbers, text, or something else."""
        return next(iter(self.kinds)) if len(self.kinds) == 1 else OTHER

    def _note(self, kind: str, count: int) -> None:
        self.kinds.add(kind)
        self.count += count


class Survey:
    """The attributes of all nodes and edges of some graphs.

    Args:
        usual: For each role the usual names of attributes, the first that is there being the one that is used.
        apart: Whether nodes and edges may have different attributes of one name.
    """

    def __init__(self, usual: Mapping[str, tuple[str, ...]], *, apart: bool) -> None:
        self.usual = usual
        self.apart = apart
        self.totals = {"node": 0, "edge": 0}
        self.found: dict[str, dict[str, Attribute]] = {"node": {}, "edge": {}}

    def see_rows(self, owner: str, rows: Iterable[Mapping[Any, object]]) -> None:
        """Take note of all attributes of some nodes or edges, a mapping for each; names are text."""
        for row in rows:
            self.totals[owner] += 1
            for name, value in row.items():
                if isinstance(name, str):
                    self.found[owner].setdefault(name, Attribute()).see(value)

    def see_column(self, owner: str, name: str, values: Tensor | Iterable[object]) -> None:
        """Take note of one attribute of all nodes or edges of a graph."""
        attribute = self.found[owner].setdefault(name, Attribute())
        if isinstance(values, Tensor):
            attribute.see_column(values)
            return
        for value in values:
            attribute.see(value)

    def choose(self, names: Names) -> tuple[Names, list[str]]:
        """The names to read by, and a sentence for every attribute that is left out.

        A role that the caller has named stays as it is, and nothing is said of it. None stands for the usual name.
        """
        chosen: dict[str, tuple[str, ...] | None] = {}
        left: list[str] = []
        for owner, roles in OF_OWNER.items():
            taken = {name for role in (roles if self.apart else ROLES) for name in getattr(names, role) or ()}
            found, said = self._choose(owner, {role: getattr(names, role) for role in roles}, taken)
            chosen |= found
            left += said
        return Names(**chosen), left

    def _choose(
        self, owner: str, given: dict[str, tuple[str, ...] | None], taken: set[str]
    ) -> tuple[dict[str, tuple[str, ...] | None], list[str]]:
        features, labels = OF_OWNER[owner]
        attributes = self.found[owner]
        usual = {role: self._usual(role, attributes, taken) for role, names in given.items() if names is None}
        chosen = dict(given)
        for role, there in usual.items():
            if there is None and any(name in taken for name in self.usual[role]):
                chosen[role] = ()  # what is named in another role is no default besides
            elif there is not None and role == "edge_labels":
                chosen[role] = (there,)  # read by its name alone, since files of old know no labels of edges
        used = taken | {name for name in usual.values() if name is not None}
        left = []
        for name in sorted(attributes.keys() - used):
            attribute = attributes[name]
            fitting = {NUMBERS: features, TEXT: labels}.get(attribute.kind)
            if fitting is None:
                if usual:
                    left.append(f"Of {owner}s: {name!r}, which is neither all numbers nor all text.")
            elif fitting in usual:
                why = self._why_not(owner, name, role=fitting, usual=usual[fitting])
                if why:
                    left.append(f"Of {owner}s: {name!r}, {why}")
                else:
                    chosen[fitting] = (*(chosen[fitting] or ()), name)
        return chosen, left

    def _usual(self, role: str, attributes: Mapping[str, Attribute], taken: set[str]) -> str | None:
        """The usual name that is there; types of edges must be such."""
        for name in self.usual[role]:
            if name in attributes and name not in taken:
                complete = attributes[name].count == self.totals["edge"]
                if role != "edge_labels" or (complete and attributes[name].whole):
                    return name
        return None

    def _why_not(self, owner: str, name: str, *, role: str, usual: str | None) -> str:
        """Why an attribute is not used, and what would use it; nothing if it is used."""
        attribute, total = self.found[owner][name], self.totals[owner]
        if attribute.count < total:
            return f"which {attribute.count} of {total} have; {role}={name!r} takes it where all have it."
        if len(attribute.widths) > 1:
            return "which has not equally many numbers everywhere."
        if usual is not None:
            return f"since {usual!r} is there; {role}={[usual, name]!r} takes both."
        if len(attribute.texts) > MOST_TEXTS:
            return f"which has more than {MOST_TEXTS} different texts; {role}={name!r} takes it."
        return ""
