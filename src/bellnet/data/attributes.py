"""Attributes of nodes and edges: the names by which they are read, and the choice where the caller names none.

Numbers become features and texts labels, where every node (or edge) of every graph has one. If there is an attribute
with the default name, it is the only one. Each attribute that is not used is reported with the argument that uses it.
"""

import hashlib
import math
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypedDict

import torch
from torch import Tensor

from bellnet.data.graph import FIELDS, ROLES, Columns
from bellnet.errors import DataError

Given = str | Sequence[str] | None
"""An argument that names attributes: one name, several, none (an empty list), or the default."""

DAMAGE = (AttributeError, LookupError, RuntimeError, TypeError, ValueError)
"""What other libraries raise for inconsistent graphs."""

MOST_TEXTS = 128
"""An attribute with more different texts is taken for names, not for labels; there are 118 chemical elements."""
NUMBERS, TEXT, OTHER = "numbers", "text", "other"


class GivenNames(TypedDict, total=False):
    """The arguments that name attributes, see `as_graph`."""

    node_attrs: Given
    edge_attrs: Given
    node_labels: Given
    edge_labels: Given


@dataclass(frozen=True)
class Names:
    """The names of the attributes of each role; None for the defaults of the library of a graph."""

    node_attrs: tuple[str, ...] | None = None
    edge_attrs: tuple[str, ...] | None = None
    node_labels: tuple[str, ...] | None = None
    edge_labels: tuple[str, ...] | None = None

    @classmethod
    def of(cls, **given: Given | bool) -> "Names":
        """Names from arguments; a single name stands for a list of one, True and False for the default."""
        texts = {role: (names,) if isinstance(names, str) else names for role, names in given.items()}
        return cls(**{role: tuple(names) for role, names in texts.items() if not isinstance(names, bool | None)})

    @property
    def given(self) -> list[str]:
        """The roles that have names."""
        return [role for role in ROLES if getattr(self, role) is not None]


class Source(ABC):
    """The attributes of all nodes, or of all edges, of a graph: `owner` is "node" or "edge", `call` for messages."""

    def __init__(self, owner: str, call: str) -> None:
        self.owner, self.call = owner, call

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def has(self, name: str) -> bool:
        """Whether there is an attribute of this name."""

    @abstractmethod
    def numbers(self, name: str) -> Tensor:
        """An attribute as a matrix with a row for each node or edge."""

    @abstractmethod
    def label_column(self, name: str) -> tuple[Tensor, dict[int, str]]:
        """An attribute as labels, and the texts of text labels."""

    def features(self, names: tuple[str, ...]) -> tuple[Tensor | None, tuple[str, ...]]:
        """All features in one matrix, and for each of its columns the attribute; None without names."""
        columns = self._of_equal_length(names, [self.numbers(name) for name in names])
        parts = tuple(name for name, column in zip(names, columns, strict=True) for _ in range(column.shape[-1]))
        return torch.cat(columns, 1) if columns else None, parts

    def labels(self, names: tuple[str, ...]) -> tuple[Tensor | None, dict[int, str]]:
        """Labels, a column for each of several names, and the texts of text labels; None without names."""
        pairs = [self.label_column(name) for name in names]
        columns = self._of_equal_length(names, [column for column, _ in pairs])
        texts = {label: text for _, of_column in pairs for label, text in of_column.items()}
        if len(columns) == 1:
            return columns[0], texts
        return (torch.stack(columns, 1) if columns else None), texts

    def _of_equal_length(self, names: tuple[str, ...], columns: list[Tensor]) -> list[Tensor]:
        if len({column.shape[:1] for column in columns}) > 1:
            lengths = " and ".join(str(len(column)) for column in columns)
            raise DataError(
                f"{self.call}: {' and '.join(map(repr, names))} must have one value for each {self.owner}, but they "
                f"have {lengths} values."
            )
        return columns


def read_fields(nodes: Source, edges: Source, names: Names, defaults: Mapping[str, tuple[str, ...]]) -> dict[str, Any]:
    """The features, labels and columns of a graph, as arguments of `Graph`.

    Without names, the first default name that exists is read; edge labels are not.
    """
    found: dict[str, Any] = {}
    columns: dict[str, tuple[str, ...] | None] = {}
    texts: dict[int, str] = {}
    for role, name in FIELDS.items():
        source = nodes if role.startswith("node") else edges
        used = given = getattr(names, role)
        if given is None:
            used = () if role == "edge_labels" else next(((one,) for one in defaults[role] if source.has(one)), ())
        if role.endswith("attrs"):
            found[name], columns[role] = source.features(used)
        else:
            found[name], more = source.labels(used)
            columns[role] = used
            texts |= more
        if given is None or not len(source):
            columns[role] = None
    return {**found, "columns": Columns(**columns, texts=tuple(sorted(texts.items())))}


