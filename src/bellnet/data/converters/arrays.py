"""Dense arrays of numpy and torch, and sparse matrices of scipy."""

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from bellnet._utils.optional import require
from bellnet.data.graph import Graph, with_detected_direction
from bellnet.errors import DataError
from bellnet.tensors.node_tensor import check_room_for

if TYPE_CHECKING:
    from scipy.sparse import csr_array


def from_dense(array: object) -> Graph:
    """The graph whose edges are the nonzero entries of an array (n, n) or (n, n, channels)."""
    values = _as_tensor(array)
    if values.ndim not in (2, 3) or values.shape[0] != values.shape[1]:
        raise DataError(
            f"as_graph(array): expected shape (n, n) or (n, n, channels), but it is {tuple(values.shape)}."
            + ("\nFor many graphs in one array call as_graphs." if values.ndim > 3 else "")
        )
    is_edge = values != 0 if values.ndim == 2 else (values != 0).any(-1)
    index = is_edge.nonzero().T.contiguous()
    width = values.shape[2] if values.ndim == 3 else 1
    features = as_features(values[index[0], index[1]].reshape(index.shape[1], width))
    return _from_entries(values.shape[0], index, features, weights=values.ndim == 2)


def from_scipy(matrix: object) -> Graph:
    """The graph whose edges are the stored entries of a sparse matrix (n, n)."""
    require("numpy", extra="graphs", call="as_graph of a scipy matrix")
    shape = tuple(getattr(matrix, "shape", ()))
    if len(shape) != 2 or shape[0] != shape[1] or not hasattr(matrix, "tocoo"):
        raise DataError(f"as_graph(matrix): expected a sparse matrix of shape (n, n), but its shape is {shape}.")
    entries = matrix.tocoo(copy=True)
    entries.sum_duplicates()
    index = torch.stack([torch.as_tensor(axis).to(torch.int64) for axis in (entries.row, entries.col)])
    values = _as_tensor(entries.data)
    return _from_entries(int(shape[0]), index, as_features(values).unsqueeze(-1), weights=True)


def to_dense(graph: Graph, *, max_gigabytes: float | None = None) -> Tensor:
    """The array (n, n), or (n, n, features) if edges have several features.

    Node features and labels are dropped, and an edge whose features are all zero is not distinguished from no edge.

    Args:
        graph: The graph.
        max_gigabytes: Maximum memory of the array; the memory of the machine if None.
    """
    features = torch.ones(graph.n_edges, 1) if graph.edge_features is None else graph.edge_features
    shape = (graph.n, graph.n, features.shape[1])
    check_room_for("to_dense(graph)", shape, features.dtype, max_gigabytes)
    values = torch.zeros(shape, dtype=features.dtype)
    values[graph.edge_index[0], graph.edge_index[1]] = features
    return values.squeeze(-1)


def to_scipy(graph: Graph) -> "csr_array":
    """The sparse matrix (n, n) of the single feature of the edges, or of ones. Needs the extra `graphs`."""
    require("scipy", extra="graphs", call="to_scipy")
    from scipy.sparse import coo_array

    features = graph.edge_features
    if features is not None and features.shape[1] != 1:
        raise DataError(
            f"to_scipy(graph): a matrix holds one feature for each edge, but these have {features.shape[1]}.\n"
            "Choose one: Graph(n, edge_index, edge_features[:, :1])."
        )
    values = torch.ones(graph.n_edges) if features is None else features.squeeze(-1)
    source, target = graph.edge_index.numpy()
    return coo_array((values.numpy(), (source, target)), shape=(graph.n, graph.n)).tocsr()


def _as_tensor(array: object) -> Tensor:
    try:
        values = torch.as_tensor(array).detach().cpu()
    except (TypeError, ValueError, RuntimeError) as reason:
        kind = getattr(array, "dtype", type(array))
        raise DataError(f"as_graph(array): expected an array of numbers, but its dtype is {kind}.") from reason
    if values.is_complex():
        raise DataError(
            f"as_graph(array): expected real numbers, but the dtype is {values.dtype}.\n"
            "Pass real and imaginary parts as two channels."
        )
    return values


def _from_entries(n: int, index: Tensor, features: Tensor, *, weights: bool) -> Graph:
    if not bool(features.isfinite().all()):
        row, column = features.isfinite().logical_not().nonzero()[0].tolist()
        source, target = index[:, row].tolist()
        raise DataError(
            f"as_graph(array): expected finite numbers, but entry ({source}, {target}) is "
            f"{features[row, column].item()}.\nWrite zero where there is no edge."
        )
    is_one = weights and bool((features == 1).all())
    return with_detected_direction(n, index, edge_features=None if is_one else features)


def as_features(values: Tensor) -> Tensor:
    """Values as floating point: unchanged if they are, integers in the default dtype, or in double if that rounds."""
    if values.is_floating_point():
        return values
    default = values.to(torch.get_default_dtype())
    return default if values.dtype == torch.bool or torch.equal(default.to(values.dtype), values) else values.double()
