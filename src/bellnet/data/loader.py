"""Batches of graphs of about the same size, in an order that depends on a seed and an epoch alone."""

from collections.abc import Iterable, Iterator, Sequence

import torch
from torch import Tensor

from bellnet.data.convert import as_graphs
from bellnet.data.encode import Encoding
from bellnet.errors import DataError, OptionError
from bellnet.tensors import Padded

Batch = tuple[Padded, Tensor | list[object] | None, Tensor]

MIXING = 0.05
"""By which part of its size a graph may be taken for larger or smaller than it is, so that it meets others."""


class Loader:
    """Batches of graphs, bucketed by size so that padding wastes little.

    Every epoch holds every graph once. Graphs of about the same size come together; which ones is drawn anew in every
    epoch, and so is the order of the batches. Each time the loader is iterated, the next epoch begins; `set_epoch`
    goes to any other. The order depends on `seed` and the epoch alone.

    Iterating gives tuples: the `Padded` batch, its labels (None without labels), and the places of its graphs in
    `graphs`. A few batches, mostly of very large graphs, have fewer graphs than `batch_size`: see `max_waste`.

    Args:
        graphs: Graphs of any kind that `as_graph` takes.
        labels: One for each graph: a tensor, an array or list of numbers, or a list of anything else, for instance a
            tensor for each graph; of such a list a batch gets a list.
        batch_size: The largest number of graphs in a batch.
        encoding: How graphs become channels; fitted to these graphs if None.
        shuffle: Whether the order is random. If not, batches run from small graphs to large ones.
        seed: Where the random numbers come from.
        max_waste: A batch of which a larger part would be padding is cut in two where that saves most.
        max_entries: The largest number of entries (graphs * n * n) of a batch, for graphs so large that `batch_size`
            of them do not fit into memory. A graph that is larger by itself comes alone.
        cache_bytes: Encoded graphs are kept if all of them take at most so much memory.
        dtype: The type of the values.
        device: Where the values and labels are.

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
        shuffle: bool = True,
        seed: int = 0,
        max_waste: float = 0.35,
        max_entries: int | None = None,
        cache_bytes: int = 2**30,
        dtype: torch.dtype = torch.float32,
        device: torch.device | str | None = None,
    ) -> None:
        for name, value in (("batch_size", batch_size), ("max_entries", max_entries)):
            if (type(value) is not int or value < 1) and not (name == "max_entries" and value is None):
                raise OptionError(f"Loader: {name} must be a whole number from 1 up, not {value!r}.")
        if not 0 <= max_waste <= 1:
            raise OptionError(f"Loader: max_waste must be a part, from 0 to 1, not {max_waste!r}.")
        self.graphs = as_graphs(graphs)
        if not self.graphs:
            raise DataError("Loader(graphs): there is no graph.\nGive at least one.")
        self.labels = _labels(labels, len(self.graphs))
        self.encoding = Encoding.fit(self.graphs) if encoding is None else encoding
        self.batch_size = batch_size
        self.shuffle = shuffle
        self.seed = seed
        self.max_waste = max_waste
        self.max_entries = max_entries
        self.dtype = dtype
        self.device = device
        self.epoch = 0
        self._sizes = torch.tensor([graph.n for graph in self.graphs])
        needed = int(self._sizes.square().sum()) * self.encoding.channels * dtype.itemsize
        self._kept: list[Tensor | None] | None = [None] * len(self.graphs) if needed <= cache_bytes else None

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
        factor = 1 + MIXING * (2 * torch.rand(count, generator=generator) - 1)
        by_size = start[(self._sizes[start] * factor).argsort(stable=True)]
        n_batches = -(-count // self.batch_size)
        batches = self._cut(by_size.tolist(), short=int(torch.randint(n_batches, (), generator=generator)))
        return [batches[place] for place in torch.randperm(len(batches), generator=generator).tolist()]

    def waste(self) -> float:
        """Which part of all entries of the epoch that comes next is padding, from 0 to 1."""
        padded = sum(len(batch) * max(self.graphs[place].n for place in batch) ** 2 for batch in self._batches())
        return 1 - int(self._sizes.square().sum()) / padded if padded else 0.0

    def _cut(self, order: list[int], *, short: int) -> list[list[int]]:
        """Cut an order into batches of `batch_size`, of which the one at place `short` may be smaller."""
        batches = []
        missing = -len(order) % self.batch_size
        n_batches = (len(order) + missing) // self.batch_size
        end = 0
        for place in range(n_batches):
            begin = end
            end += self.batch_size - (missing if place == short % n_batches else 0)
            batches += self._cut_further(sorted(order[begin:end], key=lambda place: self.graphs[place].n))
        return batches

    def _cut_further(self, batch: list[int]) -> list[list[int]]:
        """Cut a batch, sorted by size, into parts that are neither too wasteful nor too large."""
        areas = [self.graphs[place].n ** 2 for place in batch]
        count, entries = len(batch), len(batch) * areas[-1]
        is_large = self.max_entries is not None and entries > self.max_entries
        if count == 1 or (sum(areas) >= (1 - self.max_waste) * entries and not is_large):
            return [batch]
        # How much less the smaller ones need when they are padded to the largest of them only.
        saved = [smaller * (areas[-1] - areas[smaller - 1]) for smaller in range(1, count)]
        middle = saved.index(max(saved)) + 1 if max(saved) else count // 2
        return [*self._cut_further(batch[:middle]), *self._cut_further(batch[middle:])]

    def _encode(self, places: Tensor) -> Padded:
        if self._kept is None:
            graphs = [self.graphs[place] for place in places.tolist()]
            return self.encoding.encode(graphs, dtype=self.dtype, device=self.device)
        longest = int(self._sizes[places].max())
        values = torch.zeros(len(places), longest, longest, self.encoding.channels, dtype=self.dtype)
        for row, place in zip(values, places.tolist(), strict=True):
            kept = self._kept[place]
            if kept is None:
                kept = self._kept[place] = self.encoding.encode([self.graphs[place]], dtype=self.dtype).values[0]
            row[: len(kept), : len(kept)] = kept
        return Padded.clean(values.to(self.device), self._sizes[places], ("n", "n"))

    def _labels_at(self, places: Tensor) -> Tensor | list[object] | None:
        if self.labels is None:
            return None
        if isinstance(self.labels, Tensor):
            return self.labels[places].to(self.device)
        return [self.labels[place] for place in places.tolist()]


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
