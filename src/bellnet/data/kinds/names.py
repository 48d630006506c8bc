"""Names of attributes under which graphs of other libraries keep features and labels."""

from collections.abc import Sequence
from dataclasses import dataclass

from bellnet.data.columns import ROLES
from bellnet.errors import DataError

Given = str | Sequence[str] | None
"""What a caller may give: a name, several, none at all (an empty list), or nothing."""


@dataclass(frozen=True)
class Names:
    """The names of the attributes of each role; None where nothing was said, or for the usual ones of a library."""

    node_attrs: tuple[str, ...] | None = None
    edge_attrs: tuple[str, ...] | None = None
    node_labels: tuple[str, ...] | None = None
    edge_labels: tuple[str, ...] | None = None

    @classmethod
    def of(cls, **given: Given) -> "Names":
        """Names from arguments, where one name may stand for a list of one."""
        return cls(
            **{
                role: None if names is None else (names,) if isinstance(names, str) else tuple(names)
                for role, names in given.items()
            }
        )

    @property
    def given(self) -> list[str]:
        """The roles that have names."""
        return [role for role in ROLES if getattr(self, role) is not None]

    def refuse(self, kind: str) -> None:
        """Refuse names for graphs that have none."""
        if self.given:
            raise DataError(
                f"as_graph(graph, {self.given[0]}=...): {kind} has no attributes with names.\n"
                f"Leave out {', '.join(self.given)}."
            )
