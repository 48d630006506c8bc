"""PyTorch Geometric graphs."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from bellnet.data.graph import Graph, is_symmetric
from bellnet.data.kinds.names import Names
from bellnet.data.kinds.numbers import as_features
from bellnet.errors import DataError
from bellnet.extras import require

if TYPE_CHECKING:
    from torch_geometric.data import Data


def from_pyg(data: Any, names: Names) -> Graph:
    """The graph of a `Data`; directed if its edges are not symmetric."""
    from torch_geometric.data import Batch, Data

    if isinstance(data, Batch) or not isinstance(data, Data):
        kind = f"{type(data).__module__}.{type(data).__qualname__}"
        raise DataError(
            f"as_graph(data): expected one torch_geometric.data.Data, not {kind}.\n"
            "A Batch or a dataset has many graphs: call as_graphs. Make heterogeneous graphs homogeneous first."
        )
    index = data.edge_index
    if index is None:
        raise DataError(
            "as_graph(data): this Data has no edge_index.\nFor no edges set torch.zeros(2, 0, dtype=torch.long)."
        )
    n = int(data.num_nodes or 0)
    edge_names = _usual(data, "edge_attr", "edge_weight") if names.edge is None else names.edge
    node_names = _usual(data, "x") if names.node is None else names.node
    if names.node is None and names.label == "x":
        node_names = ()  # what is a label is no feature besides
    graph = Graph(
        n,
        index,
        edge_features=_columns(data, edge_names),
        node_features=_columns(data, node_names),
        node_labels=_labels(data, names.label),
        directed=True,
    )
    if not is_symmetric(graph):
        return graph
    return Graph(graph.n, graph.edge_index, graph.edge_features, graph.node_features, graph.node_labels)


def pyg_members(graphs: Any) -> Iterable[object] | None:
    """The graphs of a `Batch` or a dataset; None if it is neither."""
    from torch_geometric.data import Batch, Dataset

    if isinstance(graphs, Batch):
        members: list[object] = graphs.to_data_list()
        return members
    return (graphs[place] for place in range(len(graphs))) if isinstance(graphs, Dataset) else None


def to_pyg(graph: Graph) -> "Data":
    """A PyTorch Geometric `Data` with `edge_index`, `x`, `edge_attr` and `node_labels`. Needs the extra `pyg`.

    There, a graph is directed if its edges are not symmetric; nothing else says so.
    """
    require("torch_geometric", extra="pyg", call="to_pyg")
    from torch_geometric.data import Data

    given = {"x": graph.node_features, "edge_attr": graph.edge_features, "node_labels": graph.node_labels}
    return Data(
        edge_index=graph.edge_index,
        num_nodes=graph.n,
        **{name: value for name, value in given.items() if value is not None},
    )


def _usual(data: Any, *names: str) -> tuple[str, ...]:
    for name in names:
        if name in data:
            return (name,)
    return ()


def _columns(data: Any, names: tuple[str, ...]) -> Tensor | None:
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
    return torch.cat(columns, 1) if columns else None


def _labels(data: Any, name: str | None) -> Tensor | None:
    if name is None and "node_labels" not in data:
        return None
    name = name or "node_labels"
    if name not in data:
        raise _missing(data, name)
    labels = data[name]
    if not isinstance(labels, Tensor):
        raise DataError(f"as_graph(data): attribute {name!r} must be a tensor, not {type(labels).__qualname__}.")
    return labels.squeeze(-1) if labels.ndim == 2 else labels


def _missing(data: Any, name: str) -> DataError:
    there = ", ".join(map(repr, sorted(data.keys())))
    return DataError(f"as_graph(data): there is no attribute {name!r}; there are {there}.")
