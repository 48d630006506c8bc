"""What comes in as X, made a list of graphs, and refused with a reason where it cannot be."""

import warnings
from collections.abc import Mapping, Sequence
from math import log1p
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


def fit_encoding(
    call: str, graphs: Sequence[Graph], adjacency: str, *, degrees: bool, degree_bins: int, size_feature: bool
) -> Encoding:
    """The encoding of everything these graphs have."""
    try:
        return Encoding.fit(
            graphs, adjacency=adjacency, degrees=degrees, degree_bins=degree_bins, size_feature=size_feature
        )
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


def warn_of_sizes(call: str, graphs: Sequence[Graph], encoding: Encoding, learned: tuple[int, int]) -> None:
    """Say it where graphs are far larger or smaller than all that were learned from, and the network sees how large.

    Args:
        call: How the warning names the call.
        graphs: What is asked about.
        encoding: That of the fit, which may have a channel for the number of nodes.
        learned: The fewest and the most nodes of a graph in the training data.
    """
    if encoding.size_feature is None:
        return
    fewest, most = learned
    apart = encoding.size_feature[1] if fewest < most else 0.0  # where all had one size, every other one is new
    least, greatest = log1p(fewest) - apart, log1p(most) + apart
    far = [graph.n for graph in graphs if not least - 1e-9 <= log1p(graph.n) <= greatest + 1e-9]
    if far:
        warnings.warn(
            f"{call}: the graphs that were learned from have {_from_to(fewest, most)} nodes, but {len(far)} of these "
            f"{len(graphs)} have {_from_to(min(far), max(far))}.\n"
            "The network sees the number of nodes, and what it says of numbers that it has not seen may be worth "
            "little. Where labels do not depend on it, fit with size_feature=False.",
            stacklevel=5,
        )


def _from_to(fewest: int, most: int) -> str:
    return f"{fewest} to {most}" if fewest < most else str(most)


def _and_more(places: list[int]) -> str:
    return f" ({len(places)} graphs are such)" if len(places) > 1 else ""
