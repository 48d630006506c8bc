"""Names of attributes under which graphs of other libraries keep features and labels."""

from collections.abc import Sequence
from dataclasses import dataclass

from bellnet.errors import DataError


@dataclass(frozen=True)
class Names:
    """The names that a caller gave: of node features, edge features and the node label; None for the usual ones."""

    node: tuple[str, ...] | None
    edge: tuple[str, ...] | None
    label: str | None

    @classmethod
    def of(cls, node: str | Sequence[str] | None, edge: str | Sequence[str] | None, label: str | None) -> "Names":
        """Names from arguments, where one name may stand for a list of one."""
        return cls(
            None if node is None else (node,) if isinstance(node, str) else tuple(node),
            None if edge is None else (edge,) if isinstance(edge, str) else tuple(edge),
            label,
        )

    def refuse(self, kind: str) -> None:
        """Refuse names for graphs that have none."""
        given = [name for name in ("node", "edge", "label") if getattr(self, name) is not None]
        if given:
            raise DataError(
                f"as_graph(graph, {given[0]}=...): {kind} has no attributes with names.\nLeave out {', '.join(given)}."
            )
