"""Two graphs that are not isomorphic, under a name: can a network tell them apart?"""

from dataclasses import dataclass

from bellnet.data.graph import Graph


@dataclass(frozen=True)
class Pair:
    """Two graphs and what they are called together."""

    name: str
    first: Graph
    second: Graph
