"""`Sparse` tensors from edges, graphs, hyperedges, ratings and sparse tensors of torch.

`bellnet.data.to_sparse` encodes many graphs at once, with chosen channels.
"""

from collections.abc import Iterable, Sequence
from itertools import permutations
from typing import Any

import torch
from torch import Tensor

from bellnet._utils.optional import require
from bellnet.data.attributes import Given
from bellnet.data.converters.conversion import as_graph
from bellnet.errors import DataError, type_name
from bellnet.tensors import Sparse


def from_edge_index(
    edge_index: Tensor,
    values: Tensor | None = None,
    *,
    n_nodes: int | None = None,
    batch: Tensor | None = None,
    duplicates: str = "refuse",
) -> Sparse:
    """Edges as a (2, edges) tensor, the form of PyTorch Geometric.

    Args:
        edge_index: The two nodes of each edge.
        values: (edges, channels) or (edges,); ones if None.
        n_nodes: The number of nodes; without it, and without `batch`, the largest node of an edge is the last.
        batch: (nodes,): the graph of each node, ascending, for a batch of graphs. Graphs without nodes at the end are
            not part of it.
        duplicates: "refuse" raises an error for edges that occur twice, "sum" adds their values.

    >>> from_edge_index(torch.tensor([[0, 1, 2], [1, 0, 2]]), n_nodes=4)
    Sparse("n n", 3 tuples, 1 channel, sizes=4)
    """
    call = "from_edge_index(edge_index)"
    if len(shape := _shape(edge_index)) != 2 or shape[0] != 2:
        raise DataError(f"{call}: edge_index must be a tensor of shape (2, edges), not {_described(edge_index)}.")
    values = _with_channels(call, values, edge_index)
    if batch is None:
        return _from_entries(call, edge_index, values, _last(edge_index) if n_nodes is None else n_nodes, duplicates)
    _check_batch(call, batch, edge_index, n_nodes)
    sizes = torch.bincount(batch)
    graphs = batch[edge_index[0]]
    if not torch.equal(graphs, batch[edge_index[1]]):
        raise DataError(f"{call}: there is an edge between nodes of different graphs.")
    within = edge_index - (sizes.cumsum(0) - sizes)[graphs]
    return _from_entries(call, torch.cat([graphs.unsqueeze(0), within]), values, sizes, duplicates)


def from_graph(graph: object, *, node_attrs: Given = None, edge_attrs: Given = None) -> Sparse:
    """One graph of any kind that `as_graph` takes: networkx, scipy, `Graph`, PyTorch Geometric `Data`, arrays.

    The channels are the features of edges, or one channel of ones for a graph without them; then those of nodes, on the
    diagonal, which a graph without node features lacks. Edges of an undirected graph are stored in both directions.
    Labels are ignored: `bellnet.data.to_sparse` makes channels of them.

    Args:
        graph: The graph.
        node_attrs: The name or names of the attributes that are node features, see `as_graph`.
        edge_attrs: The same for edge features.

    >>> from_graph(torch.tensor([[0, 1, 0], [1, 0, 0], [0, 0, 1]]))
    Sparse("n n", 3 tuples, 1 channel, sizes=3)
    """
    known = as_graph(graph, node_attrs=node_attrs, edge_attrs=edge_attrs)
    values = None if known.edge_features is None else known.edge_features.to(torch.get_default_dtype())
    edges = from_edge_index(known.edge_index, values, n_nodes=known.n)
    return edges if known.node_features is None else _with_node_features(edges, known.node_features)


