"""Graphs that cannot be used, found before anything is done with the others."""

from collections.abc import Iterable

from bellnet.data.convert import convert, members
from bellnet.data.encode import Encoding, apart
from bellnet.data.graph import Graph
from bellnet.data.kinds import Given, Names
from bellnet.errors import DataError, OptionError


def problems(
    graphs: Iterable[object],
    *,
    encoding: Encoding | None = None,
    node: Given = None,
    edge: Given = None,
    label: Given = None,
    edge_label: Given = None,
) -> dict[int, str]:
    """The places of all graphs that cannot be used, each with the reason; nothing if all can.

    Such are graphs that cannot be read, those without nodes, and with an encoding those that have not what it reads.

    Args:
        graphs: As in `as_graphs`.
        encoding: The encoding that the graphs are for, such as `encoding_` of an estimator.
        node: The name or names of attributes that must be there, see `as_graph`; not with `encoding`, which knows.
        edge: Likewise of edge features.
        label: Likewise of node labels.
        edge_label: Likewise of edge labels.

    >>> problems([torch.ones(2, 2), torch.ones(2, 3)])
    {1: 'as_graph(array): expected shape (n, n) or (n, n, channels), but it is (2, 3).'}
    """
    names = Names.of(node=node, edge=edge, label=label, edge_label=edge_label)
    if encoding is not None and names.given:
        raise OptionError(f"problems: encoding says what is read; leave out {', '.join(names.given)}.")
    found = {}
    for place, graph in enumerate(members(graphs)):
        try:
            [known] = [convert(graph, names, strict=True)] if encoding is None else encoding.read([graph])
        except DataError as reason:
            words = str(reason).removeprefix("graphs[0]: ")
            found[place] = "it " + words.removeprefix("graphs[0] ") if words.startswith("graphs[0] ") else words
            continue
        if not known.n:
            found[place] = "it has no nodes."
        elif encoding is not None and (differs := mismatch(known, encoding)):
            found[place] = f"it has {differs[1]}."
    return found


def mismatch(graph: Graph, encoding: Encoding) -> tuple[str, str] | None:
    """Where a graph has not what the graphs of a fit had, and how; None if it has."""
    for name in ("node_features", "edge_features"):
        expected, values = getattr(encoding, name), getattr(graph, name)
        width = 0 if values is None else values.shape[1]
        if width != expected and not (name == "edge_features" and _as_good_as(graph, width, expected)):
            return name, f"{width} {name}, but the graphs of the fit had {expected}"
    for name in ("node_labels", "edge_labels"):
        known, labels = getattr(encoding, name), getattr(graph, name)
        if not known or (name == "edge_labels" and not graph.n_edges):
            continue
        if labels is None:
            return name, f"no {name}, but the graphs of the fit had"
        columns, expected = (1 if labels.ndim == 1 else labels.shape[1]), len(apart(known))
        if columns != expected:
            return name, f"{columns} columns of {name}, but the graphs of the fit had {expected}"
    return None


def _as_good_as(graph: Graph, width: int, expected: int) -> bool:
    """Whether edges without features may stand for edges with one, or there are no edges at all."""
    return graph.n_edges == 0 or (width == 0 and expected == 1)
