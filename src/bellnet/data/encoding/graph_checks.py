"""What the graphs of a fit have in common, and whether other graphs have it as well."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from torch import Tensor

from bellnet.data.attributes import Given, Names
from bellnet.data.converters.conversion import convert, members
from bellnet.data.encoding.channels import Labels, label_columns, label_indices
from bellnet.data.graph import Graph
from bellnet.errors import DataError, OptionError

if TYPE_CHECKING:
    from bellnet.data.encoding.encode import Encoding


def common_width(graphs: Sequence[Graph], name: str) -> int:
    """The number of features of all graphs."""
    first: tuple[int, int] | None = None
    for number, graph in enumerate(graphs):
        features = getattr(graph, name)
        if features is None and (graph.n_edges if name == "edge_features" else graph.n) == 0:
            continue
        width = _width(features)
        first = (number, width) if first is None else first
        if width == first[1] or (name == "edge_features" and {width, first[1]} == {0, 1}):
            first = (number, max(width, first[1]))
            continue
        raise DataError(
            f"Encoding.fit(graphs): all graphs must have the same number of {name}, but graphs[{first[0]}] has "
            f"{first[1]} and graphs[{number}] has {width}.\nFill in what is missing, or pass {name}=False."
        )
    return 0 if first is None else first[1]


def all_labels(graphs: Sequence[Graph], name: str) -> Labels:
    """All labels of some graphs: a tuple, or one for each of several columns."""
    first: tuple[int, int] | None = None
    parts: list[set[int]] = []
    for number, graph in enumerate(graphs):
        labels = getattr(graph, name)
        if labels is None or not len(labels):
            continue
        width = _width(labels)
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


def check_usable(encoding: "Encoding", graph: Graph, number: int) -> None:
    """Raises a `DataError` if graph `number` lacks features or labels that the encoding has channels for."""
    for name, rows in (("edge_features", graph.n_edges), ("node_features", graph.n)):
        expected, values = getattr(encoding, name), getattr(graph, name)
        if expected and rows and not _has_width(values, expected, name):
            raise DataError(
                f"Encoding.encode(graphs): graphs[{number}] has {_width(values)} {name}, but the graphs of the fit had "
                f"{expected}.\nGive the same features, or fit with {name}=False."
            )
    for name, rows in (("node_labels", graph.n), ("edge_labels", graph.n_edges)):
        if getattr(encoding, name) and rows:
            _check_labels(encoding, graph, number, name)


def mismatch(encoding: "Encoding", graph: Graph) -> tuple[str, str] | None:
    """The field of a graph that differs from the graphs of the fit, and how it differs; None if none does."""
    for name in ("node_features", "edge_features"):
        expected, values = getattr(encoding, name), getattr(graph, name)
        has_no_edges = name == "edge_features" and not graph.n_edges
        if not has_no_edges and not _has_width(values, expected, name):
            return name, f"{_width(values)} {name}, but the graphs of the fit had {expected}"
    for name in ("node_labels", "edge_labels"):
        known, labels = getattr(encoding, name), getattr(graph, name)
        if not known or (name == "edge_labels" and not graph.n_edges):
            continue
        if labels is None:
            return name, f"no {name}, but the graphs of the fit had"
        if (width := _width(labels)) != (expected := len(label_columns(known))):
            return name, f"{width} columns of {name}, but the graphs of the fit had {expected}"
    return None


def _width(values: Tensor | None) -> int:
    if values is None:
        return 0
    return 1 if values.ndim == 1 else values.shape[1]


def _has_width(features: Tensor | None, expected: int, name: str) -> bool:
    """Whether there are `expected` features; edges without features have one, 1."""
    return _width(features) == expected or (name == "edge_features" and features is None and expected == 1)


def _check_labels(encoding: "Encoding", graph: Graph, number: int, name: str) -> None:
    labels, parts = getattr(graph, name), label_columns(getattr(encoding, name))
    if labels is None:
        raise DataError(
            f"Encoding.encode(graphs): graphs[{number}] has no {name}, but the graphs of the fit had.\n"
            f"Give every graph labels, or fit with {name}=False."
        )
    if (width := _width(labels)) != len(parts):
        raise DataError(
            f"Encoding.encode(graphs): graphs[{number}] has {width} columns of {name}, but the graphs of the fit "
            f"had {len(parts)}.\nGive the same labels, or fit with {name}=False."
        )
    if encoding.unknown != "error":
        return
    for column, (_, known) in enumerate(label_indices(getattr(encoding, name), [graph], name)):
        if not bool(known.all()):
            row = int(known.logical_not().nonzero()[0])
            label = int(labels[row] if labels.ndim == 1 else labels[row, column])
            texts = {**dict(encoding.columns.texts), **dict(graph.columns.texts)}
            is_edge = name == "edge_labels"
            which = f"edge {tuple(graph.edge_index[:, row].tolist())}" if is_edge else f"node {row}"
            others = ", ".join(str(texts.get(one, one)) for one in parts[column])
            raise DataError(
                f"Encoding.encode(graphs): {which} of graphs[{number}] has label {texts.get(label, label)}, which "
                f"no graph of the fit had.\nKnown are {others}. "
                "With unknown='zero' it gets no label."
            )


def problems(
    graphs: Iterable[object],
    *,
    encoding: "Encoding | None" = None,
    node_attrs: Given = None,
    edge_attrs: Given = None,
    node_labels: Given = None,
    edge_labels: Given = None,
) -> dict[int, str]:
    """The indices of all graphs that cannot be used, each with the reason.

    These are graphs that cannot be read, graphs without nodes, and with an encoding those that lack what it reads.

    Args:
        graphs: As in `as_graphs`.
        encoding: The encoding of the graphs, such as `encoding_` of an estimator.
        node_attrs: The name or names of attributes that all nodes need, see `as_graph`; not with `encoding`.
        edge_attrs: The same for edge features.
        node_labels: The same for node labels.
        edge_labels: The same for edge labels.

    >>> import torch
    >>> problems([torch.ones(2, 2), torch.ones(2, 3)])
    {1: 'as_graph(array): expected shape (n, n) or (n, n, channels), but it is (2, 3).'}
    """
    names = Names.of(node_attrs=node_attrs, edge_attrs=edge_attrs, node_labels=node_labels, edge_labels=edge_labels)
    if encoding is not None and names.given:
        raise OptionError(f"problems: encoding says what is read; leave out {', '.join(names.given)}.")
    found = {}
    for index, graph in enumerate(members(graphs)):
        try:
            [known] = [convert(graph, names, strict=True)] if encoding is None else encoding.read([graph])
        except DataError as reason:
            message = str(reason).removeprefix("graphs[0]: ")
            found[index] = "it " + message.removeprefix("graphs[0] ") if message.startswith("graphs[0] ") else message
            continue
        if not known.n:
            found[index] = "it has no nodes."
        elif encoding is not None and (differs := encoding.mismatch(known)):
            found[index] = f"it has {differs[1]}."
    return found
