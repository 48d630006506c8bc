"""What comes in as X, made a list of graphs, and refused with a reason where it cannot be."""

from collections.abc import Sequence
from typing import Any

from bellnet.data import Encoding, Graph
from bellnet.data.convert import read
from bellnet.data.kinds import Names
from bellnet.errors import DataError


def read_graphs(call: str, given: Any, by: Names | Encoding) -> list[Graph]:
    """The graphs, of which there must be at least one; each must have at least one node.

    Args:
        call: How messages name the call.
        given: The graphs.
        by: What says which attributes are used: the names of the caller, or the encoding of a fit.
    """
    try:
        graphs = by.read(given) if isinstance(by, Encoding) else read(call, given, by)
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
    for name, is_used in (("node_labels", encoding.node_labels), ("edge_labels", encoding.edge_labels)):
        unlabelled = [
            number
            for number, graph in enumerate(graphs)
            if getattr(graph, name) is None and (name == "node_labels" or graph.n_edges)
        ]
        if is_used and unlabelled:
            raise DataError(
                f"{call}: graphs[{unlabelled[0]}] has no {name}, but the graphs of the fit had{_and_more(unlabelled)}."
            )


def _as_good_as(graph: Graph, width: int, expected: int) -> bool:
    """Whether edges without features may stand for edges with one, or there are no edges at all."""
    return graph.n_edges == 0 or (width == 0 and expected == 1)


def _and_more(places: list[int]) -> str:
    return f" ({len(places)} graphs are such)" if len(places) > 1 else ""
