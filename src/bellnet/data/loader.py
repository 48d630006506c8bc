"""Batches of graphs: all graphs as one tensor, batches of similar size for training, and outputs back per graph."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal, TypeVar, Unpack, cast, overload

import torch
from torch import Tensor

from bellnet.data.attributes import GivenNames, Names
from bellnet.data.converters.conversion import given_without, read, read_by
from bellnet.data.encoding import LAYOUTS, Encoded, Encoding
from bellnet.data.graph import ROLES, Graph
from bellnet.errors import DataError, OptionError
from bellnet.tensors import Padded, Sparse
from bellnet.tensors.padded import zero_padded

Batch = tuple[Encoded, Tensor | list[object] | None, Tensor]
T = TypeVar("T")

Parts = tuple[Padded | Sparse, ...]
"""The tensors of one graph: over pairs of nodes and, with node_channels="separate", over nodes."""

MIXING = 0.05
"""The random relative error of sizes in the sorting, so that graphs of slightly different sizes share batches."""


@overload
def to_padded(
    graphs: Iterable[object], *, node_channels: Literal["diagonal"] = "diagonal", **options: Any
) -> Padded: ...
@overload
def to_padded(graphs: Iterable[object], *, node_channels: str, **options: Any) -> Padded | tuple[Padded, Padded]: ...
def to_padded(
    graphs: Iterable[object],
    *,
    node_channels: str = "diagonal",
    dtype: torch.dtype = torch.float32,
    device: torch.device | str | None = None,
    max_gigabytes: float | None = None,
    **options: Any,
) -> Padded | tuple[Padded, Padded]:
    """A list of graphs as one `Padded` (graphs, n, n, channels): `Encoding.fit` and `encode` in one call.

    Other graphs may get other channels. To encode them alike, use an `Encoding`.

    Args:
        graphs: Graphs of any kind that `as_graph` takes.
        node_channels: "diagonal" for one tensor, with the channels of nodes on its diagonal; "separate" for two, over
            pairs of nodes and over nodes.
        dtype: The dtype of the values.
        device: The device of the values.
        max_gigabytes: Maximum memory of the result; the memory of the machine if None.
        **options: Those of `Encoding.fit`, for instance adjacency="normalized" or node_attrs="charge".

    >>> path, edge = torch.tensor([[0, 1, 0], [1, 0, 1], [0, 1, 0]]), torch.tensor([[0, 1], [1, 0]])
    >>> to_padded([path, edge], adjacency="both").values.shape
    torch.Size([2, 3, 3, 2])
    """
    encoding, known = _fit("to_padded(graphs)", graphs, options)
    found = encoding.encode(known, node_channels=node_channels, dtype=dtype, device=device, max_gigabytes=max_gigabytes)
    return cast(Padded | tuple[Padded, Padded], found)


@overload
def to_sparse(
    graphs: Iterable[object], *, node_channels: Literal["diagonal"] = "diagonal", **options: Any
) -> Sparse: ...
@overload
def to_sparse(graphs: Iterable[object], *, node_channels: str, **options: Any) -> Sparse | tuple[Sparse, Sparse]: ...
def to_sparse(
    graphs: Iterable[object],
    *,
    node_channels: str = "diagonal",
    dtype: torch.dtype = torch.float32,
    device: torch.device | str | None = None,
    **options: Any,
) -> Sparse | tuple[Sparse, Sparse]:
    """A list of graphs as one `Sparse` that stores their edges and diagonals; the arguments are those of `to_padded`.

    >>> path, edge = torch.tensor([[0, 1, 0], [1, 0, 1], [0, 1, 0]]), torch.tensor([[0, 1], [1, 0]])
    >>> to_sparse([path, edge])
    Sparse("n n", 11 tuples, 1 channel, sizes=tensor([3, 2]))
    >>> to_sparse([path, edge], node_channels="separate", degrees=True)
    (Sparse("n n", 6 tuples, 1 channel, sizes=tensor([3, 2])), Sparse("n", 5 tuples, 1 channel, sizes=tensor([3, 2])))
    """
    encoding, known = _fit("to_sparse(graphs)", graphs, options)
    found = encoding.encode(known, layout="sparse", node_channels=node_channels, dtype=dtype, device=device)
    return cast(Sparse | tuple[Sparse, Sparse], found)


def _fit(call: str, graphs: Iterable[object], options: dict[str, Any]) -> tuple[Encoding, list[Graph]]:
    """An encoding fitted to graphs, and the graphs, which are converted once."""
    names = Names.of(**{role: options.get(role) for role in ROLES})
    known = read(call, graphs, names)
    return Encoding.fit(known, **{name: value for name, value in options.items() if name not in names.given}), known


class Loader:
    """Batches of graphs of similar size, so that little is padding.

    Each epoch contains each graph once. Which graphs share a batch is random, and so is the order of the batches; both
    depend on `seed` and the epoch alone. Each iteration over the loader is the next epoch; `set_epoch` chooses another.
    Sparse batches have no padding and contain graphs of all sizes.

    Iterating yields tuples: the batch, a `Padded` or a `Sparse` (or two, see `node_channels`), its labels (None without
    labels), and the indices of its graphs in `graphs`. A few batches, mostly of very large graphs, have fewer graphs
    than `batch_size`: see `max_padding`.

    Args:
        graphs: Graphs of any kind that `as_graph` takes.
        labels: One for each graph: a tensor, an array or list of numbers, or a list of anything else, for instance a
            tensor for each graph; batches of such a list have a list of labels.
        batch_size: Maximum number of graphs in a batch.
        encoding: How graphs become channels; fitted to these graphs if None.
        layout: "padded" or "sparse" batches, see `Encoding.encode`.
        node_channels: "diagonal" for channels of nodes on the diagonal, or "separate" for batches of two tensors, over
            pairs of nodes and over nodes; see there.
        shuffle: Whether the order is random. If not, batches are ordered from small graphs to large ones.
        seed: The seed of the random order.
        max_padding: A batch of which a larger fraction would be padding is divided in two where that saves most.
        max_entries: Maximum number of entries (graphs * n * n, or stored entries) of a batch, for graphs so large
            that `batch_size` of them do not fit into memory. A larger graph is a batch of its own.
        cache_bytes: Encoded graphs are cached if all of them take at most this much memory.
        dtype: The dtype of the values.
        device: The device of values and labels.
        **names: `node_attrs`, `edge_attrs`, `node_labels` and `edge_labels`, see `as_graph`; not with `encoding`, which
            has them.

    >>> from bellnet.data import generated
    >>> graphs, labels = generated.leaf_pairs(100)
    >>> loader = Loader(graphs, labels, batch_size=20)
    >>> for batch, targets, indices in loader:
    ...     assert torch.equal(targets, labels[indices])
    >>> len(loader), loader.padding_fraction() < 0.2
    (5, True)
    """

    def __init__(
        self,
        graphs: Iterable[object],
        labels: Tensor | Sequence[object] | None = None,
        *,
        batch_size: int,
        encoding: Encoding | None = None,
        layout: str = "padded",
        node_channels: str = "diagonal",
        shuffle: bool = True,
        seed: int = 0,
        max_padding: float = 0.35,
        max_entries: int | None = None,
        cache_bytes: int = 2**30,
        dtype: torch.dtype = torch.float32,
        device: torch.device | str | None = None,
        **names: Unpack[GivenNames],
    ) -> None:
        for name, value in (("batch_size", batch_size), ("max_entries", max_entries)):
            if (type(value) is not int or value < 1) and not (name == "max_entries" and value is None):
                raise OptionError(f"Loader: {name} must be an integer from 1 up, not {value!r}.")
        if not 0 <= max_padding <= 1:
            raise OptionError(f"Loader: max_padding must be a fraction from 0 to 1, not {max_padding!r}.")
        if layout not in LAYOUTS:
            raise OptionError(f"Loader: layout must be 'padded' or 'sparse', not {layout!r}.")
        given = given_without("Loader", encoding, names)
        self.graphs = read("Loader(graphs)", graphs, given) if encoding is None else encoding.read(graphs)
        if not self.graphs:
            raise DataError("Loader(graphs): there is no graph.\nPass at least one.")
        self.labels = _labels(labels, len(self.graphs))
        self.encoding = Encoding.fit(self.graphs) if encoding is None else encoding
        self.encoding.check_node_channels("Loader", node_channels)
        self.layout, self.node_channels = layout, node_channels
        self.batch_size = batch_size
        self.shuffle = shuffle
        self.seed = seed
        self.max_padding = max_padding
        self.max_entries = max_entries
        self.dtype = dtype
        self.device = device
        self.epoch = 0
        self._sizes = torch.tensor([graph.n for graph in self.graphs])
        self._entries = [graph.n**2 if layout == "padded" else graph.n + graph.n_edges for graph in self.graphs]
        needed = sum(map(self._n_values, self.graphs)) * dtype.itemsize
        self._cache: dict[int, Parts] | None = {} if needed <= cache_bytes else None

    def set_epoch(self, epoch: int) -> None:
        """Chooses the epoch of the next iteration."""
        self.epoch = epoch

    def __len__(self) -> int:
        """The number of batches of the next epoch; epochs may differ by a few."""
        return len(self._batches())

    def __iter__(self) -> Iterator[Batch]:
        batches = self.batches()
        self.epoch += 1
        for indices in batches:
            yield self._encode(indices), self._labels_at(indices), indices

    def batches(self) -> list[Tensor]:
        """The batches of the next epoch: the indices of the graphs of each."""
        return [torch.tensor(batch) for batch in self._batches()]

    def padding_fraction(self) -> float:
        """The fraction of all entries of the next epoch that is padding, from 0 to 1."""
        held = sum(self._held([self._entries[index] for index in batch]) for batch in self._batches())
        return 1 - sum(self._entries) / held if held else 0.0

    def _batches(self) -> list[list[int]]:
        if not self.shuffle:
            return self._divide(self._sizes.argsort(stable=True).tolist(), short=-1)
        generator = torch.Generator().manual_seed(self.seed * 1_000_003 + self.epoch)
        count = len(self.graphs)
        # A random start makes ties random; a random factor lets neighbouring sizes share batches.
        start = torch.randperm(count, generator=generator)
        factor = 1 + MIXING * (2 * torch.rand(count, generator=generator, dtype=torch.float32) - 1)
        order = start if self.layout == "sparse" else start[(self._sizes[start] * factor).argsort(stable=True)]
        n_batches = -(-count // self.batch_size)
        batches = self._divide(order.tolist(), short=int(torch.randint(n_batches, (), generator=generator)))
        return [batches[number] for number in torch.randperm(len(batches), generator=generator).tolist()]

    def _held(self, entries: list[int]) -> int:
        """The number of entries, with padding, of a batch of graphs with these numbers of entries."""
        return sum(entries) if self.layout == "sparse" else len(entries) * max(entries)

    def _divide(self, order: list[int], *, short: int) -> list[list[int]]:
        """Batches of `batch_size` in this order, of which number `short` may be smaller."""
        batches = []
        missing = -len(order) % self.batch_size
        n_batches = (len(order) + missing) // self.batch_size
        end = 0
        for number in range(n_batches):
            begin = end
            end += self.batch_size - (missing if number == short % n_batches else 0)
            batches += self._divide_further(sorted(order[begin:end], key=self._entries.__getitem__))
        return batches

    def _divide_further(self, batch: list[int]) -> list[list[int]]:
        """A batch, sorted by size, in parts within `max_padding` and `max_entries`."""
        entries = [self._entries[index] for index in batch]
        count, held = len(batch), self._held(entries)
        is_large = self.max_entries is not None and held > self.max_entries
        if count == 1 or (sum(entries) >= (1 - self.max_padding) * held and not is_large):
            return [batch]
        # The entries that are saved if the smaller graphs are padded to the largest of them only.
        saved = [smaller * (entries[-1] - entries[smaller - 1]) for smaller in range(1, count)]
        middle = saved.index(max(saved)) + 1 if max(saved) else count // 2
        return [*self._divide_further(batch[:middle]), *self._divide_further(batch[middle:])]

    def _n_values(self, graph: Graph) -> int:
        """The number of values of an encoded graph."""
        pairs = graph.n**2 if self.layout == "padded" else graph.n_edges
        if self.node_channels == "separate":
            return pairs * self.encoding.n_pair_channels + graph.n * self.encoding.n_node_channels
        return (pairs if self.layout == "padded" else pairs + graph.n) * self.encoding.channels

    def _encode(self, indices: Tensor) -> Encoded:
        if self._cache is None:
            return self._encoded(indices.tolist(), self.device)
        for index in indices.tolist():
            if index not in self._cache:
                encoded = self._encoded([index], None)
                parts = encoded if isinstance(encoded, tuple) else (encoded,)
                self._cache[index] = tuple(one.unpack()[0] if isinstance(one, Sparse) else one for one in parts)
        graphs = [self._cache[index] for index in indices.tolist()]
        packed = [_packed(several, self._sizes[indices], self.device) for several in zip(*graphs, strict=True)]
        return cast(Encoded, tuple(packed) if len(packed) > 1 else packed[0])

    def _encoded(self, indices: list[int], device: torch.device | str | None) -> Encoded:
        graphs = [self.graphs[index] for index in indices]
        return self.encoding.encode(
            graphs, layout=self.layout, node_channels=self.node_channels, dtype=self.dtype, device=device
        )

    def _labels_at(self, indices: Tensor) -> Tensor | list[object] | None:
        if self.labels is None:
            return None
        if isinstance(self.labels, Tensor):
            return self.labels[indices].to(self.device)
        return [self.labels[index] for index in indices.tolist()]


def _packed(several: Parts, sizes: Tensor, device: torch.device | str | None) -> Padded | Sparse:
    """Graphs that were encoded one by one, as a batch."""
    if isinstance(several[0], Sparse):
        return Sparse.pack(one for one in several if isinstance(one, Sparse)).to(device or "cpu")
    like = several[0].values
    n_axes = like.ndim - 2
    values = like.new_zeros(len(several), *[int(sizes.max())] * n_axes, like.shape[-1])
    for row, one, size in zip(values, several, sizes.tolist(), strict=True):
        row[(slice(size),) * n_axes] = one.values[0]
    return zero_padded(values.to(device), sizes, ("n",) * n_axes)


def _labels(labels: Tensor | Sequence[object] | None, count: int) -> Tensor | list[object] | None:
    if labels is None:
        return None
    if len(labels) != count:
        raise DataError(
            f"Loader(graphs, labels): expected a label for each of the {count} graphs, got {len(labels)} labels."
        )
    if isinstance(labels, Tensor):
        return labels.cpu()
    if hasattr(labels, "dtype"):
        return torch.as_tensor(labels)
    known = list(labels)
    return torch.tensor(known) if all(isinstance(label, int | float) for label in known) else known


def at_edges(pairs: Padded | Sparse, graphs: Iterable[object]) -> list[Tensor]:
    """The values at the edges of each graph: (edges, channels), in the order of its edges.

    For nodes and pairs of nodes `Padded.unpack("n")` and `Padded.unpack("n n")` do the same.

    Args:
        pairs: Values of shape (graphs, n, n, channels), for instance the output of a network "n n -> n n"; or a sparse
            batch, whose values outside of the support are zero.
        graphs: The graphs of the batch, of any kind that `as_graph` takes.

    >>> path = torch.tensor([[0, 1, 0], [1, 0, 1], [0, 1, 0]])
    >>> at_edges(Padded(torch.arange(9.0).reshape(1, 3, 3, 1), torch.tensor([3])), [path])[0].flatten()
    tensor([1., 3., 5., 7.])
    """
    known = read_by(graphs, Names((), (), (), ()))  # without attributes
    parts: Sequence[Tensor | Sparse] = pairs.unpack() if isinstance(pairs, Sparse) else pairs.unpack("n n")
    sizes = [part.sizes if isinstance(part, Sparse) else len(part) for part in parts]
    if (expected := [graph.n for graph in known]) != sizes:
        raise DataError(
            f"at_edges(pairs, graphs): expected values of {len(known)} graphs with {_some(expected)} nodes, got those "
            f"of {len(sizes)} graphs with {_some(sizes)} nodes.\nPass the graphs of this batch, in its order."
        )
    return [
        values.at(graph.edge_index) if isinstance(values, Sparse) else values[graph.edge_index[0], graph.edge_index[1]]
        for values, graph in zip(parts, known, strict=True)
    ]


def in_order(batches: Iterable[tuple[Sequence[T], Tensor]]) -> list[T]:
    """Results of batches, one for each graph, in the order of the graphs of the loader.

    Args:
        batches: For each batch the results of its graphs and their indices, as a `Loader` yields them.

    >>> in_order([(["c", "a"], torch.tensor([2, 0])), (["b"], torch.tensor([1]))])
    ['a', 'b', 'c']
    """
    found: dict[int, T] = {}
    for results, indices in batches:
        if len(results) != len(indices):
            raise DataError(f"in_order(batches): a batch of {len(indices)} graphs has {len(results)} results.")
        found.update(zip(indices.tolist(), results, strict=True))
    if sorted(found) != list(range(len(found))):
        missing = next(index for index in range(len(found)) if index not in found)
        raise DataError(f"in_order(batches): there is no result of graph {missing}.\nPass all batches of an epoch.")
    return [found[index] for index in range(len(found))]


def _some(sizes: Sequence[object]) -> str:
    return ", ".join(map(str, sizes[:4])) + (", ..." if len(sizes) > 4 else "")
