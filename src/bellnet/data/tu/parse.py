"""The files of a data set of the TU layout as arrays, checked.

Nodes are numbered within their graph and edges are sorted, so that the arrays are small and do not depend on the order
of the lines.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from bellnet.data.text_numbers import read_blocks, read_columns
from bellnet.data.tu.tu_files import Files
from bellnet.errors import DataError

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]

AGAIN = "\nThe files do not fit together; get the data set again."
MOST_CELLS = 2**28


@dataclass(frozen=True)
class Arrays:
    """All graphs of a data set, concatenated; None for what the data set lacks.

    Attributes:
        sizes: (graphs,) the number of nodes of each graph.
        edge_counts: (graphs,) the number of edges of each graph.
        edges: (2, edges) from and to, numbered from 0 within each graph.
        directed: Whether an edge lacks its opposite or has other features.
        labels: (graphs,) the class of each graph, as in the file.
        targets: (graphs, targets).
        node_labels: (nodes,).
        node_features: (nodes, features).
        edge_features: (edges, features).
    """

    sizes: "Array"
    edge_counts: "Array"
    edges: "Array"
    directed: bool
    labels: "Array | None" = None
    targets: "Array | None" = None
    node_labels: "Array | None" = None
    node_features: "Array | None" = None
    edge_features: "Array | None" = None


def parse(files: Files) -> Arrays:
    """Reads and checks all files of a data set."""
    sizes = _sizes(files)
    n_graphs, n_nodes = len(sizes), int(sizes.sum())
    labels = _rows(files, "graph_labels", n_graphs, "graphs", width=1)
    targets = _rows(files, "graph_attributes", n_graphs, "graphs", real=True)
    if labels is None and targets is None:
        raise DataError(
            f"{files.where('graph_labels')} is missing, and so is {files.name}_graph_attributes.txt.\n"
            "A data set needs classes or numbers to predict; get it again."
        )
    node_labels = _rows(files, "node_labels", n_nodes, "nodes")
    one_column = node_labels is not None and node_labels.shape[1] == 1
    node_features = _concatenated(
        _rows(files, "node_attributes", n_nodes, "nodes", real=True),
        None if one_column else _one_hot(files, "node_labels", node_labels),
    )
    ends, order = _ends(files, n_nodes)
    n_lines = len(ends) if order is None else len(order[0])
    edge_features = _concatenated(
        _rows(files, "edge_attributes", n_lines, "edges", real=True),
        _one_hot(files, "edge_labels", _rows(files, "edge_labels", n_lines, "edges")),
    )
    if order is not None:
        edge_features = None if edge_features is None else edge_features[order[1]]
    directed, edges, edge_counts = _by_graph(files, ends, sizes, edge_features)
    return Arrays(
        sizes=sizes,
        edge_counts=edge_counts,
        edges=edges,
        directed=directed,
        labels=None if labels is None else labels[:, 0],
        targets=targets,
        node_labels=node_labels[:, 0] if node_labels is not None and one_column else None,
        node_features=node_features,
        edge_features=edge_features,
    )


def _rows(
    files: Files, ending: str, expected: int, owners: str, *, width: int | None = None, real: bool = False
) -> "Array | None":
    """The numbers of a file, one row for each of the `expected` graphs, nodes or edges; None if there is no file."""
    if not files.has(ending):
        return None
    rows = files.read(ending, partial(read_columns, width=width, real=real, most=expected))
    if len(rows) != expected:
        got = "more" if len(rows) > expected else str(len(rows))
        raise DataError(
            f"{files.where(ending)}: expected {expected} lines, one for each of the {owners}, got {got}.{AGAIN}"
        )
    return rows


def _one_hot(files: Files, ending: str, columns: "Array | None") -> "Array | None":
    """For each column one boolean feature for each of its values."""
    import numpy as np

    if columns is None:
        return None
    values = [np.unique(column) for column in columns.T]
    n_features = sum(map(len, values))
    if len(columns) * n_features > MOST_CELLS:
        raise DataError(
            f"{files.where(ending)}: {len(columns)} lines with {n_features} different labels are too many, since every "
            f"label becomes a feature of every line.\nIf they are quantities, write them into "
            f"{files.name}_{ending.replace('labels', 'attributes')}.txt."
        )
    return np.concatenate([column[:, None] == known for column, known in zip(columns.T, values, strict=True)], axis=1)


def _concatenated(*parts: "Array | None") -> "Array | None":
    import numpy as np

    present = [part for part in parts if part is not None]
    return np.concatenate(present, axis=1) if present else None


def _sizes(files: Files) -> "Array":
    """The number of nodes of each graph."""
    import numpy as np

    def reader(pieces: Iterator[bytes], where: str) -> "list[tuple[int, Array]]":
        """For each block its first graph, and the number of nodes of this and the following graphs."""
        parts = []
        last = 0
        for line, values in read_blocks(pieces, where, width=1):
            graphs = values[:, 0]
            steps = np.diff(graphs, prepend=last)
            wrong = (steps < 0) | (steps > 1)
            wrong[0] |= line == 1 and steps[0] != 1
            if wrong.any():
                row = int(wrong.argmax())
                before = int(graphs[row - 1]) if row else last
                got = str(graphs[row]) if line + row == 1 else f"{graphs[row]} after {before}"
                raise DataError(
                    f"{where}, line {line + row}: graphs must be numbered 1, 2, 3 and so on, in this order and none "
                    f"without nodes; got {got}.{AGAIN}"
                )
            parts.append((int(graphs[0]), np.bincount(graphs - graphs[0])))
            last = int(graphs[-1])
        return parts

    parts = files.read("graph_indicator", reader)
    if not parts:
        raise DataError(
            f"{files.where('graph_indicator')} is empty.\nIt must have the graph of each node; get the data set again."
        )
    first, counts = parts[-1]
    sizes = np.zeros(first + len(counts) - 1, np.int64)
    for first, counts in parts:
        sizes[first - 1 : first - 1 + len(counts)] += counts
    return sizes


def _ends(files: Files, n_nodes: int) -> "tuple[Array, tuple[Array, Array] | None]":
    """The ends (edges, 2) of all edges, nodes numbered from 0, sorted and without duplicates; and their lines.

    The lines are None if the file is sorted or no other file is about edges; otherwise the lines in sorted order, and
    the first line of each edge.
    """
    import numpy as np

    ends = files.read("A", partial(read_columns, width=2, within=(1, n_nodes)))
    ends -= 1
    source, target = ends.T
    larger = (source[1:] > source[:-1]) | ((source[1:] == source[:-1]) & (target[1:] > target[:-1]))
    if larger.all():
        return ends, None
    key = source.astype(np.int64) * n_nodes + target
    if not (files.has("edge_attributes") or files.has("edge_labels")):
        del source, target, larger
        key.sort()
        key = key[np.concatenate([[True], key[1:] != key[:-1]])]
        ends = np.empty((len(key), 2), ends.dtype)
        ends[:, 0], ends[:, 1] = np.divmod(key, n_nodes)
        return ends, None
    order = np.argsort(key, kind="stable")
    first = order[np.diff(key[order], prepend=-1) != 0]
    return ends[first], (order, first)


def _by_graph(files: Files, ends: "Array", sizes: "Array", features: "Array | None") -> "tuple[bool, Array, Array]":
    """Whether the graphs are directed, their edges (2, edges) numbered within each graph, and their number of edges."""
    import numpy as np

    owner = np.repeat(np.arange(len(sizes), dtype=np.int32), sizes)
    graph, other = owner[ends[:, 0]], owner[ends[:, 1]]
    if (graph != other).any():
        row = int((graph != other).argmax())
        source, target = (ends[row] + 1).tolist()
        raise DataError(
            f"{files.where('A')}: the edge ({source}, {target}) joins graph {graph[row] + 1} with graph "
            f"{other[row] + 1}.{AGAIN}"
        )
    del other
    directed = _directed(files, ends, graph, features)
    starts = (np.cumsum(sizes) - sizes).astype(np.int32)
    kind = np.int16 if sizes.max() < 2**15 else np.int32
    edges = np.empty((2, len(ends)), kind)
    for side in range(2):
        edges[side] = ends[:, side] - starts[graph]
    return directed, edges, np.bincount(graph, minlength=len(sizes))


def _directed(files: Files, ends: "Array", graph: "Array", features: "Array | None") -> bool:
    """Whether an edge lacks its opposite or has other features."""
    import numpy as np

    factor = int(ends.max(initial=0)) + 1
    forwards = ends[:, 0].astype(np.int64) * factor + ends[:, 1]  # sorted, as the ends are
    backwards = ends[:, 1].astype(np.int64) * factor + ends[:, 0]
    if features is not None:
        order = np.argsort(backwards)
        if np.array_equal(forwards, backwards[order]):
            return not np.array_equal(features, features[order])
    else:
        backwards.sort()
        if np.array_equal(forwards, backwards):
            return False
    alone = np.unique(graph[~np.isin(forwards, backwards)])
    if len(alone) == 1 and alone[0] == graph[-1] and len(np.unique(graph)) > 1:
        raise DataError(
            f"{files.where('A')} seems to be cut off: in all graphs but the last that has edges, graph {alone[0] + 1}, "
            "each edge has both directions.\nGet the file again."
        )
    return True
