"""Batches of graphs of about the same size, in an order that depends on a seed and an epoch alone."""

from collections.abc import Iterable, Iterator, Sequence
from typing import cast

import torch
from torch import Tensor

from bellnet.data.convert import read
from bellnet.data.encode import LAYOUTS, Encoded, Encoding
from bellnet.data.graph import Graph
from bellnet.data.kinds import Given, Names
from bellnet.errors import DataError, OptionError
from bellnet.tensors import Padded, Sparse
from bellnet.tensors.padded import zero_padded

Batch = tuple[Encoded, Tensor | list[object] | None, Tensor]

Parts = tuple[Padded | Sparse, ...]
"""Of one graph: what is said of pairs of nodes and, if that stands apart, what is said of nodes."""

MIXING = 0.05
"""By which part of its size a graph may be taken for larger or smaller than it is, so that it meets others."""


class Loader:
    """Batches of graphs, bucketed by size so that padding wastes little.

    Every epoch holds every graph once. Graphs of about the same size come together; which ones is drawn anew in every
    epoch, and so is the order of the batches. Each time the loader is iterated, the next epoch begins; `set_epoch`
    goes to any other. The order depends on `seed` and the epoch alone. Sparse batches need no padding: there graphs of
    all sizes come together.

    Iterating gives tuples: the batch, a `Padded` or a `Sparse` (or two, see `node_channels`), its labels (None without
    labels), and the places of its graphs in `graphs`. A few batches, mostly of very large graphs, have fewer graphs
    than `batch_size`: see `max_padding`.

    Args:
        graphs: Graphs of any kind that `as_graph` takes.
        labels: One for each graph: a tensor, an array or list of numbers, or a list of anything else, for instance a
            tensor for each graph; of such a list a batch gets a list.
        batch_size: The largest number of graphs in a batch.
        encoding: How graphs become channels; fitted to these graphs if None.
        layout: What a batch is: "padded" or "sparse", see `Encoding.encode`.
        node_channels: Where the channels of nodes are: on the "diagonal", or "separate", so that a batch is a tuple of
            two tensors, over pairs of nodes and over nodes; see there.
        shuffle: Whether the order is random. If not, batches run from small graphs to large ones.
        seed: Where the random numbers come from.
        max_padding: A batch of which a larger part would be padding is cut in two where that saves most.
        max_entries: The largest number of entries (graphs * n * n, or listed tuples) of a batch, for graphs so large
            that `batch_size` of them do not fit into memory. A graph that is larger by itself comes alone.
        cache_bytes: Encoded graphs are kept if all of them take at most so much memory.
        dtype: The type of the values.
        device: Where the values and labels are.
        node_attrs: The name or names of the attributes that are node features, see `as_graph`; not with `encoding`,
            which has them.
        edge_attrs: Likewise of the edge features.
        node_labels: Likewise of the node labels.
        edge_labels: Likewise of the edge labels.

    >>> from bellnet.data import generated
    >>> graphs, labels = generated.leaf_pairs(100)
    >>> loader = Loader(graphs, labels, batch_size=20)
    >>> for batch, answers, places in loader:
    ...     assert torch.equal(answers, labels[places])
    >>> len(loader), loader.waste() < 0.2
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
        node_attrs: Given = None,
        edge_attrs: Given = None,
        node_labels: Given = None,
        edge_labels: Given = None,
    ) -> None:
        for name, value in (("batch_size", batch_size), ("max_entries", max_entries)):
            if (type(value) is not int or value < 1) and not (name == "max_entries" and value is None):
                raise OptionError(f"Loader: {name} must be a whole number from 1 up, not {value!r}.")
        if not 0 <= max_padding <= 1:
            raise OptionError(f"Loader: max_padding must be a part, from 0 to 1, not {max_padding!r}.")
        if layout not in LAYOUTS:
            raise OptionError(f"Loader: layout must be 'padded' or 'sparse', not {layout!r}.")
        names = Names.of(node_attrs=node_attrs, edge_attrs=edge_attrs, node_labels=node_labels, edge_labels=edge_labels)
        if encoding is not None and names.given:
            raise OptionError(f"Loader: encoding says what is read; leave out {', '.join(names.given)}.")
        self.graphs = read("Loader(graphs)", graphs, names) if encoding is None else encoding.read(graphs)
        if not self.graphs:
            raise DataError("Loader(graphs): there is no graph.\nGive at least one.")
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
        needed = sum(map(self._numbers, self.graphs)) * dtype.itemsize
        self._kept: list[Parts | None] | None = [None] * len(self.graphs) if needed <= cache_bytes else None

    def set_epoch(self, epoch: int) -> None:
        """Go to an epoch: the next iteration gives its batches."""
        self.epoch = epoch

    def __len__(self) -> int:
        """The number of batches of the epoch that comes next; one epoch may have a few more than another."""
        return len(self.batches())

    def __iter__(self) -> Iterator[Batch]:
        batches = self.batches()
        self.epoch += 1
        for places in batches:
            yield self._encode(places), self._labels_at(places), places

    def batches(self) -> list[Tensor]:
        """The batches of the epoch that comes next: of each the places of its graphs."""
        return [torch.tensor(batch) for batch in self._batches()]

    def _batches(self) -> list[list[int]]:
        if not self.shuffle:
            return self._cut(self._sizes.argsort(stable=True).tolist(), short=-1)
        generator = torch.Generator().manual_seed(self.seed * 1_000_003 + self.epoch)
        count = len(self.graphs)
        # A random start makes ties random; a random factor moves the borders and lets neighbouring sizes meet.
        start = torch.randperm(count, generator=generator)
        factor = 1 + MIXING * (2 * torch.rand(count, generator=generator, dtype=torch.float32) - 1)
        order = start if self.layout == "sparse" else start[(self._sizes[start] * factor).argsort(stable=True)]
        n_batches = -(-count // self.batch_size)
        batches = self._cut(order.tolist(), short=int(torch.randint(n_batches, (), generator=generator)))
        return [batches[place] for place in torch.randperm(len(batches), generator=generator).tolist()]

    def waste(self) -> float:
        """Which part of all entries of the epoch that comes next is padding, from 0 to 1."""
        held = sum(self._held([self._entries[place] for place in batch]) for batch in self._batches())
        return 1 - sum(self._entries) / held if held else 0.0

    def _held(self, entries: list[int]) -> int:
        """How many entries a batch of graphs with so many entries each has."""
        return sum(entries) if self.layout == "sparse" else len(entries) * max(entries)

    def _cut(self, order: list[int], *, short: int) -> list[list[int]]:
        """Cut an order into batches of `batch_size`, of which the one at place `short` may be smaller."""
        batches = []
        missing = -len(order) % self.batch_size
        n_batches = (len(order) + missing) // self.batch_size
        end = 0
        for place in range(n_batches):
            begin = end
            end += self.batch_size - (missing if place == short % n_batches else 0)
            batches += self._cut_further(sorted(order[begin:end], key=lambda place: self._entries[place]))
        return batches

    def _cut_further(self, batch: list[int]) -> list[list[int]]:
        """Cut a batch, sorted by size, into parts that are neither too wasteful nor too large."""
        entries = [self._entries[place] for place in batch]
        count, held = len(batch), self._held(entries)
        is_large = self.max_entries is not None and held > self.max_entries
        if count == 1 or (sum(entries) >= (1 - self.max_padding) * held and not is_large):
            return [batch]
        # How much less the smaller ones need when they are padded to the largest of them only.
        saved = [smaller * (entries[-1] - entries[smaller - 1]) for smaller in range(1, count)]
        middle = saved.index(max(saved)) + 1 if max(saved) else count // 2
        return [*self._cut_further(batch[:middle]), *self._cut_further(batch[middle:])]

    def _numbers(self, graph: Graph) -> int:
        """How many numbers an encoded graph has."""
        pairs = graph.n**2 if self.layout == "padded" else graph.n_edges
        if self.node_channels == "separate":
            return pairs * self.encoding.n_of_pairs + graph.n * self.encoding.n_of_nodes
        return (pairs if self.layout == "padded" else pairs + graph.n) * self.encoding.channels

    def _encode(self, places: Tensor) -> Encoded:
        if self._kept is None:
            return self._encoded([self.graphs[place] for place in places.tolist()], device=self.device)
        kept = [self._encoded_once(self._kept, place) for place in places.tolist()]
        parts = [_packed(several, self._sizes[places], self.device) for several in zip(*kept, strict=True)]
        return cast(Encoded, tuple(parts) if len(parts) > 1 else parts[0])

    def _encoded(self, graphs: list[Graph], device: torch.device | str | None) -> Encoded:
        return self.encoding.encode(
            graphs, layout=self.layout, node_channels=self.node_channels, dtype=self.dtype, device=device
        )

    def _encoded_once(self, kept: list[Parts | None], place: int) -> Parts:
        """A graph by itself, encoded once: its tensor, or two of them."""
        found = kept[place]
        if found is None:
            encoded = self._encoded([self.graphs[place]], device=None)
            parts = encoded if isinstance(encoded, tuple) else (encoded,)
            found = kept[place] = tuple(one.unpack()[0] if isinstance(one, Sparse) else one for one in parts)
        return found

    def _labels_at(self, places: Tensor) -> Tensor | list[object] | None:
        if self.labels is None:
            return None
        if isinstance(self.labels, Tensor):
            return self.labels[places].to(self.device)
        return [self.labels[place] for place in places.tolist()]


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
            f"Loader(graphs, labels): expected a label for each of the {count} graphs, came {len(labels)} labels."
        )
    if isinstance(labels, Tensor):
        return labels.cpu()
    if hasattr(labels, "dtype"):
        return torch.as_tensor(labels)
    known = list(labels)
    return torch.tensor(known) if all(isinstance(label, int | float) for label in known) else known
