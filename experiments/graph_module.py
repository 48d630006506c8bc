"""The training of a cell of Table 3: its data, its loss and its optimiser, for Lightning."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from bellnet import InvariantNet
from experiments.graph_cells import GraphCell
from experiments.graph_data import EncodedSet, Parts, equal_batches, load_set, parts_of
from experiments.graph_net import graph_net, said_of
from experiments.learner import Learner


class GraphModule(Learner):
    """Trains on the cross-entropy, summed over a batch; measures the accuracy after every epoch.

    With the protocol "fixed" that on the test graphs, which influences nothing; with "nested" that on the validation
    set, and the test graphs are classified once, at the end.
    """

    net: InvariantNet
    sums_loss = True

    def __init__(self, cell: GraphCell) -> None:
        super().__init__()
        self.cell, self.seed = cell, cell.seed
        self.graphs: EncodedSet = load_set(
            cell.name, cell.data, max_unpacked=cell.max_unpacked, max_ratio=cell.max_ratio
        )
        self.parts: Parts = parts_of(cell, self.graphs)
        self.net = graph_net(cell, self.graphs.n_channels, self.graphs.n_classes)
        self.measured = ("validation" if cell.protocol == "nested" else "test",)
        self.figures = ("loss", "train", *(name for part in self.measured for name in (part, f"{part}_loss")))

    def batches(self, part: str, generator: torch.Generator | None = None) -> list[list[int]]:
        return equal_batches(self.graphs.sizes, getattr(self.parts, part), self.cell.batch, generator)

    def examples(self, part: str, indices: list[int]) -> tuple[Any, Tensor]:
        none = self.graphs.labels[:0]
        return self.graphs.batch(indices, self.cell.layout) if indices else (none, none)

    def loss(self, inputs: Any, targets: Tensor) -> tuple[Tensor, Mapping[str, Tensor]]:
        logits = said_of(self.net, inputs)
        return cross_entropy(logits, targets, reduction="sum"), {"train": (logits.argmax(1) == targets).float()}

    def measure(self, part: str, inputs: Any, targets: Tensor) -> Mapping[str, Tensor]:
        logits = said_of(self.net, inputs)
        losses = cross_entropy(logits, targets, reduction="none")
        return {part: (logits.argmax(1) == targets).float(), f"{part}_loss": losses}

    def score(self, epoch: Mapping[str, Any]) -> tuple[float, ...] | None:
        return (epoch["validation"],) if self.cell.protocol == "nested" else None

    def on_train_epoch_start(self) -> None:
        """Sets the learning rate of the epoch."""
        super().on_train_epoch_start()
        for group in self.trainer.optimizers[0].param_groups:
            group["lr"] = self.cell.rate_in(len(self.epochs))

    def configure_optimizers(self) -> torch.optim.Optimizer:
        # Fused, since graphs are small: a step on half a million weights would be a sixth of the time.
        return torch.optim.Adam(self.net.parameters(), lr=self.cell.rate, fused=True)

    def transfer_batch_to_device(self, batch: Any, device: torch.device, dataloader_idx: int) -> Any:
        return (batch[0], *(value.to(device) for value in batch[1:]))

    def result(self) -> dict[str, Any]:
        """The accuracy on the test graphs."""
        hits = 0
        for batch in self.batches("test"):
            inputs, targets = self.examples("test", batch)
            hits += int((said_of(self.net, inputs).argmax(1) == targets).sum())
        validation = max(epoch["validation"] for epoch in self.epochs) if self.best is not None else None
        return {
            "accuracy": hits / len(self.parts.test),
            "validation": validation,
            "graphs": {name: len(getattr(self.parts, name)) for name in ("train", "validation", "test")},
            "nodes": sum(self.graphs.sizes),
            "in_channels": self.graphs.n_channels,
        }
