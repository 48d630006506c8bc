"""A graph with those of its columns that an encoding uses."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from bellnet.data.columns import ROLES, Columns
from bellnet.data.graph import Graph
from bellnet.errors import DataError

FIELDS = {
    "node_attrs": "node_features",
    "edge_attrs": "edge_features",
    "node_labels": "node_labels",
    "edge_labels": "edge_labels",
}
"""Where a `Graph` keeps the columns of each role."""


def select(graph: Graph, wanted: Columns, used: Mapping[str, bool], *, number: int) -> Graph:
    """The graph with the columns of these names, in their order; columns without names stay as they are.

    Args:
        graph: The graph.
        wanted: The names for each role, or None.
        used: For each role without names whether its columns are used at all. If not, columns whose attributes nobody
            has asked for are taken away: what was fitted to graphs without them has no place for them.
        number: The place of the graph in its list, for messages.
    """
    changes: dict[str, Any] = {}
    columns: dict[str, Any] = {}
    for role in ROLES:
        have, want = getattr(graph.columns, role), getattr(wanted, role)
        if have is None or have == want or (want is None and used[role]):
            continue
        want = want or ()
        for name in want:
            if name not in have:
                raise DataError(
                    f"graphs[{number}] has no {role[:4]} attribute {name!r}, which the fit used.\n"
                    "Give graphs with the attributes that were fitted to."
                )
        values = getattr(graph, FIELDS[role])
        places = [place for name in dict.fromkeys(want) for place, one in enumerate(have) if one == name]
        if values is not None and values.ndim == 1:
            values = values.unsqueeze(-1)
        changes[FIELDS[role]] = values[:, places] if places else None
        columns[role] = tuple(have[place] for place in places)
    if not changes:
        return graph
    return replace(graph, **changes, columns=replace(graph.columns, **columns))
