"""The training loop: Adam with a warm-up and a cosine schedule, early stopping, and the weights of the best epoch."""

import copy
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from bellnet.data import Graph, Loader
from bellnet.errors import OptionError
from bellnet.estimator.model import Ensemble
from bellnet.estimator.options import CACHE_BYTES, PREDICTION_BATCH

WARM_UP = 0.1
"""The share of all steps in which the learning rate rises."""


@dataclass(frozen=True)
class Schedule:
    """The options of the training loop."""

    max_epochs: int
    patience: int
    batch_size: int
    learning_rate: float
    weight_decay: float


@dataclass(frozen=True)
class Objective:
    """What is minimised, and what epochs are compared by.

    Attributes:
        loss: The loss of each label, from outputs and targets.
        validation_error: The error on the validation set and its standard error, from outputs, targets and weights.
        score: The score of outputs and targets; None where it is not defined.
        score_name: The name of the score in the history.
    """

    loss: Callable[[Tensor, Tensor], Tensor]
    validation_error: Callable[[Tensor, Tensor, Tensor], tuple[float, float]]
    score: Callable[[Tensor, Tensor], float | None]
    score_name: str


@dataclass(frozen=True)
class TrainingData:
    """Graphs with scaled features, their labels, and how both are put into batches.

    The labels of graph i are those from `starts[i]` to `starts[i + 1]`. The tensors have an entry for each label, on
    the device of the network; targets and weights of unknown labels are zero.

    Attributes:
        graphs: The graphs of the training set and of the validation set.
        starts: (graphs + 1,) the index of the first label of each graph.
        targets: The target of each label.
        weights: The weight of each label; the mean over the training set is one.
        known: Whether a label is known.
        in_validation: Whether a label is in the validation set.
        loader: Returns a `Loader` of graphs with given options.
    """

    graphs: Sequence[Graph]
    starts: NDArray[np.int64]
    targets: Tensor
    weights: Tensor
    known: Tensor
    in_validation: Tensor
    loader: Callable[..., Loader]


@dataclass(frozen=True)
class Outcome:
    """A record for each epoch, and the epoch whose weights the network has."""

    history: list[dict[str, Any]]
    best_epoch: int


def train(
    ensemble: Ensemble,
    data: TrainingData,
    objective: Objective,
    schedule: Schedule,
    *,
    seed: int,
    bar: "ProgressBar",
    after_epoch: Callable[[dict[str, Any]], None] | None = None,
) -> Outcome:
    """Train an ensemble in place and leave it in evaluation mode, with the weights of the best epoch.

    The best epoch is the last one whose validation error exceeds the lowest one by at most its standard error. On a
    small validation set the lowest error is often chance, and later epochs were trained longer. Training stops when no
    epoch was as good for `patience` epochs. Without a validation set, the last epoch is the best. All networks of an
    ensemble see the same batches, each is trained on its own loss, and the validation error is that of the ensemble.

    Args:
        ensemble: The ensemble.
        data: The training set and the validation set.
        objective: The loss, the validation error and the score.
        schedule: The options of the loop.
        seed: Determines the order of the graphs.
        bar: Updated after each batch and each epoch.
        after_epoch: Called with the record of each epoch, while the network has the weights of that epoch.
    """
    training = _Batches(data, data.known & ~data.in_validation, schedule.batch_size, seed=seed)
    has_validation = bool(data.in_validation.any())
    validation = _Batches(data, data.in_validation, PREDICTION_BATCH) if has_validation else None
    optimizer = torch.optim.AdamW(ensemble.parameter_groups(schedule.learning_rate), weight_decay=schedule.weight_decay)
    factor = _learning_rate_factor(schedule.max_epochs * training.n_batches)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, factor)
    history: list[dict[str, Any]] = []
    lowest, bound, best_epoch, best_weights = math.inf, math.inf, 0, ensemble.state_dict()
    for epoch in range(schedule.max_epochs):
        loss, score = _train_epoch(ensemble, training, objective, optimizer, scheduler, bar, epoch)
        if not math.isfinite(loss):
            if epoch == 0:
                raise OptionError(f"training diverged: the loss of epoch 0 is {loss}.\nUse a smaller learning_rate.")
            break
        validation_loss, validation_score, (error, standard_error) = (
            (None, None, (0.0, 0.0)) if validation is None else _evaluate(ensemble, validation, objective)
        )
        record = {
            "epoch": epoch,
            "loss": loss,
            "validation_loss": validation_loss,
            objective.score_name: score,
            f"validation_{objective.score_name}": validation_score,
        }
        history.append(record)
        bar.epoch(record)
        if after_epoch is not None:
            after_epoch(dict(record))
        if validation_loss is not None and not math.isfinite(validation_loss):
            error = math.inf  # classes of NaN could be right
        if error < lowest:
            lowest, bound = error, error + standard_error
        if epoch == 0 or error <= bound:
            best_epoch, best_weights = epoch, copy.deepcopy(ensemble.state_dict())
        elif epoch - best_epoch >= schedule.patience:
            break
    ensemble.load_state_dict(best_weights)
    ensemble.eval()
    return Outcome(history, best_epoch)


