"""Batches of graphs of about the same size, in an order that depends on a seed and an epoch alone."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

import torch
from torch import Tensor

from bellnet.data.convert import as_graphs
from bellnet.data.encode import Encoding
from bellnet.errors import DataError, OptionError
from bellnet.tensors import Padded

Batch = tuple[Padded, Tensor | list[object] | None, Tensor]
MIXING = 0.1
"""By which part of its size a graph may be taken for larger or smaller than it is, so that batches differ."""


class Loader:
    """Batches of graphs, bucketed by size so that padding wastes little.

    Every epoch holds every graph once. Graphs of about the same size come together, which ones is drawn anew in every
    epoch, and so is the order of the batches. Each time the loader is iterated, the next epoch begins; `set_epoch`
    goes to any other. An order depends on `seed` and the epoch alone.

    Args:
        graphs: Graphs of any kind that `as_graph` takes.
        labels: One for each graph: a tensor, a list of numbers, or a list of anything else, such as one tensor for
            each graph.
        batch_size: The largest number of graphs in a batch.
        encoding: How graphs become channels; fitted to these graphs if None.
        shuffle: Whether the order is random. If not, batches run from small graphs to large ones.
        seed: Where the random numbers come from.
        max_entries: The largest number of padded entries (graphs * n * n) of a batch, for graphs so large that
            `batch_size` of them do not fit into memory; a graph that is larger by itself comes alone.
        cache_bytes: Encoded graphs are kept if all of them take at most this much.
        dtype: The type of the values.
        device: Where the values and labels are.

    Iterating gives tuples: the `Padded` batch, its labels (None without labels), the places of its graphs in `graphs`.

    >>> from bellnet.data import generated
    >>> graphs, labels = generated.leaf_pairs(100)
    >>> loader = Loader(graphs, labels, batch_size=20)
    >>> for batch, answers, places in loader:
    ...     assert torch.equal(answers, labels[places])
    >>> len(loader), loader.waste() < 0.25
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
        max_entries: int | None = None,
        cache_bytes: int = 2**29,
        dtype: torch.dtype = torch.float32,
        device: torch.device | str | None = None,
    ) -> None:
        if type(batch_size) is not int or batch_size < 1:
            raise OptionError(f"Loader: batch_size must be a whole number from 1 up, not {batch_size!r}.")
        if max_entries is not None and (type(max_entries) is not int or max_entries < 1):
            raise OptionError(f"Loader: max_entries must be a whole number from 1 up, or None, not {max_entries!r}.")
        self.graphs = as_graphs(graphs)
        if not self.graphs:
            raise DataError("Loader(graphs): there is no graph.")
        self.labels = _labels(labels, len(self.graphs))
        self.batch_size = batch_size
        self.encoding = Encoding.fit(self.graphs) if encoding is None else encoding
        self.shuffle = shuffle
        self.seed = seed
        self.max_entries = max_entries
        self.dtype = dtype
        self.device = device
        self.epoch = 0
        self._sizes = torch.tensor([graph.n for graph in self.graphs])
        bytes_needed = int(self._sizes.square().sum()) * self.encoding.channels * dtype.itemsize
        self._kept: list[Tensor | None] | None = [None] * len(self.graphs) if bytes_needed <= cache_bytes else None

    def set_epoch(self, epoch: int) -> None:
        """Go to an epoch: the next iteration gives its batches."""
        self.epoch = epoch

    def __len__(self) -> int:
        return len(self.batches())

    def __iter__(self) -> Iterator[Batch]:
        batches = self.batches()
        self.epoch += 1
        for places in batches:
            yield self._encode(places), self._labels_at(places), places

    def batches(self) -> list[Tensor]:
        """The batches of the epoch that comes next: for each the places of its graphs."""
        generator = torch.Generator().manual_seed(self.seed * 1_000_003 + self.epoch)
        count = len(self.graphs)
        if not self.shuffle:
            return self._cut(self._sizes.argsort(stable=True), short=-1)
        # A random start makes ties random, a random factor makes graphs of neighbouring sizes change places.
        start = torch.randperm(count, generator=generator)
        factor = 1 + MIXING * (2 * torch.rand(count, generator=generator) - 1)
        by_size = start[(self._sizes[start] * factor).argsort(stable=True)]
        n_batches = -(-count // self.batch_size)
        batches = self._cut(by_size, short=int(torch.randint(n_batches, (), generator=generator)))
        return [batches[place] for place in torch.randperm(len(batches), generator=generator)]

    def waste(self) -> float:
        """Which part of the entries of the batches of the coming epoch is padding, from 0 to 1."""
        batches = self.batches()
        padded = sum(len(places) * int(self._sizes[places].max()) ** 2 for places in batches)
        return 1 - int(self._sizes.square().sum()) / padded if padded else 0.0

    def _cut(self, order: Tensor, *, short: int) -> list[Tensor]:
        """Cut an order into batches; the one that is not full, if any, has the place `short`."""
        n_batches = -(-len(order) // self.batch_size)
        lengths = [self.batch_size] * n_batches
        lengths[short] -= n_batches * self.batch_size - len(order)
        ends = torch.tensor([0, *lengths]).cumsum(0).tolist()
        batches = [order[start:end] for start, end in pairwise(ends)]
        return batches if self.max_entries is None else [part for batch in batches for part in self._fit(batch)]

    def _fit(self, batch: Tensor) -> list[Tensor]:
        """Cut a batch further until every part is small enough."""
        limit = self.max_entries or 0
        if len(batch) == 1 or len(batch) * int(self._sizes[batch].max()) ** 2 <= limit:
            return [batch]
        half = len(batch) // 2
        return [*self._fit(batch[:half]), *self._fit(batch[half:])]

    def _encode(self, places: Tensor) -> Padded:
        return self.encoding.encode([self.graphs[place] for place in places], dtype=self.dtype, device=self.device)

    def _labels_at(self, places: Tensor) -> Tensor | list[object] | None:
        if self.labels is None:
            return None
        if isinstance(self.labels, Tensor):
            return self.labels[places].to(self.device)
        return [self.labels[place] for place in places]


def _labels(labels: Tensor | Sequence[object] | None, count: int) -> Tensor | list[object] | None:
    if labels is None:
        return None
    if len(labels) != count:
        raise DataError(f"Loader(graphs, labels): there are {count} graphs, but {len(labels)} labels.")
    if isinstance(labels, Tensor):
        return labels
    known = list(labels)
    if all(isinstance(label, int | float) for label in known):
        return torch.tensor(known)
    return torch.as_tensor(labels) if hasattr(labels, "dtype") and hasattr(labels, "shape") else known
