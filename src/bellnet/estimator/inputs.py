"""What comes in as X, made a list of graphs, and refused with a reason where it cannot be."""

from collections.abc import Sequence
from typing import Any

from bellnet.data import Encoding, Graph, as_graphs
from bellnet.errors import DataError


def read_graphs(call: str, given: Any) -> list[Graph]:
    """The graphs, of which there must be at least one; each must have at least one node."""
    try:
        graphs = as_graphs(given)
    except DataError as reason:
        raise DataError(f"{call}: {reason}") from reason
    if not graphs:
        raise DataError(f"{call}: there is no graph; the list is empty.")
    empty = [number for number, graph in enumerate(graphs) if graph.n == 0]
    if empty:
        raise DataError(
            f"{call}: graphs[{empty[0]}] has no nodes{_and_more(empty)}.\nLeave out empty graphs, and their labels."
        )
    return graphs


def fit_encoding(call: str, graphs: Sequence[Graph], adjacency: str, *, degrees: bool) -> Encoding:
    """The encoding of everything these graphs have."""
    try:
        return Encoding.fit(graphs, adjacency=adjacency, degrees=degrees)
    except DataError as reason:
        raise DataError(f"{call}: {reason}") from reason


def check_fits(call: str, graphs: Sequence[Graph], encoding: Encoding) -> None:
    """Refuse graphs that have not what the graphs of the fit had."""
    for name, expected in (("node_features", encoding.node_features), ("edge_features", encoding.edge_features)):
        widths = [0 if (values := getattr(graph, name)) is None else values.shape[1] for graph in graphs]
        wrong = [
            number
            for number, (graph, width) in enumerate(zip(graphs, widths, strict=True))
            if width != expected and not (name == "edge_features" and _as_good_as(graph, width, expected))
        ]
        if wrong:
            raise DataError(
                f"{call}: graphs[{wrong[0]}] has {widths[wrong[0]]} {name}, but the graphs of the fit had {expected}"
                f"{_and_more(wrong)}.\nGive graphs with the features that were learned from."
            )
    unlabelled = [number for number, graph in enumerate(graphs) if graph.node_labels is None]
    if encoding.node_labels and unlabelled:
        raise DataError(
            f"{call}: graphs[{unlabelled[0]}] has no node_labels, but the graphs of the fit had{_and_more(unlabelled)}."
        )


def _as_good_as(graph: Graph, width: int, expected: int) -> bool:
    """Whether edges without features may stand for edges with one, or there are no edges at all."""
    return graph.n_edges == 0 or (width == 0 and expected == 1)


def _and_more(places: list[int]) -> str:
    return f" ({len(places)} graphs are such)" if len(places) > 1 else ""
