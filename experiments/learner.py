"""A cell as Lightning sees it, whatever it learns; and the record of an epoch.

This file needs lightning and torchmetrics, which take seconds to import; cells import it when they run.
"""

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch
from lightning.pytorch import Callback, LightningModule, Trainer
from torch import Tensor, nn
from torch.utils.data import DataLoader, Sampler
from torchmetrics import MeanMetric

from experiments.workers import this_worker

Loaders = tuple[DataLoader[Any], DataLoader[Any]]


class Learner(LightningModule, ABC):
    """A network with its data, its optimiser and its measurements.

    Attributes:
        net: What learns.
        monitor: The figure that chooses the epoch, and whether it should be at its "min" or "max"; the first epoch
            counts where several are the best. None if the last epoch counts.
    """

    net: nn.Module
    monitor: tuple[str, str] | None = None

    def __init__(self) -> None:
        super().__init__()
        # Not a number is what a loss that has diverged should be recorded as, and not left out.
        self.train_loss = MeanMetric(nan_strategy="disable")

    @abstractmethod
    def loaders(self, *, epoch: int) -> Loaders:
        """What is learned from, beginning with that epoch, and what is measured after every epoch."""

    @abstractmethod
    def figures(self) -> dict[str, float]:
        """What was measured in the epoch that is over, besides the loss."""

    @abstractmethod
    def result(self, epochs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """The final figures, with the weights of the epoch that counts."""

    def on_train_epoch_start(self) -> None:
        """Forgets the losses of the last epoch."""
        self.train_loss.reset()

    def count_loss(self, loss: Tensor, count: int) -> None:
        """Adds the mean loss of so many examples to that of the epoch."""
        # Once for each example: torchmetrics counts every value once where it lets those pass that are not numbers.
        self.train_loss.update(loss.expand(count))

    def joint(self, losses: Tensor, count: int) -> Tensor:
        """The loss to train on, such that the workers minimise the mean over their joint batch, whatever the shares.

        Gradients are averaged over processes, each of which may have another number of examples.
        """
        worker = this_worker()
        return losses if worker.size == 1 else losses * (count * worker.size / worker.total(count))

    def nothing(self) -> Tensor:
        """The loss of a process that has no share in a batch: zero, with a gradient of zeros for the others to add."""
        return torch.stack([weight.sum() for weight in self.net.parameters()]).sum() * 0.0


class Epochs(Callback):
    """Hands on what an epoch gave, before its checkpoint is written: a restart may repeat an epoch, never skip one."""

    def __init__(self, report: Callable[[dict[str, Any]], None]) -> None:
        self.report = report
        self.began = 0.0

    def on_train_epoch_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Starts the clock."""
        self.began = time.perf_counter()

    def on_train_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Reports the epoch."""
        assert isinstance(pl_module, Learner)
        self.report(
            {
                "epoch": trainer.current_epoch,
                "loss": float(pl_module.train_loss.compute()),
                **pl_module.figures(),
                "rate": float(trainer.optimizers[0].param_groups[0]["lr"]),
                "seconds": round(time.perf_counter() - self.began, 3),
            }
        )


class Shuffled(Sampler[list[int]]):
    """Batches in an order that depends on the seed and the epoch alone, so a restart does not change it.

    Of every batch each of several workers takes its share.

    Args:
        batches: Makes all batches of an epoch, each a list of indices, from a generator.
        seed: Of the order.
        epoch: The first epoch. Lightning names the others, but asks for the batches of the first before it does.
    """

    def __init__(self, batches: Callable[[torch.Generator], list[list[int]]], *, seed: int, epoch: int) -> None:
        self.batches, self.seed, self.epoch = batches, seed, epoch

    def set_epoch(self, epoch: int) -> None:
        """Lightning says which epoch begins."""
        self.epoch = epoch

    def __len__(self) -> int:
        return len(self.batches(torch.Generator()))

    def __iter__(self) -> Iterator[list[int]]:
        generator = torch.Generator().manual_seed(self.seed * 1_000_003 + self.epoch)
        return map(this_worker().share, self.batches(generator))
