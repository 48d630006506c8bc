"""Where the numbers on nodes and edges come from: attributes with names, and texts that labels stand for."""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass

ROLES = ("node_attrs", "edge_attrs", "node_labels", "edge_labels")
"""What an attribute can be, by the argument that names it: features of nodes or edges, labels of nodes or edges."""


@dataclass(frozen=True)
class Columns:
    """The names behind the columns of a `Graph`, or of all that an `Encoding` reads.

    A role is None where its columns have no names of their own: a graph made by hand, or attributes under the usual
    names of their library, which differ from library to library.

    Args:
        node_attrs: For every node feature the attribute that it is a part of.
        edge_attrs: For every edge feature likewise.
        node_labels: For every column of node labels its attribute.
        edge_labels: For every column of edge labels its attribute.
        texts: The labels that stand for texts, in ascending order, each with its text.
    """

    node_attrs: tuple[str, ...] | None = None
    edge_attrs: tuple[str, ...] | None = None
    node_labels: tuple[str, ...] | None = None
    edge_labels: tuple[str, ...] | None = None
    texts: tuple[tuple[int, str], ...] = ()

    @classmethod
    def common(cls, all_columns: Iterable["Columns"]) -> "Columns":
        """The names on which all agree that have any, and the texts of all."""
        known = list(dict.fromkeys(all_columns))
        roles = {}
        for role in ROLES:
            names = {getattr(columns, role) for columns in known} - {None}
            roles[role] = names.pop() if len(names) == 1 else None
        texts = {pair for columns in known for pair in columns.texts}
        return cls(**roles, texts=tuple(sorted(texts)))


NO_COLUMNS = Columns()
"""Of a graph that was made by hand."""


def text_label(text: str) -> int:
    """The whole number that stands for a label that is text: 56 bits of its digest, the same everywhere."""
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=7).digest(), "big")


def part_names(attributes: Iterable[str]) -> tuple[str, ...]:
    """For every column a name of its own: that of its attribute, with the place in it if it has several columns.

    >>> part_names(["charge", "pos", "pos"])
    ('charge', 'pos[0]', 'pos[1]')
    """
    names = list(attributes)
    seen: dict[str, int] = {}
    found = []
    for name in names:
        found.append(f"{name}[{seen.get(name, 0)}]" if names.count(name) > 1 else name)
        seen[name] = seen.get(name, 0) + 1
    return tuple(found)
