"""PyTorch Geometric graphs as `Graph`, and back."""

from collections.abc import Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from bellnet._utils.optional import require
from bellnet.data.attributes import DAMAGE, Names, Source, Survey, read_fields, text_label
from bellnet.data.converters.arrays import as_features
from bellnet.data.graph import Graph, with_detected_direction
from bellnet.errors import DataError, type_name

if TYPE_CHECKING:
    from torch_geometric.data import Data

X, LABELS, TYPE = "x", "node_labels", "edge_type"
DEFAULTS = {
    "node_attrs": (X,),
    "edge_attrs": ("edge_attr", "edge_weight"),
    "node_labels": (LABELS,),
    "edge_labels": (TYPE,),
}
NO_INPUT = ("y", "edge_label", "num_nodes", "batch", "ptr", "face", "adj_t")
"""Attributes of a `Data` that are targets or describe its structure."""


def survey_pyg(graphs: Iterable[Any]) -> Survey:
    """All attributes of nodes and edges of some graphs, but no targets.

    The length of an attribute decides whether it belongs to nodes or edges; in a graph with as many edges as nodes
    "edge" in its name does, or else the other graphs do.
    """
    survey = Survey(DEFAULTS, separate=False)
    unclear = []
    for graph in graphs:
        with suppress(*DAMAGE):  # the conversion raises, with the position of the graph
            data = _homogeneous(graph)
            n, n_edges = int(data.num_nodes or 0), data.edge_index.shape[-1]
            survey.totals["node"] += n
            survey.totals["edge"] += n_edges
            for name in data.keys():  # noqa: SIM118
                values = data[name]
                if name in NO_INPUT or "index" in name or name.endswith("_mask"):
                    continue
                is_column = (isinstance(values, Tensor) and values.ndim) or isinstance(values, list | tuple)
                rows = len(values) if is_column else None
                if rows == n == n_edges and "edge" not in name:
                    unclear.append((name, values))
                elif rows == n_edges and (rows != n or "edge" in name):
                    survey.add_column("edge", name, values)
                elif rows == n and "edge" not in name:
                    survey.add_column("node", name, values)
    for name, values in unclear:
        is_of_edges = name in survey.found["edge"] and name not in survey.found["node"]
        survey.add_column("edge" if is_of_edges else "node", name, values)
    return survey


class _Stored(Source):
    """The attributes of a `Data`, which belong to nodes or to edges."""

    def __init__(self, data: Any, owner: str, length: int) -> None:
        super().__init__(owner, "as_graph(data)")
        self.data, self.length = data, length

    def __len__(self) -> int:
        return self.length

    def has(self, name: str) -> bool:
        """Whether there is an attribute of this name."""
        return name in self.data

    def numbers(self, name: str) -> Tensor:
        """An attribute as a matrix."""
        values = self._attribute(name)
        return as_features(values.unsqueeze(-1) if values.ndim == 1 else values)

    def label_column(self, name: str) -> tuple[Tensor, dict[int, str]]:
        """An attribute as labels, and the texts of text labels."""
        values = self._attribute(name, texts=True)
        if isinstance(values, Tensor):
            return values.squeeze(-1) if values.ndim == 2 else values, {}
        numbers = [text_label(value) for value in values]
        return torch.tensor(numbers, dtype=torch.int64), dict(zip(numbers, values, strict=True))

    def _attribute(self, name: str, *, texts: bool = False) -> Any:
        """An attribute: a tensor, or where texts are allowed a list of them."""
        if name not in self.data:
            there = ", ".join(map(repr, sorted(self.data.keys())))
            raise DataError(f"{self.call}: there is no attribute {name!r}; there are {there}.")
        values = self.data[name]
        are_texts = texts and isinstance(values, list | tuple) and all(isinstance(value, str) for value in values)
        if not isinstance(values, Tensor) and not are_texts:
            expected = "a tensor or a list of texts" if texts else "a tensor"
            raise DataError(f"{self.call}: attribute {name!r} must be {expected}, not {type(values).__qualname__}.")
        return values


def from_pyg(data: Any, names: Names) -> Graph:
    """The graph of a `Data`, directed if its edges are not symmetric; types of a `HeteroData` become labels."""
    from torch_geometric.data import Batch, Data

    data = _homogeneous(data)
    if isinstance(data, Batch) or not isinstance(data, Data):
        raise DataError(
            f"as_graph(data): expected one torch_geometric.data.Data or HeteroData, not {type_name(data)}.\n"
            "A Batch or a dataset has many graphs: call as_graphs."
        )
    index, n = data.edge_index, int(data.num_nodes or 0)
    if index is None:
        raise DataError(
            "as_graph(data): this Data has no edge_index.\nFor no edges set torch.zeros(2, 0, dtype=torch.long)."
        )
    nodes, edges = _Stored(data, "node", n), _Stored(data, "edge", index.shape[-1])
    return with_detected_direction(n, index, **read_fields(nodes, edges, names, DEFAULTS))


def pyg_members(graphs: Any) -> Iterable[object] | None:
    """The graphs of a `Batch` or a dataset; None if it is neither."""
    from torch_geometric.data import Batch, Dataset

    if isinstance(graphs, Batch):
        members: list[object] = graphs.to_data_list()
        return members
    return (graphs[index] for index in range(len(graphs))) if isinstance(graphs, Dataset) else None


def to_pyg(graph: Graph) -> "Data":
    """A PyTorch Geometric `Data` with `edge_index`, `x`, `edge_attr`, `node_labels` and `edge_type`.

    Whether the graph is directed is not stored: a `Data` is directed if its edges are not symmetric. Needs the extra
    `pyg`.
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
    """A `HeteroData` as a `Data`, its node types concatenated and their names as labels; others unchanged.

    An attribute that only some types have becomes a list with None.
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
    """An attribute of several types; None if it does not belong to single nodes or edges."""
    pairs = [*zip(parts, rows, strict=True)]
    if any(part is not None and not (isinstance(part, Tensor | list) and len(part) == count) for part, count in pairs):
        return None
    if all(isinstance(part, Tensor) for part in parts) and len({part.shape[1:] for part in parts}) == 1:
        return torch.cat(parts)
    return [value for part, count in pairs for value in ([None] * count if part is None else part)]