def from_pyg(data: Any, *, duplicates: str = "refuse") -> Sparse:
    """A `Data` or `Batch` of PyTorch Geometric, also a mini-batch of its loaders.

    The channels are those of `edge_attr`, or else `edge_weight`, or one channel of ones for a graph without either;
    then those of `x`, on the diagonal, which a graph without `x` lacks.

    Args:
        data: The graph, or the batch of graphs.
        duplicates: "refuse" raises an error for edges that occur twice, "sum" adds their values.
    """
    require("torch_geometric", extra="pyg", call="from_pyg(data)")
    if getattr(data, "edge_index", None) is None:
        raise DataError(
            f"from_pyg(data): data must be a graph with edge_index, not {type(data).__qualname__}.\n"
            "A list of graphs is for Batch.from_data_list(graphs) or bellnet.data.to_sparse(graphs)."
        )
    batch = getattr(data, "batch", None)
    attributes = next((data[name] for name in ("edge_attr", "edge_weight") if data.get(name) is not None), None)
    edges = from_edge_index(data.edge_index, attributes, n_nodes=data.num_nodes, batch=batch, duplicates=duplicates)
    if batch is not None:  # the last graphs of a batch may have no nodes
        sizes = torch.bincount(batch, minlength=int(getattr(data, "num_graphs", 0) or 0))
        edges = Sparse(edges.index, edges.values, sizes, is_sorted=True)
    if data.x is None:
        return edges
    return _with_node_features(edges, _matrix("from_pyg(data)", "data.x", data.x, data.num_nodes, "nodes"))


def from_torch(tensor: Tensor) -> Sparse:
    """A sparse tensor of torch, COO or CSR; a dense axis after the sparse ones holds the channels.

    The sparse axes must be equally long; see `from_ratings` for two node sets.
    """
    call = "from_torch(tensor)"
    if getattr(tensor, "layout", torch.strided) == torch.strided:
        raise DataError(
            f"{call}: expected a sparse tensor of torch, not {_described(tensor)}.\n"
            "For a dense tensor use bellnet.Sparse.from_dense(x, shape)."
        )
    coo: Tensor = tensor.to_sparse_coo().coalesce()  # type: ignore[no-untyped-call]
    lengths = set(coo.shape[: coo.sparse_dim()])
    if len(lengths) != 1 or coo.dense_dim() > 1:
        raise DataError(
            f"{call}: the sparse axes must have one length, and at most one dense axis, the channels, may follow; the "
            f"shape is {tuple(coo.shape)} with {coo.dense_dim()} dense axes.\n"
            "For several node sets use bellnet.Sparse(tensor.indices(), values, sizes)."
        )
    return Sparse(coo.indices(), _with_channels(call, coo.values(), coo.indices()), lengths.pop(), is_sorted=True)


def from_hyperedges(
    hyperedges: Iterable[Sequence[int]], values: Tensor | None = None, *, n_nodes: int, ordered: bool = False
) -> Sparse:
    """Hyperedges of k nodes each as a tensor of order k; see `from_incidence` for different sizes.

    Args:
        hyperedges: The nodes of each hyperedge, equally many for all.
        values: (hyperedges, channels) or (hyperedges,); ones if None.
        n_nodes: The number of nodes.
        ordered: Whether the nodes of a hyperedge are ordered. If not, all k! orders are stored, with the same value.

    >>> from_hyperedges([(0, 1, 2), (1, 2, 3)], n_nodes=5)
    Sparse("n n n", 12 tuples, 1 channel, sizes=5)
    """
    call = "from_hyperedges(hyperedges)"
    edges = [tuple(edge) for edge in hyperedges]
    if len({*map(len, edges)}) != 1:
        raise DataError(
            f"{call}: expected hyperedges with equally many nodes, got {sorted({*map(len, edges)}) or 'none'}.\n"
            "For hyperedges of different sizes use from_incidence(hyperedges, n_nodes=...): a tensor of nodes by "
            "hyperedges."
        )
    index = _integers(call, "hyperedges", edges).T.contiguous()
    values = _with_channels(call, values, index)
    if not ordered:
        _check_sets(call, index)
        orders = [list(order) for order in permutations(range(len(index)))]
        index = torch.cat([index[order] for order in orders], 1)
        values = values.repeat(len(orders), 1)
    return Sparse(index, values, n_nodes)


