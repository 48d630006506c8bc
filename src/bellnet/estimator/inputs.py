"""What comes in as X, made a list of graphs, and refused with a reason where it cannot be."""

from collections.abc import Mapping, Sequence
from typing import Any

from bellnet.data import Encoding, Graph, as_graphs
from bellnet.errors import DataError


def read_graphs(call: str, given: Any, by: Mapping[str, Any] | Encoding) -> list[Graph]:
    """The graphs, of which there must be at least one; each must have at least one node.

    Args:
        call: How messages name the call.
        given: The graphs.
        by: What says which attributes are used: what the caller has named, or the encoding of a fit.
    """
    try:
        graphs = by.read(given) if isinstance(by, Encoding) else as_graphs(given, **by, call=call)
    except DataError as reason:
        raise DataError(f"{call}: {reason}") from reason
    if not graphs:
        raise DataError(f"{call}: there is no graph; the list is empty.")
    empty = [number for number, graph in enumerate(graphs) if graph.n == 0]
    if empty:
        raise DataError(
            f"{call}: graphs[{empty[0]}] has no nodes{_and_more(empty)}.\nLeave out empty graphs, and their labels: "
            "bellnet.data.problems(graphs) has the places of all."
        )
    return graphs


def fit_encoding(call: str, graphs: Sequence[Graph], adjacency: str, *, degrees: bool, sizes: bool) -> Encoding:
    """The encoding of everything these graphs have."""
    try:
        return Encoding.fit(graphs, adjacency=adjacency, degrees=degrees, sizes=sizes)
    except DataError as reason:
        raise DataError(f"{call}: {reason}") from reason


def check_fits(call: str, graphs: Sequence[Graph], encoding: Encoding) -> None:
    """Refuse graphs that have not what the graphs of the fit had."""
    wrong = {number: found for number, graph in enumerate(graphs) if (found := encoding.mismatch(graph))}
    for name in ("node_features", "edge_features", "node_labels", "edge_labels"):
        places = [number for number, found in wrong.items() if found[0] == name]
        if places:
            raise DataError(
                f"{call}: graphs[{places[0]}] has {wrong[places[0]][1]}{_and_more(places)}.\n"
                f"Give graphs with the {name.partition('_')[2]} that were learned from."
            )


def _and_more(places: list[int]) -> str:
    return f" ({len(places)} graphs are such)" if len(places) > 1 else ""
