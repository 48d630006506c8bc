"""Attributes in rows, a mapping for each node or edge, as features and labels of a graph."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

import torch
from torch import Tensor

from bellnet.data.attributes import Columns, Names, text_label
from bellnet.data.graph import Graph
from bellnet.errors import DataError, did_you_mean

FEATURES, WEIGHT, LABEL = "features", "weight", "label"
DEFAULTS = {
    "node_attrs": (FEATURES,),
    "edge_attrs": (FEATURES, WEIGHT),
    "node_labels": (LABEL,),
    "edge_labels": (LABEL,),
}
"""The default names of the attributes of each role."""


@dataclass(frozen=True)
class Rows:
    """The attributes of all nodes, or of all edges, of a graph.

    Args:
        values: For each a mapping from names to values.
        wheres: Each in messages.
        owner: "node" or "edge".
        call: The call in messages.
    """

    values: Sequence[Mapping[str, object]]
    wheres: Sequence[str]
    owner: str
    call: str = "as_graph(graph)"

    def has(self, name: str) -> bool:
        """Whether any of them has this attribute."""
        return any(name in row for row in self.values)

    def features(self, names: tuple[str, ...]) -> tuple[Tensor | None, tuple[str, ...]]:
        """Numbers in columns, and for each column its attribute; None without names or rows."""
        if not names or not self.values:
            return None, ()
        columns: tuple[str, ...] = names
        rows: list[list[float]] = []
        for row, where in zip(self.values, self.wheres, strict=True):
            parts = [self._numbers(row, name, where) for name in names]
            numbers = [number for part in parts for number in part]
            if rows and len(numbers) != len(rows[0]):
                raise DataError(
                    f"{self.call}: all {self.owner}s must have equally many features, but {self.wheres[0]} has "
                    f"{len(rows[0])} and {where} has {len(numbers)}."
                )
            if not rows:
                columns = tuple(name for name, part in zip(names, parts, strict=True) for _ in part)
            rows.append(numbers)
        return torch.tensor(rows, dtype=torch.float64), columns

    def labels(self, names: tuple[str, ...]) -> tuple[Tensor | None, dict[int, str]]:
        """Labels, a column for each of several names, and the texts of text labels; None without names or rows."""
        if not names or not self.values:
            return None, {}
        texts: dict[int, str] = {}
        found = []
        for row, where in zip(self.values, self.wheres, strict=True):
            for name in names:
                if row.get(name) is None:
                    raise DataError(
                        f"{self.call}: {where} has no attribute {name!r}.\n"
                        f"Give every {self.owner} a label, or name another attribute: {self._with(self._labels)}."
                    )
                value = row[name]
                number = self._label(value, name, where)
                if isinstance(value, str):
                    texts[number] = value
                found.append(number)
        shape = (len(self.values), len(names)) if len(names) > 1 else (len(self.values),)
        return torch.tensor(found, dtype=torch.int64).reshape(shape), texts

    def _numbers(self, row: Mapping[str, object], name: str, where: str) -> list[float]:
        if row.get(name) is None:
            there, meant = ", ".join(map(repr, row)) or "none", did_you_mean(name, map(str, row))
            raise DataError(
                f"{self.call}: {where} has no attribute {name!r} (it has {there}).{' ' * bool(meant)}{meant}\n"
                f"Give every {self.owner} one, or name others: {self._with(self._attrs)}."
            )
        value = row[name]
        try:
            if isinstance(value, int | float):
                return [float(value)]
            with suppress(TypeError, ValueError, RuntimeError):
                return torch.as_tensor(value, dtype=torch.float64).flatten().tolist()
        except OverflowError as reason:
            # Without the number, which may have more digits than Python converts to text.
            raise DataError(
                f"{self.call}: attribute {name!r} of {where} is beyond all numbers of 64 bits with floating point.\n"
                "Scale the attribute, or leave it out."
            ) from reason
        advice = f"\nTexts can be labels: {self._with(self._labels, repr(name))}." if isinstance(value, str) else ""
        raise DataError(
            f"{self.call}: attribute {name!r} of {where} must be a number or a list of numbers, not {value!r}.{advice}"
        )

    def _label(self, value: object, name: str, where: str) -> int:
        if isinstance(value, str):
            return text_label(value)
        if isinstance(value, bool) or not hasattr(value, "__index__"):
            raise DataError(
                f"{self.call}: the label {name!r} of {where} must be a whole number or text, not {value!r}.\n"
                f"Numbers with fractions can be features: {self._with(self._attrs)}."
            )
        number = int(value.__index__())
        if not -(2**63) <= number < 2**63:
            raise DataError(
                f"{self.call}: the label {name!r} of {where} must fit into 64 bits, came {number}.\n"
                "Number the labels anew, or give text."
            )
        return number

    @property
    def _attrs(self) -> str:
        return f"{self.owner}_attrs"

    @property
    def _labels(self) -> str:
        return f"{self.owner}_labels"

    def _with(self, argument: str, value: str = "...") -> str:
        """The call with another argument."""
        return f"{self.call[:-1]}, {argument}={value})"


def graph_of_rows(edge_index: Tensor, nodes: Rows, edges: Rows, *, names: Names, directed: bool) -> Graph:
    """The graph with these edges and attributes.

    Args:
        edge_index: The two ends of each edge.
        nodes: The attributes of the nodes.
        edges: The attributes of the edges; of undirected ones in both directions.
        names: The attributes that are read.
        directed: Whether edges have a direction.
    """
    defaults = {
        role: next(((name,) for name in DEFAULTS[role] if rows.has(name)), ())
        for role, rows in (("node_attrs", nodes), ("edge_attrs", edges), ("node_labels", nodes))
    }
    node_features, node = nodes.features(defaults["node_attrs"] if names.node_attrs is None else names.node_attrs)
    edge_features, edge = edges.features(defaults["edge_attrs"] if names.edge_attrs is None else names.edge_attrs)
    node_labels, texts = nodes.labels(defaults["node_labels"] if names.node_labels is None else names.node_labels)
    edge_labels, edge_texts = edges.labels(names.edge_labels or ())
    return Graph(
        len(nodes.values),
        edge_index.contiguous(),
        edge_features=edge_features,
        node_features=node_features,
        node_labels=node_labels,
        directed=directed,
        edge_labels=edge_labels,
        columns=Columns(
            None if names.node_attrs is None or not nodes.values else node,
            None if names.edge_attrs is None or not edges.values else edge,
            names.node_labels if nodes.values else None,
            names.edge_labels if edges.values else None,
            tuple(sorted({**texts, **edge_texts}.items())),
        ),
    )
