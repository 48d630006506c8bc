"""Whether a graph is as those were that an encoding was fitted to."""

from typing import TYPE_CHECKING

from torch import Tensor

from bellnet.data.graph import Graph
from bellnet.data.rows import apart, label_places
from bellnet.errors import DataError

if TYPE_CHECKING:
    from bellnet.data.encode import Encoding


def check_usable(encoding: "Encoding", graph: Graph, number: int) -> None:
    """Refuse a graph that lacks what the encoding makes channels of; `number` is its place in the list."""
    for name, rows in (("edge_features", graph.n_edges), ("node_features", graph.n)):
        expected, values = getattr(encoding, name), getattr(graph, name)
        if expected and rows and not _has(values, expected, name):
            raise DataError(
                f"Encoding.encode(graphs): graphs[{number}] has {_width(values)} {name}, but the graphs of the fit had "
                f"{expected}.\nGive the same features, or fit with {name}=False."
            )
    for name, rows in (("node_labels", graph.n), ("edge_labels", graph.n_edges)):
        if getattr(encoding, name) and rows:
            _check_labels(encoding, graph, number, name)


def mismatch(encoding: "Encoding", graph: Graph) -> tuple[str, str] | None:
    """Which field of a graph is not as in the graphs of the fit, and how it differs; None if all are."""
    for name in ("node_features", "edge_features"):
        expected, values = getattr(encoding, name), getattr(graph, name)
        has_no_edges = name == "edge_features" and not graph.n_edges
        if not has_no_edges and not _has(values, expected, name):
            return name, f"{_width(values)} {name}, but the graphs of the fit had {expected}"
    for name in ("node_labels", "edge_labels"):
        known, labels = getattr(encoding, name), getattr(graph, name)
        if not known or (name == "edge_labels" and not graph.n_edges):
            continue
        if labels is None:
            return name, f"no {name}, but the graphs of the fit had"
        if (width := _width(labels)) != (expected := len(apart(known))):
            return name, f"{width} columns of {name}, but the graphs of the fit had {expected}"
    return None


def _width(values: Tensor | None) -> int:
    if values is None:
        return 0
    return 1 if values.ndim == 1 else values.shape[1]


def _has(features: Tensor | None, expected: int, name: str) -> bool:
    """Whether there are as many features as expected; edges without any may stand for edges with one."""
    return _width(features) == expected or (name == "edge_features" and features is None and expected == 1)


def _check_labels(encoding: "Encoding", graph: Graph, number: int, name: str) -> None:
    labels, parts = getattr(graph, name), apart(getattr(encoding, name))
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
    for column, (_, known) in enumerate(label_places(getattr(encoding, name), [graph], name)):
        if not bool(known.all()):
            place = int(known.logical_not().nonzero()[0])
            label = int(labels[place] if labels.ndim == 1 else labels[place, column])
            texts = {**dict(encoding.columns.texts), **dict(graph.columns.texts)}
            is_edge = name == "edge_labels"
            which = f"edge {tuple(graph.edge_index[:, place].tolist())}" if is_edge else f"node {place}"
            others = ", ".join(str(texts.get(one, one)) for one in parts[column])
            raise DataError(
                f"Encoding.encode(graphs): {which} of graphs[{number}] has label {texts.get(label, label)}, which "
                f"no graph of the fit had.\nKnown are {others}. "
                "With unknown='zero' it gets no label."
            )
