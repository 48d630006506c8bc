"""Names of the attributes that features and labels are read from, and text labels as integers."""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from bellnet.errors import DataError

FIELDS = {
    "node_attrs": "node_features",
    "edge_attrs": "edge_features",
    "node_labels": "node_labels",
    "edge_labels": "edge_labels",
}
"""For each role of an attribute (the argument that names it) the field of `Graph` that holds it."""
ROLES = tuple(FIELDS)

Given = str | Sequence[str] | None
"""An argument that names attributes: one name, several, none (an empty list), or the default."""


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
        return cls(
            **{
                role: None
                if names is None or isinstance(names, bool)
                else (names,)
                if isinstance(names, str)
                else tuple(names)
                for role, names in given.items()
            }
        )

    @property
    def given(self) -> list[str]:
        """The roles that have names."""
        return [role for role in ROLES if getattr(self, role) is not None]

    def refuse(self, kind: str) -> None:
        """Raises a `DataError` if there are names, for kinds of graphs that have no named attributes."""
        if self.given:
            raise DataError(
                f"as_graph(graph, {self.given[0]}=...): {kind} has no attributes with names.\n"
                f"Leave out {', '.join(self.given)}."
            )


@dataclass(frozen=True)
class Columns:
    """The names behind the columns of a `Graph`, or of all columns that an `Encoding` reads.

    A role is None where its columns have no names: in a graph made by hand, or where attributes have the default names
    of their library, which differ between libraries.

    Args:
        node_attrs: For each node feature the attribute that it is a part of.
        edge_attrs: The same for edge features.
        node_labels: For each column of node labels its attribute.
        edge_labels: The same for edge labels.
        texts: The labels that stand for texts, in ascending order, each with its text.
    """

    node_attrs: tuple[str, ...] | None = None
    edge_attrs: tuple[str, ...] | None = None
    node_labels: tuple[str, ...] | None = None
    edge_labels: tuple[str, ...] | None = None
    texts: tuple[tuple[int, str], ...] = ()

    @classmethod
    def common(cls, all_columns: Iterable["Columns"]) -> "Columns":
        """The names on which all that have names agree, and the texts of all."""
        known = list(dict.fromkeys(all_columns))
        roles = {}
        for role in ROLES:
            names = {getattr(columns, role) for columns in known} - {None}
            roles[role] = names.pop() if len(names) == 1 else None
        texts = {pair for columns in known for pair in columns.texts}
        return cls(**roles, texts=tuple(sorted(texts)))


NO_COLUMNS = Columns()


def text_label(text: str) -> int:
    """The integer that stands for a text label: 56 bits of its digest, the same on every machine."""
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=7).digest(), "big")


def part_names(attributes: Iterable[str]) -> tuple[str, ...]:
    """A name for each column: that of its attribute, with an index if the attribute has several columns.

    >>> part_names(["charge", "pos", "pos"])
    ('charge', 'pos[0]', 'pos[1]')
    """
    names = list(attributes)
    found = []
    for column, name in enumerate(names):
        found.append(f"{name}[{names[:column].count(name)}]" if names.count(name) > 1 else name)
    return tuple(found)
