"""Training by Lightning: a network with its data and its measurements, trained from the last checkpoint on.

A checkpoint holds all that is needed to resume: besides Lightning's own state the figures of all epochs so far, the
weights of the best one, and the state of the random number generator. It is replaced after every epoch, atomically.

This module imports lightning and torchmetrics, which takes seconds; cells import it when they run.
"""

import io
import logging
import time
import warnings
import zipfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from lightning.pytorch import LightningModule, Trainer
from lightning.pytorch.plugins.io import TorchCheckpointIO
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset
from torchmetrics import MeanMetric

from bellnet._utils.files import write_files
from experiments.cell import Record
from experiments.parallel import Worker, this_worker
from experiments.records import not_written

Batch = tuple[str, Any, Tensor]
"""The part of the data, inputs and targets; without targets, this process has no share in the batch."""
STATE = "experiments"
"""The key of a learner's state in a checkpoint."""


class Learner(LightningModule, ABC):
    """A network with its data, its optimiser and its measurements.

    Attributes:
        net: The network.
        seed: Of the order of the examples.
        measured: The parts of the data that are measured after every epoch.
        figures: The names of what is recorded of an epoch: means over examples.
        sums_loss: Whether `loss` is the sum over a batch instead of the mean.
        is_distributed: Whether several processes can train it together. The first one trains it otherwise.
        epochs: The figures of all epochs so far.
        best: The number and the weights of the epoch with the highest score; None if the last one counts.
        report: Receives the figures of every epoch.
        checkpoint: The file that is replaced after every epoch; None if there is none.
    """

    net: nn.Module
    seed: int
    measured: tuple[str, ...]
    figures: tuple[str, ...]
    sums_loss = False
    is_distributed = True

    def __init__(self) -> None:
        super().__init__()
        self.epochs: list[dict[str, Any]] = []
        self.best: dict[str, Any] | None = None
        self.report: Record = lambda epoch: None
        self.checkpoint: Path | None = None
        self._means: dict[str, MeanMetric] = {}
        self._began = 0.0

    @abstractmethod
    def batches(self, part: str, generator: torch.Generator | None = None) -> list[list[int]]:
        """The batches of a part, as indices of its examples; shuffled if there is a generator."""

    @abstractmethod
    def examples(self, part: str, indices: list[int]) -> tuple[Any, Tensor]:
        """Inputs and targets of some examples."""

    @abstractmethod
    def loss(self, inputs: Any, targets: Tensor) -> tuple[Tensor, Mapping[str, Tensor]]:
        """The loss of a batch, and figures whose mean over the epoch is recorded."""

    @abstractmethod
    def measure(self, part: str, inputs: Any, targets: Tensor) -> Mapping[str, Tensor]:
        """Figures of a batch that was not trained on, one for each example or one for all."""

    @abstractmethod
    def result(self) -> dict[str, Any]:
        """The final figures, with the weights of the epoch that counts."""

    def score(self, epoch: Mapping[str, Any]) -> tuple[float, ...] | None:
        """What the best epoch has most of; None if the last epoch counts."""
        return None

    @property
    def worker(self) -> Worker:
        """This process among those that train the network."""
        return this_worker() if self.is_distributed else Worker()

    def train_dataloader(self) -> DataLoader[Batch]:
        """The batches of the next epoch, in an order that depends on seed and epoch alone."""
        generator = torch.Generator().manual_seed(self.seed * 1_000_003 + len(self.epochs))
        return self._loader([("train", batch) for batch in self.batches("train", generator)])

    def val_dataloader(self) -> DataLoader[Batch]:
        """The batches that are measured after every epoch."""
        return self._loader([(part, batch) for part in self.measured for batch in self.batches(part)])

    def _loader(self, batches: list[tuple[str, list[int]]]) -> DataLoader[Batch]:
        shares = [(part, self.worker.share(batch)) for part, batch in batches]
        # With batch_size=None an item of the sampler is a batch. The default generator would draw a number for a seed.
        return DataLoader(_Examples(self), sampler=shares, batch_size=None, generator=torch.Generator())

    def training_step(self, batch: Batch, number: int) -> Tensor:
        """The loss, scaled so that the mean over all processes is that of their joint batch, whatever their shares."""
        _, inputs, targets = batch
        count, worker = len(targets), self.worker
        if count:
            loss, figures = self.loss(inputs, targets)
            mean = loss.detach() / (count if self.sums_loss else 1)
            self._update({"loss": mean, **figures}, count)
        else:  # other processes need its gradient, of zeros
            loss = torch.stack([weight.sum() for weight in self.net.parameters()]).sum() * 0.0
        if worker.size == 1:
            return loss
        return loss * worker.size * (1.0 if self.sums_loss else count / worker.total(count))

    def validation_step(self, batch: Batch, number: int) -> None:
        """Measures a batch."""
        part, inputs, targets = batch
        if len(targets):
            self._update(self.measure(part, inputs, targets), len(targets))

    def _update(self, figures: Mapping[str, Tensor], count: int) -> None:
        for name, values in figures.items():
            self._means[name].update(values.detach().expand(count) if values.ndim == 0 else values)

    def on_train_epoch_start(self) -> None:
        self.begin_epoch()

    def begin_epoch(self) -> None:
        """Start the clock and the means."""
        self._began = self._now()
        options: dict[str, Any] = {"nan_strategy": "disable", "sync_on_compute": self.worker.size > 1}
        self._means = {name: MeanMetric(**options).to(self.device) for name in self.figures}

    def on_train_epoch_end(self) -> None:
        """Reports the epoch, and saves its weights if it is the best so far."""
        epoch = {
            "epoch": len(self.epochs),
            **{name: float(mean.compute()) for name, mean in self._means.items()},
            "learning_rate": float(self.trainer.optimizers[0].param_groups[0]["lr"]),
            "seconds": round(self._now() - self._began, 3),
        }
        score = self.score(epoch)
        if score is not None and (self.best is None or score > (self.score(self.epochs[self.best["epoch"]]) or ())):
            self.best = {"epoch": epoch["epoch"], "weights": {k: v.clone() for k, v in self.net.state_dict().items()}}
        self.epochs.append(epoch)
        self.report(epoch)  # before the checkpoint: resuming may repeat an epoch, but never skips one
        if self.checkpoint is not None:
            self.trainer.save_checkpoint(self.checkpoint)

    def _now(self) -> float:
        """Wall-clock time if several processes can train the network, otherwise the time of the processor."""
        return time.perf_counter() if self.is_distributed else time.process_time()

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Adds the state of this class."""
        checkpoint[STATE] = {"epochs": self.epochs, "best": self.best, "random": torch.get_rng_state()}

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Restores the state of this class."""
        state = checkpoint[STATE]
        self.epochs, self.best = state["epochs"], state["best"]
        torch.set_rng_state(state["random"].cpu())


