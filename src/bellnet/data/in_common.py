"""What the graphs of a fit have in common: how many features, and which labels."""

from collections.abc import Sequence

from bellnet.data.graph import Graph
from bellnet.data.rows import Labels
from bellnet.errors import DataError


def common_width(graphs: Sequence[Graph], name: str) -> int:
    """The number of features that all graphs have."""
    first: tuple[int, int] | None = None
    for number, graph in enumerate(graphs):
        features = getattr(graph, name)
        if features is None and (graph.n_edges if name == "edge_features" else graph.n) == 0:
            continue  # nothing has no features
        width = 0 if features is None else features.shape[1]
        first = (number, width) if first is None else first
        if width == first[1] or (name == "edge_features" and {width, first[1]} == {0, 1}):
            first = (number, max(width, first[1]))
            continue
        raise DataError(
            f"Encoding.fit(graphs): all graphs must have the same number of {name}, but graphs[{first[0]}] has "
            f"{first[1]} and graphs[{number}] has {width}.\nFill in what is missing, or pass {name}=False."
        )
    return 0 if first is None else first[1]


def seen_labels(graphs: Sequence[Graph], name: str) -> Labels:
    """All labels that occur: a tuple, or one for each of several columns."""
    first: tuple[int, int] | None = None
    parts: list[set[int]] = []
    for number, graph in enumerate(graphs):
        labels = getattr(graph, name)
        if labels is None or not len(labels):
            continue
        width = 1 if labels.ndim == 1 else labels.shape[1]
        if first is None:
            first, parts = (number, width), [set() for _ in range(width)]
        if width != first[1]:
            raise DataError(
                f"Encoding.fit(graphs): all graphs must have the same number of columns of {name}, but "
                f"graphs[{first[0]}] has {first[1]} and graphs[{number}] has {width}.\n"
                f"Name the same attributes of all, or pass {name}=False."
            )
        for part, column in zip(parts, labels.reshape(len(labels), width).T, strict=True):
            part.update(column.unique().tolist())
    found = tuple(tuple(sorted(part)) for part in parts)
    return found[0] if len(found) == 1 else found
