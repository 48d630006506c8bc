"""PyTorch Geometric graphs."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from bellnet._utils.optional import require
from bellnet.data.columns import Columns, text_label
from bellnet.data.graph import Graph, is_symmetric
from bellnet.data.kinds.names import Names
from bellnet.data.kinds.numbers import as_features
from bellnet.data.kinds.survey import Survey
from bellnet.errors import DataError

if TYPE_CHECKING:
    from torch_geometric.data import Data

X, LABELS, TYPE = "x", "node_labels", "edge_type"
USUAL = {
    "node_attrs": (X,),
    "edge_attrs": ("edge_attr", "edge_weight"),
    "node_labels": (LABELS,),
    "edge_labels": (TYPE,),
}
NO_INPUT = ("y", "edge_label", "num_nodes", "batch", "ptr", "face", "adj_t")
"""What stands in a `Data` for other purposes: to be predicted, or to say where things are."""


def survey_pyg(graph: Any, survey: Survey) -> list[tuple[str, Any]]:
    """Take note of all attributes of nodes and edges of a graph, and return those that could be of both.

    A `Data` does not say what an attribute belongs to; its length does. Where a graph has as many edges as nodes,
    "edge" in its name does, and else `settle` when all graphs are known.
    """
    graph = _homogeneous(graph)
    n, n_edges = int(graph.num_nodes or 0), graph.edge_index.shape[-1]
    survey.totals["node"] += n
    survey.totals["edge"] += n_edges
    unclear = []
    for name in graph.keys():  # noqa: SIM118
        values = graph[name]
        if name in NO_INPUT or "index" in name or name.endswith("_mask"):
            continue
        is_column = (isinstance(values, Tensor) and values.ndim) or isinstance(values, list | tuple)
        rows = len(values) if is_column else None
        if rows == n == n_edges and "edge" not in name:
            unclear.append((name, values))
        elif rows == n_edges and (rows != n or "edge" in name):
            survey.see_column("edge", name, values)
        elif rows == n and "edge" not in name:
            survey.see_column("node", name, values)
    return unclear


def settle(unclear: Iterable[tuple[str, Any]], survey: Survey) -> None:
    """Take note of attributes that could be of nodes or edges: of edges if other graphs say so."""
    for name, values in unclear:
        of_edges = name in survey.found["edge"] and name not in survey.found["node"]
        survey.see_column("edge" if of_edges else "node", name, values)


def from_pyg(data: Any, names: Names) -> Graph:
    """The graph of a `Data`; directed if its edges are not symmetric.

    Kinds of nodes and of edges of a `HeteroData` are labels.
    """
    from torch_geometric.data import Batch, Data

    data = _homogeneous(data)
    if isinstance(data, Batch) or not isinstance(data, Data):
        kind = f"{type(data).__module__}.{type(data).__qualname__}"
        raise DataError(
            f"as_graph(data): expected one torch_geometric.data.Data or HeteroData, not {kind}.\n"
            "A Batch or a dataset has many graphs: call as_graphs."
        )
    index = data.edge_index
    if index is None:
        raise DataError(
            "as_graph(data): this Data has no edge_index.\nFor no edges set torch.zeros(2, 0, dtype=torch.long)."
        )
    usual = {
        role: next(((name,) for name in USUAL[role] if name in data), ())
        for role in ("node_attrs", "edge_attrs", "node_labels")
    }
    edge_features, edge = _columns(data, usual["edge_attrs"] if names.edge_attrs is None else names.edge_attrs)
    node_features, node = _columns(data, usual["node_attrs"] if names.node_attrs is None else names.node_attrs)
    node_labels, texts = _labels(data, usual["node_labels"] if names.node_labels is None else names.node_labels)
    edge_labels, edge_texts = _labels(data, names.edge_labels or ())
    n, has_edges = int(data.num_nodes or 0), index.shape[-1] > 0
    columns = Columns(
        None if names.node_attrs is None or not n else node,
        None if names.edge_attrs is None or not has_edges else edge,
        names.node_labels if n else None,
        names.edge_labels if has_edges else None,
        tuple(sorted({**texts, **edge_texts}.items())),
    )
    found: dict[str, Any] = {
        "edge_features": edge_features,
        "node_features": node_features,
        "node_labels": node_labels,
        "edge_labels": edge_labels,
        "columns": columns,
    }
    graph = Graph(n, index, directed=True, **found)
    return Graph(graph.n, graph.edge_index, **found) if is_symmetric(graph) else graph


def pyg_members(graphs: Any) -> Iterable[object] | None:
    """The graphs of a `Batch` or a dataset; None if it is neither."""
    from torch_geometric.data import Batch, Dataset

    if isinstance(graphs, Batch):
        members: list[object] = graphs.to_data_list()
        return members
    return (graphs[place] for place in range(len(graphs))) if isinstance(graphs, Dataset) else None


def to_pyg(graph: Graph) -> "Data":
    """A PyTorch Geometric `Data` with `edge_index`, `x`, `edge_attr`, `node_labels` and `edge_type`.

    There, a graph is directed if its edges are not symmetric; nothing else says so. Needs the extra `pyg`.
    """
    require("torch_geometric", extra="pyg", call="to_pyg")
    from torch_geometric.data import Data

    given = {
        X: graph.node_features,
        "edge_attr": graph.edge_features,
        LABELS: graph.node_labels,
        TYPE: graph.edge_labels,
    }
    return Data(
        edge_index=graph.edge_index,
        num_nodes=graph.n,
        **{name: value for name, value in given.items() if value is not None},
    )


def _homogeneous(data: Any) -> Any:
    """A `HeteroData` as a `Data`: kinds of nodes one after the other, their names as labels; all else as it is.

    An attribute that some kinds only have becomes a list with gaps.
    """
    from torch_geometric.data import Batch, Data, HeteroData

    if isinstance(data, Batch) or not isinstance(data, HeteroData):
        return data
    nodes, edges = data.node_types, data.edge_types
    sizes = [int(data[kind].num_nodes or 0) for kind in nodes]
    first = dict(zip(nodes, torch.tensor([0, *sizes]).cumsum(0).tolist(), strict=False))
    index = [data[kind].edge_index + torch.tensor([[first[kind[0]]], [first[kind[2]]]]) for kind in edges]
    widths = [part.shape[1] for part in index]
    found: dict[str, Any] = {
        "edge_index": torch.cat([torch.zeros(2, 0, dtype=torch.int64), *index], 1),
        LABELS: [kind for kind, size in zip(nodes, sizes, strict=True) for _ in range(size)],
        TYPE: [" ".join(kind) for kind, width in zip(edges, widths, strict=True) for _ in range(width)],
    }
    for kinds, rows in ((nodes, sizes), (edges, widths)):
        stores = [data[kind] for kind in kinds]
        for name in dict.fromkeys(name for store in stores for name in store.keys()):  # noqa: SIM118
            if name not in found:
                found[name] = _joined([store.get(name) for store in stores], rows)
    return Data(**{name: value for name, value in found.items() if value is not None}, num_nodes=sum(sizes))


def _joined(parts: list[Any], rows: list[int]) -> Tensor | list[object] | None:
    """An attribute of several kinds; None if it is not one of single nodes or edges."""
    for part, count in zip(parts, rows, strict=True):
        if part is not None and not (isinstance(part, Tensor | list) and len(part) == count):
            return None
    if all(isinstance(part, Tensor) for part in parts) and len({part.shape[1:] for part in parts}) == 1:
        return torch.cat(parts)
    return [
        value
        for part, count in zip(parts, rows, strict=True)
        for value in (part if part is not None else [None] * count)
    ]


def _columns(data: Any, names: tuple[str, ...]) -> tuple[Tensor | None, tuple[str, ...]]:
    """Numbers in columns, and for every column the attribute that it is a part of."""
    columns: list[Tensor] = []
    for name in names:
        if name not in data:
            raise _missing(data, name)
        values = data[name]
        if not isinstance(values, Tensor):
            raise DataError(f"as_graph(data): attribute {name!r} must be a tensor, not {type(values).__qualname__}.")
        columns.append(as_features(values.unsqueeze(-1) if values.ndim == 1 else values))
    if len({column.shape[:-1] for column in columns}) > 1:
        shapes = " and ".join(str(tuple(column.shape)) for column in columns)
        raise DataError(f"as_graph(data): {' and '.join(map(repr, names))} must have equally many rows, not {shapes}.")
    parts = tuple(name for name, column in zip(names, columns, strict=True) for _ in range(column.shape[-1]))
    return torch.cat(columns, 1) if columns else None, parts


def _labels(data: Any, names: tuple[str, ...]) -> tuple[Tensor | None, dict[int, str]]:
    """Labels, in a column for each of several names, and the texts that some stand for."""
    texts: dict[int, str] = {}
    columns = []
    for name in names:
        if name not in data:
            raise _missing(data, name)
        labels = data[name]
        if isinstance(labels, list | tuple) and all(isinstance(label, str) for label in labels):
            numbers = [text_label(label) for label in labels]
            texts.update(zip(numbers, labels, strict=True))
            labels = torch.tensor(numbers, dtype=torch.int64)
        if not isinstance(labels, Tensor):
            raise DataError(
                f"as_graph(data): attribute {name!r} must be a tensor or a list of texts, not "
                f"{type(labels).__qualname__}."
            )
        columns.append(labels.squeeze(-1) if labels.ndim == 2 else labels)
    if len({len(column) for column in columns}) > 1:
        lengths = " and ".join(str(len(column)) for column in columns)
        raise DataError(f"as_graph(data): {' and '.join(map(repr, names))} must be equally long, not {lengths}.")
    if len(columns) == 1:
        return columns[0], texts
    return (torch.stack(columns, 1) if columns else None), texts


def _missing(data: Any, name: str) -> DataError:
    there = ", ".join(map(repr, sorted(data.keys())))
    return DataError(f"as_graph(data): there is no attribute {name!r}; there are {there}.")