def _train_epoch(
    ensemble: Ensemble,
    batches: "_Batches",
    objective: Objective,
    optimizer: torch.optim.Optimizer,
    scheduler: torch.optim.lr_scheduler.LRScheduler,
    bar: "ProgressBar",
    epoch: int,
) -> tuple[float, float | None]:
    """Take a step on each batch; returns the mean loss of all networks and the score of the ensemble."""
    total, count, predictions = 0.0, 0, []
    ensemble.train()
    for index, batch in enumerate(batches, 1):
        optimizer.zero_grad(set_to_none=True)
        outputs = []
        for member in ensemble.members:  # one after the other, so that the memory of one suffices
            predicted = batch.predictions(member)
            losses = predicted.losses(objective)
            losses.mean().backward()  # type: ignore[no-untyped-call]
            outputs.append(predicted.outputs.detach())
            total, count = total + float(losses.detach().sum()), count + len(losses)
        optimizer.step()
        scheduler.step()
        predictions.append(Predictions(ensemble.combine(outputs), batch.targets, batch.weights))
        bar.batch(epoch, index / batches.n_batches)
    if not math.isfinite(total):
        return total / count, None
    together = Predictions.concatenated(predictions)
    return total / count, objective.score(together.outputs, together.targets)


@torch.no_grad()
def _evaluate(
    ensemble: Ensemble, batches: "_Batches", objective: Objective
) -> tuple[float, float | None, tuple[float, float]]:
    """The mean loss in evaluation mode, the score, and the validation error with its standard error."""
    ensemble.eval()
    found = Predictions.concatenated(batch.predictions(ensemble) for batch in batches)
    loss = float(found.losses(objective).double().mean())
    return loss, objective.score(found.outputs, found.targets), objective.validation_error(*found)


def _learning_rate_factor(n_steps: int) -> Callable[[int], float]:
    """The factor of the learning rate in each step: a linear rise, then a cosine down to zero."""
    warm_up = WARM_UP * n_steps

    def factor(step: int) -> float:
        if step < warm_up:
            return min((step + 1) / warm_up, 1.0)
        return (1 + math.cos(math.pi * min((step - warm_up) / (n_steps - warm_up), 1))) / 2

    return factor


class Predictions(NamedTuple):
    """Outputs for labels, with their targets and weights."""

    outputs: Tensor
    targets: Tensor
    weights: Tensor

    @classmethod
    def concatenated(cls, batches: "Iterable[Predictions]") -> "Predictions":
        """Those of several batches."""
        return cls(*map(torch.cat, zip(*batches, strict=True)))

    def losses(self, objective: Objective) -> Tensor:
        """The weighted loss of each label, not divided by the weights of the batch."""
        return objective.loss(self.outputs, self.targets) * self.weights


class _Batch(NamedTuple):
    """Encoded graphs, which of their labels are used, and the targets and weights of those."""

    encoded: Any
    graphs: list[Graph]
    used: Tensor
    targets: Tensor
    weights: Tensor

    def predictions(self, net: nn.Module) -> Predictions:
        return Predictions(net(self.encoded, self.graphs)[self.used], self.targets, self.weights)


class _Batches:
    """The batches of all graphs that have used labels."""

    def __init__(self, data: TrainingData, used: Tensor, batch_size: int, *, seed: int | None = None) -> None:
        self.data, self.used = data, used
        before = np.concatenate([[0], np.cumsum(used.cpu().numpy())])
        self.indices = np.flatnonzero(np.diff(before[data.starts]))
        self.loader = data.loader(
            [data.graphs[index] for index in self.indices.tolist()],
            batch_size=batch_size,
            shuffle=seed is not None,
            seed=seed or 0,
            cache_bytes=CACHE_BYTES,
        )
        self.n_batches = len(self.loader)

    def __iter__(self) -> Iterator[_Batch]:
        data = self.data
        for encoded, _, within in self.loader:
            indices: list[int] = self.indices[within.numpy()].tolist()
            labels = [np.arange(*data.starts[[index, index + 1]]) for index in indices]
            rows = torch.from_numpy(np.concatenate(labels)).to(data.targets.device)
            used = self.used[rows]
            rows = rows[used]
            graphs = [data.graphs[index] for index in indices]
            yield _Batch(encoded, graphs, used, data.targets[rows], data.weights[rows])


class ProgressBar:
    """A bar of epochs on a terminal or in a notebook; a context manager. Nothing is shown in a file or a pipe.

    Args:
        title: The text before the bar.
        epochs: The maximum number of epochs.
        show: Whether to show anything at all.
    """

    def __init__(self, title: str, epochs: int, *, show: bool) -> None:
        self.title, self.epochs, self.show = title, epochs, show
        self.progress: Any = None

    def __enter__(self) -> "ProgressBar":
        if self.show:
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

            console = Console(stderr=True)
            if console.is_terminal or console.is_jupyter:
                self.progress = Progress(
                    TextColumn("{task.description}"),
                    BarColumn(bar_width=24),
                    MofNCompleteColumn(),
                    TextColumn("{task.fields[status]}"),
                    TimeRemainingColumn(),
                    console=console,
                    transient=True,
                )
                self.progress.start()
                self.task = self.progress.add_task(self.title, total=self.epochs, status="")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self.progress is not None:
            self.progress.stop()

    def batch(self, epoch: int, share: float) -> None:
        """Show the share of an epoch that is done."""
        if self.progress is not None:
            self.progress.update(self.task, completed=epoch + share)

    def epoch(self, record: dict[str, Any]) -> None:
        """Show the losses of an epoch."""
        if self.progress is not None:
            status = f"loss {record['loss']:.3f}"
            if record["validation_loss"] is not None:
                status += f", validation loss {record['validation_loss']:.3f}"
            if (accuracy := record.get("validation_accuracy")) is not None:
                status += f", accuracy {accuracy:.3f}"
            self.progress.update(self.task, completed=record["epoch"] + 1, status=status)
