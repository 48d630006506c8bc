"""What the channels of a state hold: adjacency matrices, edge features, and node features on the diagonal."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Channels:
    """A state is one tensor over pairs of nodes. Its channels come in this order.

    Attributes:
        adjacency: How many matrices say which node hears which, and how loud.
        edge: How many channels of edge features.
        node: How many channels of node features; they live on the diagonal.
    """

    adjacency: int
    edge: int
    node: int

    @property
    def fixed(self) -> int:
        """How many channels message passing leaves alone: the graph itself."""
        return self.adjacency + self.edge

    @property
    def total(self) -> int:
        """How many channels there are."""
        return self.fixed + self.node

    def __str__(self) -> str:
        return f"{self.adjacency} adjacency, {self.edge} edge, {self.node} node"
