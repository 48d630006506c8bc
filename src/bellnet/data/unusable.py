"""Graphs that cannot be used, found before anything is done with the others."""

from collections.abc import Iterable

from bellnet.data.convert import convert, members
from bellnet.data.encode import Encoding
from bellnet.data.kinds import Given, Names
from bellnet.errors import DataError, OptionError


def problems(
    graphs: Iterable[object],
    *,
    encoding: Encoding | None = None,
    node_attrs: Given = None,
    edge_attrs: Given = None,
    node_labels: Given = None,
    edge_labels: Given = None,
) -> dict[int, str]:
    """The places of all graphs that cannot be used, each with the reason; nothing if all can.

    Such are graphs that cannot be read, those without nodes, and with an encoding those that have not what it reads.

    Args:
        graphs: As in `as_graphs`.
        encoding: The encoding that the graphs are for, such as `encoding_` of an estimator.
        node_attrs: The name or names of attributes that must be there, see `as_graph`; not with `encoding`.
        edge_attrs: Likewise of edge features.
        node_labels: Likewise of node labels.
        edge_labels: Likewise of edge labels.

    >>> problems([torch.ones(2, 2), torch.ones(2, 3)])
    {1: 'as_graph(array): expected shape (n, n) or (n, n, channels), but it is (2, 3).'}
    """
    names = Names.of(node_attrs=node_attrs, edge_attrs=edge_attrs, node_labels=node_labels, edge_labels=edge_labels)
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
        elif encoding is not None and (differs := encoding.mismatch(known)):
            found[place] = f"it has {differs[1]}."
    return found
