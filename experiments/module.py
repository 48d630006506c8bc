"""The training of a cell of Table 1 or 2: its data, its loss and its optimiser, for Lightning."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from experiments.config import Cell
from experiments.data import synthetic
from experiments.learner import Learner
from experiments.nets import CellNet, examples, mean_error, unseen


class CellModule(Learner):
    """Trains on the loss of the task in the units of the network; measures the error in those of the paper."""

    net: CellNet
    measured = ("validation",)
    figures = ("loss", "validation")

    def __init__(self, cell: Cell) -> None:
        super().__init__()
        self.cell, self.seed = cell, cell.seed
        self.task = synthetic.get(cell.task)
        self.net = CellNet(cell)
        self.data = dict(zip(("train", "validation"), examples(cell), strict=True))

    def batches(self, part: str, generator: torch.Generator | None = None) -> list[list[int]]:
        count = len(self.data[part][0])
        size = 100 if generator is None else self.cell.batch
        order = torch.arange(count) if generator is None else torch.randperm(count, generator=generator)
        return [order[start : start + size].tolist() for start in range(0, count, size)]

    def examples(self, part: str, indices: list[int]) -> tuple[Any, Tensor]:
        inputs, targets = self.data[part]
        return inputs[indices], targets[indices]

    def loss(self, inputs: Any, targets: Tensor) -> tuple[Tensor, Mapping[str, Tensor]]:
        return self.task.loss(self.net.scaled(inputs), self.net.to_units(targets)), {}

    def measure(self, part: str, inputs: Any, targets: Tensor) -> Mapping[str, Tensor]:
        return {part: self.task.error(self.net(inputs), targets)}

    def score(self, epoch: Mapping[str, Any]) -> tuple[float, ...]:
        error = epoch["validation"]
        return (float("-inf") if error != error else -error,)

    def result(self) -> dict[str, Any]:
        """The error at every number of nodes, and the output for the first test matrix, in four digits."""
        cell = self.cell
        return {
            "errors": {str(n): mean_error(cell, self.net, *unseen(cell, n)) for n in cell.sizes},
            "validation": min(epoch["validation"] for epoch in self.epochs),
            "said": _four_digits(self.net(unseen(cell, cell.n)[0][:1])[0].squeeze(-1).tolist()),
        }

    def configure_optimizers(self) -> Any:
        """AdamW with a cosine schedule; weights decay, biases do not."""
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
        """Lets the decay fall with the square of the learning rate, so that it vanishes first."""
        weights = optimizer.param_groups[0]
        weights["weight_decay"] = self.cell.decay * (weights["lr"] / self.cell.rate) ** 2


def _four_digits(values: Any) -> Any:
    return [_four_digits(value) for value in values] if isinstance(values, list) else float(f"{values:.4g}")
