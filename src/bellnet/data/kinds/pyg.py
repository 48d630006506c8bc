"""PyTorch Geometric graphs."""

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
    """The graph of a `Data`; directed if its edges are not symmetric or it says so itself."""
    if hasattr(data, "to_data_list") or not hasattr(data, "edge_index"):
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
    n_edges = index.shape[1] if isinstance(index, Tensor) and index.ndim == 2 else 0
    edge = _columns(data, names.edge or _usual(data, "edge_attr", "edge_weight"), n_edges)
    node = _columns(data, names.node or _usual(data, "x"), data.num_nodes or 0)
    labels = data[names.label] if names.label is not None and names.label in data else data.get("node_labels")
    if names.label is not None and names.label not in data:
        raise _missing(data, names.label)
    if names.label is not None and names.node is None and names.label == "x":
        node = None
    graph = Graph(
        int(data.num_nodes or 0),
        index.detach().cpu(),
        edge_features=edge,
        node_features=node,
        node_labels=None if labels is None else labels.detach().cpu().reshape(len(labels), -1).squeeze(-1),
        directed=True,
    )
    if data.get("directed") or not is_symmetric(graph):
        return graph
    return Graph(graph.n, graph.edge_index, graph.edge_features, graph.node_features, graph.node_labels)


def to_pyg(graph: Graph) -> "Data":
    """A PyTorch Geometric `Data` with `edge_index`, `x`, `edge_attr`, `node_labels`. Needs the extra `pyg`."""
    require("torch_geometric", extra="pyg", call="to_pyg")
    from torch_geometric.data import Data

    given = {"x": graph.node_features, "edge_attr": graph.edge_features, "node_labels": graph.node_labels}
    data = Data(
        edge_index=graph.edge_index,
        num_nodes=graph.n,
        **{name: value for name, value in given.items() if value is not None},
    )
    if graph.directed and is_symmetric(graph):
        data.directed = True  # what the edges do not show
    return data


def _usual(data: Any, *names: str) -> tuple[str, ...]:
    for name in names:
        if data.get(name) is not None:
            return (name,)
    return ()


def _columns(data: Any, names: tuple[str, ...], rows: int) -> Tensor | None:
    columns = []
    for name in names:
        if name not in data:
            raise _missing(data, name)
        values = data[name]
        if not isinstance(values, Tensor):
            raise DataError(f"as_graph(data): attribute {name!r} must be a tensor, not {type(values).__qualname__}.")
        values = as_features(values.detach().cpu())
        columns.append(values.reshape(rows, -1) if values.ndim == 1 and len(values) == rows else values)
    return torch.cat(columns, 1) if columns else None


def _missing(data: Any, name: str) -> DataError:
    return DataError(f"as_graph(data): there is no attribute {name!r}; there are {', '.join(map(repr, data.keys()))}.")