@dataclass
class Attribute:
    """A summary of all values of an attribute."""

    count: int = 0
    kinds: set[str] = field(default_factory=set)
    widths: set[int] = field(default_factory=set)
    texts: set[str] = field(default_factory=set)
    are_integers: bool = True

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
                self.are_integers &= type(value) is int
        elif value is not None:
            try:
                numbers = torch.as_tensor(value, dtype=torch.float64)
            except (TypeError, ValueError, RuntimeError, OverflowError):
                self._count(OTHER, 1)
                return
            if bool(numbers.isfinite().all()):
                self._count(NUMBERS, 1)
                self.widths.add(numbers.numel())
                self.are_integers &= hasattr(value, "__index__") and not isinstance(value, Tensor)

    def add_column(self, values: Tensor) -> None:
        """Adds the values of all nodes or edges of a graph, a row for each."""
        if values.ndim > 2 or values.is_complex():
            self._count(OTHER, len(values))
            return
        rows = values.unsqueeze(-1) if values.ndim == 1 else values
        self._count(NUMBERS, int(rows.isfinite().all(1).sum()))
        self.widths.add(rows.shape[1])
        self.are_integers &= not values.is_floating_point() and values.dtype != torch.bool and rows.shape[1] == 1

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
        chosen = {role: getattr(names, role) for role in ROLES}
        unused: list[str] = []
        for owner in ("node", "edge"):
            roles = [role for role in ROLES if role.startswith(owner) or not self.separate]
            taken = {name for role in roles for name in getattr(names, role) or ()}
            unused += self._choose(owner, chosen, taken)
        return Names(**chosen), unused

    def _choose(self, owner: str, chosen: dict[str, tuple[str, ...] | None], taken: set[str]) -> list[str]:
        """Adds the names for nodes or edges to `chosen`; returns a sentence for each attribute that is not used."""
        features, labels = f"{owner}_attrs", f"{owner}_labels"
        attributes = self.found[owner]
        defaults = {role: self._default(role, attributes, taken) for role in (features, labels) if chosen[role] is None}
        for role, default in defaults.items():
            if default is None and any(name in taken for name in self.defaults[role]):
                chosen[role] = ()  # an attribute named in another role is no default
            elif default is not None and role == "edge_labels":
                chosen[role] = (default,)  # without a name, edge labels are not read
        unused = []
        for name in sorted(attributes.keys() - taken - {*defaults.values()}):
            kinds = attributes[name].kinds
            fitting = {NUMBERS: features, TEXT: labels}.get(*kinds) if len(kinds) == 1 else None
            if fitting is None and defaults:
                unused.append(f"Of {owner}s: {name!r}, which is neither all numbers nor all text.")
            elif fitting in defaults:
                if reason := self._why_not(owner, name, role=fitting, default=defaults[fitting]):
                    unused.append(f"Of {owner}s: {name!r}, {reason}")
                else:
                    chosen[fitting] = (*(chosen[fitting] or ()), name)
        return unused

    def _default(self, role: str, attributes: Mapping[str, Attribute], taken: set[str]) -> str | None:
        """The default name that exists; edge types must be integers."""
        for name in self.defaults[role]:
            if name in attributes and name not in taken:
                is_complete = attributes[name].count == self.totals["edge"]
                if role != "edge_labels" or (is_complete and attributes[name].are_integers):
                    return name
        return None

    def _why_not(self, owner: str, name: str, *, role: str, default: str | None) -> str:
        """The reason why an attribute is not used; empty if it is used."""
        attribute, total = self.found[owner][name], self.totals[owner]
        if attribute.count < total:
            return f"which {attribute.count} of {total} have; {role}={name!r} uses it where all have it."
        if len(attribute.widths) > 1:
            return "whose values have different lengths."
        if default is not None:
            return f"since there is {default!r}; {role}={[default, name]!r} uses both."
        if len(attribute.texts) > MOST_TEXTS:
            return f"which has more than {MOST_TEXTS} different texts; {role}={name!r} uses it."
        return ""


def text_label(text: str) -> int:
    """The integer that stands for a text label: 56 bits of its digest, the same on every machine."""
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=7).digest(), "big")


def part_names(attributes: Iterable[str]) -> tuple[str, ...]:
    """A name for each column: that of its attribute, with an index if the attribute has several columns.

    >>> part_names(["charge", "pos", "pos"])
    ('charge', 'pos[0]', 'pos[1]')
    """
    names = list(attributes)
    return tuple(
        f"{name}[{names[:column].count(name)}]" if names.count(name) > 1 else name for column, name in enumerate(names)
    )
