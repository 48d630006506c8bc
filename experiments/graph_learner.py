"""The training of a network of Table 3 by Lightning."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from experiments.learner import Learner
from experiments.methods.base import Method, NetworkMethod, Options, Task


class GraphLearner(Learner):
    """Trains the network of a method, and measures it on the validation set, if there is one, and the test graphs.

    The accuracy on the test graphs is recorded after every epoch, and selects nothing.
    """

    def __init__(self, method: Method, task: Task, options: Options) -> None:
        super().__init__()
        assert isinstance(method, NetworkMethod)
        self.method, self.task, self.options, self.seed = method, task, options, task.seed
        self.sums_loss, self.is_distributed = method.sums_loss, method.is_distributed
        self.net = method.make(task, options)
        self.measured = ("validation", "test") if task.parts.validation else ("test",)
        self.figures = ("loss", "train", *(name for part in self.measured for name in (part, f"{part}_loss")))

    def batches(self, part: str, generator: torch.Generator | None = None) -> list[list[int]]:
        return self.method.batches(self.task, part, self.options, generator)

    def examples(self, part: str, indices: list[int]) -> tuple[Any, Tensor]:
        labels = self.task.graphs.labels[torch.tensor(indices, dtype=torch.long)]
        return (self.method.inputs(self.task, indices, self.options) if indices else labels), labels

    def loss(self, inputs: Any, targets: Tensor) -> tuple[Tensor, Mapping[str, Tensor]]:
        loss, logits = self.method.loss(self.net, inputs, targets)
        return loss, {"train": _hits(logits, targets)}

    def measure(self, part: str, inputs: Any, targets: Tensor) -> Mapping[str, Tensor]:
        logits = self.net(inputs)
        return {
            part: _hits(logits, targets),
            f"{part}_loss": cross_entropy(logits, targets, reduction="none"),
        }

    def score(self, epoch: Mapping[str, Any]) -> tuple[float, ...] | None:
        return self.method.score(epoch) if self.task.parts.validation else None

    def begin_epoch(self) -> None:
        super().begin_epoch()
        for group in self.trainer.optimizers[0].param_groups if self._trainer is not None else ():
            group["lr"] = self.method.learning_rate(self.options, len(self.epochs))

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return self.method.optimizer(self.net, self.options)

    def transfer_batch_to_device(self, batch: Any, device: torch.device, dataloader_idx: int) -> Any:
        part, inputs, targets = batch
        return part, inputs.to(device), targets.to(device)

    def result(self) -> dict[str, Any]:
        hits = 0.0
        for batch in self.batches("test"):
            inputs, labels = self.examples("test", batch)
            hits += float(_hits(self.net(inputs), labels).sum())
        return {
            "accuracy": hits / len(self.task.parts.test),
            "validation": None if self.best is None else self.epochs[self.best["epoch"]]["validation"],
            "graphs": self.task.parts.counts(),
        }


def _hits(logits: Tensor, targets: Tensor) -> Tensor:
    return (logits.argmax(1) == targets).float()