class _Examples(Dataset[Batch]):
    """The data of a learner; an item is a batch."""

    def __init__(self, learner: Learner) -> None:
        self.learner = learner

    def __getitem__(self, batch: tuple[str, list[int]]) -> Batch:
        return (batch[0], *self.learner.examples(*batch))


def train(
    learner: Learner,
    checkpoint: Path,
    max_epochs: int,
    *,
    report: Record,
    note: Callable[[str], None],
) -> dict[str, Any]:
    """Train a network from its last checkpoint on, and measure it. The result is empty for all processes but the first.

    Args:
        learner: The network, new.
        checkpoint: The file of its checkpoint.
        max_epochs: Passes over the examples.
        report: Receives the figures of every epoch.
        note: Receives a warning if the checkpoint is damaged.
    """
    worker = learner.worker
    state, damage = _read(checkpoint, learner) if worker.is_leader else (None, "")
    if damage:
        note(damage)
    state = worker.broadcast(state)
    if worker.is_leader:
        learner.report = report
    learner.checkpoint = checkpoint
    with _quiet():
        trainer = Trainer(
            **worker.trainer_options(),
            max_epochs=max_epochs,
            num_sanity_val_steps=0,
            reload_dataloaders_every_n_epochs=1,
            enable_checkpointing=False,
            plugins=[_CheckpointIO(state)],
            logger=False,
            enable_progress_bar=False,
            enable_model_summary=False,
            default_root_dir=checkpoint.parent,
        )
        trainer.fit(learner, ckpt_path=None if state is None else checkpoint)
    if not worker.is_leader:
        return {}
    if learner.best is not None:
        learner.net.load_state_dict(learner.best["weights"])
    learner.eval()
    with torch.no_grad():
        figures = learner.result()
    return {
        **figures,
        "best_epoch": None if learner.best is None else learner.best["epoch"],
        "parameters": sum(weight.numel() for weight in learner.net.parameters()),
        "seconds": round(sum(epoch["seconds"] for epoch in learner.epochs), 3),
    }


def _read(path: Path, learner: Learner) -> tuple[dict[str, Any] | None, str]:
    """The state in a checkpoint, or None, with a warning if it is damaged or of another network."""
    try:
        content = path.read_bytes()
        with zipfile.ZipFile(io.BytesIO(content)) as members:
            if members.testzip() is not None:  # torch does not verify check sums
                raise ValueError
        state: dict[str, Any] = torch.load(io.BytesIO(content), weights_only=True)
        shapes = {name: value.shape for name, value in state["state_dict"].items()}
        if shapes != {name: value.shape for name, value in learner.state_dict().items()} or not state[STATE]["epochs"]:
            raise ValueError
    except FileNotFoundError:
        return None, ""
    except Exception:  # a damaged file may raise anything
        return None, f"{path} is damaged or of another network; it starts again from the beginning."
    return state, ""


class _CheckpointIO(TorchCheckpointIO):
    """Writes checkpoints atomically, which Lightning does only within a file system; reads the one of the leader.

    Args:
        state: The state that is loaded instead of a file.
    """

    def __init__(self, state: dict[str, Any] | None) -> None:
        self.state = state

    def save_checkpoint(self, checkpoint: dict[str, Any], path: str | Path, storage_options: Any = None) -> None:
        content = io.BytesIO()
        torch.save(checkpoint, content)
        try:
            Path(path).parent.mkdir(parents=True, exist_ok=True)
            write_files({Path(path): content.getvalue()})
        except OSError as reason:
            raise not_written(Path(path), reason) from reason

    def load_checkpoint(self, path: str | Path, *how: Any, **options: Any) -> dict[str, Any]:
        assert self.state is not None
        return self.state


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence what Lightning reports of hardware and data loaders."""
    loud = [logging.getLogger(name) for name in ("lightning.pytorch", "lightning.fabric", "lightning")]
    levels = [logger.level for logger in loud]
    for logger in loud:
        logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        for logger, level in zip(loud, levels, strict=True):
            logger.setLevel(level)
