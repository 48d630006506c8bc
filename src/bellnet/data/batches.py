"""A list of graphs as one tensor, or two, in one call."""

from collections.abc import Iterable
from typing import Any, Literal, cast, overload

import torch

from bellnet.data.convert import read
from bellnet.data.encode import Encoding
from bellnet.data.kinds import Given, Names
from bellnet.tensors import Padded, Sparse


@overload
def to_padded(
    graphs: Iterable[object],
    *,
    node_channels: Literal["diagonal"] = "diagonal",
    dtype: torch.dtype = torch.float32,
    device: torch.device | str | None = None,
    max_gigabytes: float | None = None,
    node_attrs: Given = None,
    edge_attrs: Given = None,
    node_labels: Given = None,
    edge_labels: Given = None,
    **options: Any,
) -> Padded: ...
@overload
def to_padded(
    graphs: Iterable[object],
    *,
    node_channels: str,
    dtype: torch.dtype = torch.float32,
    device: torch.device | str | None = None,
    max_gigabytes: float | None = None,
    node_attrs: Given = None,
    edge_attrs: Given = None,
    node_labels: Given = None,
    edge_labels: Given = None,
    **options: Any,
) -> Padded | tuple[Padded, Padded]: ...
def to_padded(
    graphs: Iterable[object],
    *,
    node_channels: str = "diagonal",
    dtype: torch.dtype = torch.float32,
    device: torch.device | str | None = None,
    max_gigabytes: float | None = None,
    node_attrs: Given = None,
    edge_attrs: Given = None,
    node_labels: Given = None,
    edge_labels: Given = None,
    **options: Any,
) -> Padded | tuple[Padded, Padded]:
    """A list of graphs as one `Padded` (graphs, n, n, channels): `Encoding.fit` and `encode` in one call.

    Other graphs may come out with other channels. To encode those as these, keep the `Encoding`.

    Args:
        graphs: Graphs of any kind that `as_graph` takes.
        node_channels: "diagonal" for one tensor, with what is said of nodes on its diagonal; "separate" for two, over
            pairs of nodes and over nodes.
        dtype: The type of the values.
        device: Where the values are.
        max_gigabytes: What would take more is refused; the memory of the machine if None.
        node_attrs: The name or names of the attributes that are node features, see `as_graph`.
        edge_attrs: Likewise of the edge features.
        node_labels: Likewise of the node labels.
        edge_labels: Likewise of the edge labels.
        **options: Those of `Encoding.fit`, for instance adjacency="normalized".

    >>> path, edge = torch.tensor([[0, 1, 0], [1, 0, 1], [0, 1, 0]]), torch.tensor([[0, 1], [1, 0]])
    >>> to_padded([path, edge], adjacency="both").values.shape
    torch.Size([2, 3, 3, 2])
    """
    known = read(
        "to_padded(graphs)",
        graphs,
        Names.of(node_attrs=node_attrs, edge_attrs=edge_attrs, node_labels=node_labels, edge_labels=edge_labels),
    )
    found = Encoding.fit(known, **options).encode(
        known, node_channels=node_channels, dtype=dtype, device=device, max_gigabytes=max_gigabytes
    )
    return cast(Padded | tuple[Padded, Padded], found)


@overload
def to_sparse(
    graphs: Iterable[object],
    *,
    node_channels: Literal["diagonal"] = "diagonal",
    dtype: torch.dtype = torch.float32,
    device: torch.device | str | None = None,
    node_attrs: Given = None,
    edge_attrs: Given = None,
    node_labels: Given = None,
    edge_labels: Given = None,
    **options: Any,
) -> Sparse: ...
@overload
def to_sparse(
    graphs: Iterable[object],
    *,
    node_channels: str,
    dtype: torch.dtype = torch.float32,
    device: torch.device | str | None = None,
    node_attrs: Given = None,
    edge_attrs: Given = None,
    node_labels: Given = None,
    edge_labels: Given = None,
    **options: Any,
) -> Sparse | tuple[Sparse, Sparse]: ...
def to_sparse(
    graphs: Iterable[object],
    *,
    node_channels: str = "diagonal",
    dtype: torch.dtype = torch.float32,
    device: torch.device | str | None = None,
    node_attrs: Given = None,
    edge_attrs: Given = None,
    node_labels: Given = None,
    edge_labels: Given = None,
    **options: Any,
) -> Sparse | tuple[Sparse, Sparse]:
    """A list of graphs as one `Sparse` that lists their edges and diagonals; otherwise as `to_padded`.

    Args:
        graphs: Graphs of any kind that `as_graph` takes.
        node_channels: "diagonal" for one tensor, with what is said of nodes on its diagonal; "separate" for two, over
            pairs of nodes and over nodes.
        dtype: The type of the values.
        device: Where the values are.
        node_attrs: The name or names of the attributes that are node features, see `as_graph`.
        edge_attrs: Likewise of the edge features.
        node_labels: Likewise of the node labels.
        edge_labels: Likewise of the edge labels.
        **options: Those of `Encoding.fit`, for instance adjacency="normalized".

    >>> path, edge = torch.tensor([[0, 1, 0], [1, 0, 1], [0, 1, 0]]), torch.tensor([[0, 1], [1, 0]])
    >>> to_sparse([path, edge])
    Sparse("n n", 11 tuples, 1 channel, sizes=tensor([3, 2]))
    >>> to_sparse([path, edge], node_channels="separate", degrees=True)
    (Sparse("n n", 6 tuples, 1 channel, sizes=tensor([3, 2])), Sparse("n", 5 tuples, 1 channel, sizes=tensor([3, 2])))
    """
    known = read(
        "to_sparse(graphs)",
        graphs,
        Names.of(node_attrs=node_attrs, edge_attrs=edge_attrs, node_labels=node_labels, edge_labels=edge_labels),
    )
    found = Encoding.fit(known, **options).encode(
        known, layout="sparse", node_channels=node_channels, dtype=dtype, device=device
    )
    return cast(Sparse | tuple[Sparse, Sparse], found)
