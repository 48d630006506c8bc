"""The training loop: Adam on small batches, stopped by what was held out, with the best epoch restored."""

import copy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from bellnet.data import Encoding, Graph, Loader
from bellnet.estimator.progress import Bar

Loss = Callable[[Tensor, Tensor], Tensor]
ASKED_AT_ONCE = 32
MAX_ENTRIES = 2**19
"""The most entries of a batch: with 64 channels of single precision a layer then takes up to 128 MB."""


@dataclass(frozen=True)
class Schedule:
    """How long and how fast to learn."""

    max_epochs: int
    patience: int
    batch_size: int
    learning_rate: float
    weight_decay: float


@dataclass(frozen=True)
class Lesson:
    """What is learned: graphs, and for each label a target, a weight and whether it is held out.

    The labels of graph i are those from `starts[i]` to `starts[i + 1]`. The tensors are where the network is.
    """

    graphs: Sequence[Graph]
    encoding: Encoding
    starts: NDArray[np.int64]
    targets: Tensor
    weights: Tensor
    held: Tensor
    loss: Loss


@dataclass(frozen=True)
class Outcome:
    """What training says of itself: a record for every epoch, and the epoch whose weights were kept."""

    history: list[dict[str, Any]]
    best_epoch: int


def train(net: nn.Module, lesson: Lesson, schedule: Schedule, *, seed: int, bar: Bar) -> Outcome:
    """Train a network in place; it ends with the weights of the best epoch, in evaluation mode.

    The best epoch is the one with the least loss on the labels held out; where none are, the last.

    Args:
        net: From a batch and its graphs to a row of outputs for each label.
        lesson: What to learn.
        schedule: How long and how fast.
        seed: Chooses the order of the graphs.
        bar: Told of every batch and epoch.
    """
    learned = _Part(lesson, ~lesson.held, schedule.batch_size, seed=seed)
    held = _Part(lesson, lesson.held, ASKED_AT_ONCE) if bool(lesson.held.any()) else None
    optimizer = torch.optim.AdamW(net.parameters(), lr=schedule.learning_rate, weight_decay=schedule.weight_decay)
    history: list[dict[str, Any]] = []
    best, best_epoch, best_weights = float("inf"), 0, net.state_dict()
    for epoch in range(schedule.max_epochs):
        total, count = 0.0, 0
        net.train()
        for done, (loss, n_labels) in enumerate(learned.losses(net), 1):
            optimizer.zero_grad(set_to_none=True)
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            total, count = total + float(loss.detach()) * n_labels, count + n_labels
            bar.batch(epoch, done / learned.n_batches)
        validation = None if held is None else held.mean_loss(net)
        history.append({"epoch": epoch, "loss": total / count, "validation_loss": validation})
        bar.epoch(history[-1])
        if epoch == 0 or validation is None or validation < best:
            best = best if validation is None else validation
            best_epoch, best_weights = epoch, copy.deepcopy(net.state_dict())
        elif epoch - best_epoch >= schedule.patience:
            break
    net.load_state_dict(best_weights)
    net.eval()
    return Outcome(history, best_epoch)


class _Part:
    """Some of the labels of a lesson, batch by batch of their graphs."""

    def __init__(self, lesson: Lesson, wanted: Tensor, batch_size: int, *, seed: int | None = None) -> None:
        self.lesson, self.wanted = lesson, wanted
        before = np.concatenate([[0], np.cumsum(wanted.cpu().numpy())])
        self.places = np.flatnonzero(np.diff(before[lesson.starts]))
        self.loader = Loader(
            [lesson.graphs[place] for place in self.places],
            batch_size=batch_size,
            encoding=lesson.encoding,
            shuffle=seed is not None,
            seed=seed or 0,
            max_entries=MAX_ENTRIES,
            device=lesson.targets.device,
        )
        self.n_batches = len(self.loader)

    def losses(self, net: nn.Module) -> Iterator[tuple[Tensor, int]]:
        """For every batch the mean over its labels of loss times weight, and their number.

        It is not divided by the weights of the batch: a batch of light labels shall say little.
        """
        for batch, _, within in self.loader:
            places = self.places[within.numpy()]
            labels = [np.arange(*self.lesson.starts[[place, place + 1]]) for place in places]
            rows = torch.from_numpy(np.concatenate(labels)).to(self.lesson.targets.device)
            outputs = net(batch, [self.lesson.graphs[place] for place in places])
            losses = self.lesson.loss(outputs, self.lesson.targets[rows]) * self.lesson.weights[rows]
            chosen = self.wanted[rows]
            yield losses[chosen].mean(), int(chosen.sum())

    @torch.no_grad()
    def mean_loss(self, net: nn.Module) -> float:
        """The loss of all labels in evaluation mode."""
        net.eval()
        found = [(float(loss) * count, count) for loss, count in self.losses(net)]
        return sum(total for total, _ in found) / sum(count for _, count in found)