def from_incidence(
    hyperedges: Iterable[Sequence[int]],
    values: Tensor | None = None,
    *,
    n_nodes: int,
    names: tuple[str, str] = ("n", "e"),
) -> Sparse:
    """Hyperedges of any sizes as an incidence tensor of nodes by hyperedges, for layers such as "n e -> n e".

    Args:
        hyperedges: The nodes of each hyperedge; one may have no nodes.
        values: (hyperedges, channels) or (hyperedges,): the values at all nodes of a hyperedge; ones if None.
        n_nodes: The number of nodes.
        names: The names of the two node sets in specs.

    >>> from_incidence([(0, 1, 2), (1, 3)], n_nodes=5)
    Sparse("n e", 5 tuples, 1 channel, sizes={'n': 5, 'e': 2})
    """
    call = "from_incidence(hyperedges)"
    edges = [tuple(edge) for edge in hyperedges]
    for number, edge in enumerate(edges):
        if len(set(edge)) < len(edge):
            raise DataError(f"{call}: hyperedges[{number}] has a node twice: {edge}.\nPass each node once.")
    nodes = _integers(call, "hyperedges", [node for edge in edges for node in edge])
    owner = torch.repeat_interleave(torch.tensor([len(edge) for edge in edges], dtype=torch.int64))
    of_edges = _with_channels(call, values, torch.arange(len(edges)).unsqueeze(0))
    return Sparse(torch.stack([nodes, owner]), of_edges[owner], {names[0]: n_nodes, names[1]: len(edges)})


def from_ratings(
    users: Tensor | Sequence[int],
    items: Tensor | Sequence[int],
    ratings: Tensor | Sequence[float],
    *,
    sizes: tuple[int, int] | None = None,
    names: tuple[str, str] = ("u", "i"),
    duplicates: str = "refuse",
) -> Sparse:
    """A table of ratings of items by users.

    Args:
        users: The user of each rating, from 0 up.
        items: The item of each rating, from 0 up.
        ratings: (ratings,) or (ratings, channels).
        sizes: The numbers of users and of items; without them the largest user and item are the last.
        names: The names of the two node sets in specs.
        duplicates: "refuse" raises an error for pairs that occur twice, "sum" adds their values.

    >>> from_ratings([0, 0, 2], [1, 3, 0], [5.0, 3.0, 1.0])
    Sparse("u i", 3 tuples, 1 channel, sizes={'u': 3, 'i': 4})
    """
    call = "from_ratings(users, items, ratings)"
    both = _integers(call, "users", users), _integers(call, "items", items)
    values = torch.as_tensor(ratings)
    if len({len(one) for one in (*both, values)}) > 1:
        raise DataError(f"{call}: there are {len(both[0])} users, {len(both[1])} items and {len(values)} ratings.")
    index = torch.stack(both)
    values = _with_channels(call, values, index)
    n_users, n_items = map(_last, index) if sizes is None else sizes
    return _from_entries(call, index, values, {names[0]: n_users, names[1]: n_items}, duplicates)


def _with_node_features(edges: Sparse, features: Tensor) -> Sparse:
    """With further channels on the diagonal: (nodes, channels), graph by graph."""
    placed = edges.with_diagonal()
    nodes = placed.support.nodes
    on_diagonal = (nodes[0] == nodes[1]).nonzero().flatten()  # ascending, as the nodes are
    n_edge = placed.values.shape[1]
    values = placed.values.new_zeros(placed.nnz, n_edge + features.shape[1])
    values[:, :n_edge] = placed.values
    values[on_diagonal, n_edge:] = features.to(values.dtype)
    return placed.with_values(values)


