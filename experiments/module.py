"""Functions of matrices, learned: the module, its optimiser, its data in an order that a restart does not change.

This file needs lightning and torchmetrics, which take seconds to import; a `Cell` imports it when it runs.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import DataLoader, TensorDataset
from torchmetrics import MeanMetric

from experiments.config import Cell
from experiments.data import synthetic
from experiments.learner import Learner, Loaders, Shuffled
from experiments.nets import CellNet, examples, mean_error, unseen
from experiments.workers import this_worker

Batch = tuple[Tensor, Tensor]


class CellModule(Learner):
    """Learns a cell: the loss of the task in the units of the network, the error in those of the paper."""

    net: CellNet
    monitor = ("validation", "min")

    def __init__(self, cell: Cell) -> None:
        super().__init__()
        self.cell = cell
        self.task = synthetic.get(cell.task)
        self.net = CellNet(cell)
        self.validation_error = MeanMetric()

    def loaders(self, *, epoch: int) -> Loaders:
        """Batches of the examples to learn from and of those for validation."""
        return loaders(self.cell, *examples(self.cell), epoch=epoch)

    def figures(self) -> dict[str, float]:
        """The error on the validation examples."""
        return {"validation": float(self.trainer.callback_metrics["validation"])}

    def result(self, epochs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """The error at every number of nodes, and what the network says of the first test matrix."""
        cell = self.cell
        return {
            "errors": {str(n): mean_error(cell, self.net, *unseen(cell, n)) for n in cell.sizes},
            "validation": min(epoch["validation"] for epoch in epochs),
            "said": _said_of_first(cell, self.net),
        }

    def training_step(self, batch: Batch, number: int) -> Tensor:
        """The loss of a batch."""
        inputs, targets = batch
        if not len(inputs):
            return self.joint(self.nothing(), 0)
        loss = self.task.loss(self.net.scaled(inputs), self.net.to_units(targets))
        self.count_loss(loss.detach(), len(inputs))
        return self.joint(loss, len(inputs))

    def validation_step(self, batch: Batch, number: int) -> None:
        """Adds a batch to the error."""
        inputs, targets = batch
        if len(inputs):
            self.validation_error.update(self.task.error(self.net(inputs), targets), len(inputs))

    def on_validation_epoch_end(self) -> None:
        """Names the error, so that the best epoch can be kept."""
        self.log("validation", self.validation_error)

    def configure_optimizers(self) -> Any:
        """Adam, a rate that falls with every step, and weights (not biases) that decay."""
        cell = self.cell
        named = list(self.net.named_parameters())
        groups: list[dict[str, Any]] = [
            {"params": [value for name, value in named if not name.endswith("bias")]},
            {"params": [value for name, value in named if name.endswith("bias")], "weight_decay": 0.0},
        ]
        optimizer = torch.optim.AdamW(groups, lr=cell.rate, weight_decay=cell.decay)
        steps = cell.epochs * -(-(cell.train - cell.validation) // cell.batch)
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps, cell.rate * cell.last_rate)
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": schedule, "interval": "step"}}

    def on_before_optimizer_step(self, optimizer: torch.optim.Optimizer) -> None:
        """Lets the decay fall faster than the rate, so that in the end nothing pulls the weights away."""
        weights = optimizer.param_groups[0]
        weights["weight_decay"] = self.cell.decay * (weights["lr"] / self.cell.rate) ** 2


def loaders(cell: Cell, train: Batch, validation: Batch, *, epoch: int) -> Loaders:
    """Batches to learn from, shuffled, beginning with that epoch, and batches to validate with, in order."""
    learned, checked = TensorDataset(*train), TensorDataset(*validation)
    share = this_worker().share
    in_order = [share(range(start, min(start + 100, len(checked)))) for start in range(0, len(checked), 100)]

    def shuffled(generator: torch.Generator) -> list[list[int]]:
        order: list[int] = torch.randperm(len(learned), generator=generator).tolist()
        return [order[start : start + cell.batch] for start in range(0, len(order), cell.batch)]

    # With batch_size=None the sampler's items go to the dataset as they are: a list of places gives a whole batch.
    return (
        DataLoader(learned, sampler=Shuffled(shuffled, seed=cell.seed, epoch=epoch), batch_size=None),
        DataLoader(checked, sampler=in_order, batch_size=None),
    )


@torch.no_grad()
def _said_of_first(cell: Cell, net: CellNet) -> Any:
    """What the network says of the first test matrix, in four digits: enough for a picture, small enough to keep."""
    return _four_digits(net(unseen(cell, cell.n)[0][:1])[0].squeeze(-1).tolist())


def _four_digits(values: Any) -> Any:
    return [_four_digits(value) for value in values] if isinstance(values, list) else float(f"{values:.4g}")
