"""The compact set on which a network with approximated products is close to the exact one."""

from dataclasses import asdict, dataclass
from math import inf

from bellnet.errors import OptionError, as_written


@dataclass(frozen=True)
class CompactSet:
    """All graphs within these limits.

    Attributes:
        size: The most nodes that a graph has.
        neighbours: The most nodes that one node hears of; self-loops count.
        adjacency: The largest entry of the adjacency channels, in absolute value.
        node: The largest entry of the node features, in absolute value.
        edge: The largest entry of the edge features, in absolute value.
    """

    size: int
    neighbours: int
    adjacency: float = 1.0
    node: float = 1.0
    edge: float = 1.0

    def __post_init__(self) -> None:
        for name, limit in asdict(self).items():
            if isinstance(limit, bool) or not isinstance(limit, int | float) or not 0 <= limit < inf:
                raise OptionError(f"CompactSet: {name} must be a number from 0 up, not {as_written(limit)}.")

    def exceeded_by(self, other: "CompactSet") -> list[str]:
        """The names of the limits that the other set goes beyond."""
        return [name for name, limit in asdict(self).items() if getattr(other, name) > limit]