def _from_entries(call: str, index: Tensor, values: Tensor, sizes: Any, duplicates: str) -> Sparse:
    """A `Sparse`; with duplicates="sum" the values of equal index tuples are added."""
    if duplicates not in ("refuse", "sum"):
        raise DataError(f"{call}: duplicates must be 'refuse' or 'sum', not {duplicates!r}.")
    # The constructor raises an error for indices that cannot be nodes.
    if duplicates == "sum" and index.dtype == torch.int64 and index.numel() and int(index.min()) >= 0:
        coo = torch.sparse_coo_tensor(index, values, check_invariants=False).coalesce()
        index, values = coo.indices(), coo.values()
    return Sparse(index, values, sizes)


def _last(nodes: Tensor) -> int:
    """The number of nodes if the largest one is the last."""
    return int(nodes.max()) + 1 if nodes.numel() else 0


def _described(value: object) -> str:
    return f"a {value.dtype} tensor of shape {_shape(value)}" if isinstance(value, Tensor) else type_name(value)


def _shape(value: object) -> tuple[int, ...]:
    return tuple(value.shape) if isinstance(value, Tensor) else ()


def _integers(call: str, argument: str, given: Any) -> Tensor:
    """Nodes as an int64 tensor."""
    try:
        found = torch.as_tensor(given)
        whole = not (found.is_floating_point() or found.is_complex()) or not found.numel()
    except (TypeError, ValueError, RuntimeError):
        whole = False
    if not whole:
        raise DataError(f"{call}: {argument} must be integers: nodes are numbered from 0.")
    return found.to(torch.int64)


def _check_sets(call: str, index: Tensor) -> None:
    """Raises a `DataError` if a hyperedge has a node twice, or two have the same nodes."""
    nodes = index.sort(0)[0]
    if bool((twice := (nodes[1:] == nodes[:-1]).any(0)).any()):
        column = int(twice.nonzero()[0])
        raise DataError(
            f"{call}: hyperedges[{column}] has a node twice: {tuple(index[:, column].tolist())}.\n"
            "If the order of the nodes matters, pass ordered=True."
        )
    seen: dict[tuple[int, ...], int] = {}
    for column, edge in enumerate(map(tuple, nodes.T.tolist())):
        if seen.setdefault(edge, column) != column:
            raise DataError(
                f"{call}: hyperedges[{seen[edge]}] and hyperedges[{column}] have the same nodes, {edge}.\n"
                "Remove one of them, or pass ordered=True if the order of the nodes matters."
            )


def _check_batch(call: str, batch: object, edge_index: Tensor, n_nodes: int | None) -> None:
    """Raises a `DataError` if `batch` does not ascend from 0 or does not match nodes and edges."""
    if (
        not isinstance(batch, Tensor)
        or batch.dtype != torch.int64
        or batch.ndim != 1
        or bool((batch.diff(prepend=batch.new_zeros(1)) < 0).any())
    ):
        raise DataError(
            f"{call}: batch must be the graph of each node, ascending int64 from 0, not {_described(batch)}."
        )
    if n_nodes is not None and n_nodes != len(batch):
        raise DataError(f"{call}: batch has {len(batch)} nodes, but n_nodes is {n_nodes}.")
    if edge_index.numel() and not 0 <= int(edge_index.min()) <= int(edge_index.max()) < len(batch):
        raise DataError(
            f"{call}: batch has {len(batch)} nodes, but edges go from node {int(edge_index.min())} to node "
            f"{int(edge_index.max())}."
        )


def _with_channels(call: str, values: Tensor | None, index: Tensor) -> Tensor:
    if values is None:
        return torch.ones(index.shape[1], 1, device=index.device)
    return _matrix(call, "values", values, index.shape[1], "tuples")


def _matrix(call: str, argument: str, values: object, rows: int, owners: str) -> Tensor:
    """Floating point values with a row of channels for each tuple or node."""
    if not isinstance(values, Tensor) or values.ndim not in (1, 2) or len(values) != rows:
        raise DataError(
            f"{call}: {argument} must be a tensor with one row of channels for each of the {rows} {owners}, not "
            f"{_described(values)}."
        )
    values = values if values.is_floating_point() else values.to(torch.get_default_dtype())
    return values if values.ndim == 2 else values.unsqueeze(-1)
