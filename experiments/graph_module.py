"""Graphs, classified: the module, its optimiser, batches of equal graphs in an order that a restart does not change.

This file needs lightning and torchmetrics, which take seconds to import; a `GraphCell` imports it when it runs.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, Dataset
from torchmetrics import MeanMetric

from bellnet import InvariantNet, Sparse
from experiments.graph_cells import GraphCell
from experiments.graph_data import EncodedSet, Parts, equal_batches, load_set, parts_of
from experiments.graph_net import KindsBatch, graph_net, said_of
from experiments.learner import Learner, Loaders, Shuffled
from experiments.workers import this_worker

Batch = tuple[Tensor | Sparse | KindsBatch, Tensor]


class GraphModule(Learner):
    """Learns a cell of Table 3: cross-entropy summed over a batch, accuracy after every epoch.

    With the protocol "fixed" the accuracy is that on the test graphs, which has no influence on anything; with "nested"
    that on the graphs kept aside, and the test graphs are looked at once, in the end.
    """

    net: InvariantNet

    def __init__(self, cell: GraphCell) -> None:
        super().__init__()
        self.cell = cell
        self.graphs: EncodedSet = load_set(
            cell.name, cell.data, max_unpacked=cell.max_unpacked, max_ratio=cell.max_ratio
        )
        self.parts: Parts = parts_of(cell, self.graphs)
        self.net = graph_net(cell, self.graphs.n_channels, self.graphs.n_classes)
        self.checked = "validation" if cell.protocol == "nested" else "test"
        self.monitor = ("validation", "max") if cell.protocol == "nested" else None
        self.train_accuracy = MeanMetric()
        self.accuracy = MeanMetric()
        self.loss = MeanMetric(nan_strategy="disable")

    def loaders(self, *, epoch: int) -> Loaders:
        """Batches of the graphs to learn from, and of those that are measured after every epoch."""
        cell, sizes = self.cell, self.graphs.sizes
        batches_of = partial(equal_batches, sizes, self.parts.train, cell.batch)
        shuffled = Shuffled(batches_of, seed=cell.seed, epoch=epoch)
        measured = self.parts.validation if cell.protocol == "nested" else self.parts.test
        in_order = [this_worker().share(some) for some in equal_batches(sizes, measured, cell.batch)]
        batches = Batches(self.graphs, cell.layout)
        # With batch_size=None the sampler's items go to the dataset as they are: a list of places gives a whole batch.
        return (
            DataLoader(batches, sampler=shuffled, batch_size=None),
            DataLoader(batches, sampler=in_order, batch_size=None),
        )

    def training_step(self, batch: Batch, number: int) -> Tensor:
        """The loss of a batch."""
        graphs, labels = batch
        if not len(labels):
            return self.nothing()
        said = said_of(self.net, graphs)
        loss = cross_entropy(said, labels, reduction="sum")
        self.count_loss(loss.detach() / len(labels), len(labels))
        self.train_accuracy.update((said.argmax(1) == labels).float())
        return loss * this_worker().size  # its mean over the workers is the sum over all graphs

    def validation_step(self, batch: Batch, number: int) -> None:
        """Adds a batch to the accuracy and the loss of what is measured."""
        graphs, labels = batch
        if not len(labels):
            return
        said = said_of(self.net, graphs)
        self.accuracy.update((said.argmax(1) == labels).float())
        self.loss.update(cross_entropy(said, labels, reduction="none"))

    def on_validation_epoch_end(self) -> None:
        """Names the accuracy, so that the best epoch can be kept."""
        self.log(self.checked, self.accuracy)
        self.log(f"{self.checked}_loss", self.loss)

    def on_train_epoch_start(self) -> None:
        """Sets the learning rate, which depends on the epoch alone, so that a restart need not know of it."""
        super().on_train_epoch_start()
        self.train_accuracy.reset()
        for group in self.trainer.optimizers[0].param_groups:
            group["lr"] = self.cell.rate_in(self.current_epoch)

    def configure_optimizers(self) -> torch.optim.Optimizer:
        """Adam, without weight decay."""
        # Fused, since graphs are small: a step on half a million weights would be a sixth of the time.
        return torch.optim.Adam(self.net.parameters(), lr=self.cell.rate, fused=True)

    def transfer_batch_to_device(self, batch: Batch, device: torch.device, dataloader_idx: int) -> Batch:
        """A batch as a network on that device takes it."""
        graphs, labels = batch
        return graphs.to(device), labels.to(device)

    def figures(self) -> dict[str, float]:
        """The accuracy while learning, and accuracy and loss of what is measured."""
        measured = self.trainer.callback_metrics
        return {
            "train": round(float(self.train_accuracy.compute()), 6),
            self.checked: round(float(measured[self.checked]), 6),
            f"{self.checked}_loss": float(measured[f"{self.checked}_loss"]),
        }

    def result(self, epochs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """The accuracy on the test graphs, in the epoch that counts."""
        nested = self.cell.protocol == "nested"
        return {
            "accuracy": self._hits() / len(self.parts.test),
            "validation": max(epoch["validation"] for epoch in epochs) if nested else None,
            "graphs": {name: len(getattr(self.parts, name)) for name in ("train", "validation", "test")},
            "nodes": sum(self.graphs.sizes),
            "in_channels": self.graphs.n_channels,
        }

    @torch.no_grad()
    def _hits(self) -> int:
        found = 0
        for places in equal_batches(self.graphs.sizes, self.parts.test, self.cell.batch):
            graphs, labels = self.graphs.batch(places, self.cell.layout)
            found += int((said_of(self.net, graphs).argmax(1) == labels).sum())
        return found


class Batches(Dataset[Batch]):
    """The batches of a set: an item is what a list of places gives. Of no places there is nothing but no labels."""

    def __init__(self, graphs: EncodedSet, layout: str) -> None:
        self.graphs, self.layout = graphs, layout

    def __getitem__(self, places: list[int]) -> Batch:
        none = self.graphs.labels[:0]
        return self.graphs.batch(places, self.layout) if places else (none, none)
