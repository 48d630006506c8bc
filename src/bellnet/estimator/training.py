"""The training loop: Adam on small batches, stopped by what is held out, which also says which epoch is kept."""

import copy
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from bellnet.data import Encoding, Graph, Loader
from bellnet.errors import OptionError
from bellnet.estimator.cost import KEPT_BYTES, MAX_ENTRIES
from bellnet.estimator.ensemble import Ensemble
from bellnet.estimator.nets import LabelNet
from bellnet.estimator.progress import Bar

Loss = Callable[[Tensor, Tensor], Tensor]
Score = Callable[[Tensor, Tensor], float | None]
"""How good outputs are beside their targets, all of them at once; None where that cannot be said."""
Judge = Callable[[Tensor, Tensor, Tensor], tuple[float, float]]
"""How bad an epoch is, and the standard error of that, by outputs for labels held out, their targets and weights."""
WARM_UP = 0.1
"""The part of all steps in which the learning rate rises."""
ASKED_AT_ONCE = 32


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
    """What is learned: graphs, and for each label a target, a weight, whether it is held out and whether it is known.

    The labels of graph i are those from `starts[i]` to `starts[i + 1]`. The tensors are where the network is. A
    batch of several graphs has at most `max_entries`.
    """

    graphs: Sequence[Graph]
    encoding: Encoding
    layout: str
    starts: NDArray[np.int64]
    targets: Tensor
    weights: Tensor
    held: Tensor
    known: Tensor
    loss: Loss
    judge: Judge
    score_name: str
    score: Score
    node_channels: str = "diagonal"
    max_entries: int = MAX_ENTRIES

    def losses(self, answers: "Answers") -> Tensor:
        """The losses of outputs times the weights of their labels.

        They are not divided by the weights of a batch: a batch of light labels shall say little.
        """
        return self.loss(answers.outputs, answers.targets) * answers.weights

    def scored(self, answers: "Answers") -> float | None:
        """The score of outputs, every label counting alike."""
        return self.score(answers.outputs, answers.targets)


class Answers(NamedTuple):
    """Outputs for labels, and targets and weights beside them."""

    outputs: Tensor
    targets: Tensor
    weights: Tensor

    @classmethod
    def together(cls, several: "Iterable[Answers]") -> "Answers":
        """Those of several batches."""
        return cls(*map(torch.cat, zip(*several, strict=True)))


@dataclass(frozen=True)
class Outcome:
    """What training says of itself: a record for every epoch, and the epoch whose weights were kept."""

    history: list[dict[str, Any]]
    best_epoch: int


def train(
    net: LabelNet | Ensemble,
    lesson: Lesson,
    schedule: Schedule,
    *,
    seed: int,
    bar: Bar,
    after_epoch: Callable[[dict[str, Any]], None] | None = None,
) -> Outcome:
    """Train a network in place; it ends with the weights of the epoch that is kept, in evaluation mode.

    That is the last epoch as good as the best: which is judged by the labels held out to be worse than the best by no
    more than the standard error of that. Of a few labels the best is often luck, and later epochs have learned more,
    with smaller steps. Training stops when for some epochs none was as good. Where nothing is held out, all epochs
    are run and the last is kept. The members of a ensemble see the same batches, and each learns from its own losses;
    they are judged together.

    Args:
        net: From a batch and its graphs to a row of outputs for each label.
        lesson: What to learn.
        schedule: How long and how fast.
        seed: Chooses the order of the graphs.
        bar: Told of every batch and epoch.
        after_epoch: Given the record of every epoch, while the network has the weights of that epoch.
    """
    learned = _Part(lesson, lesson.known & ~lesson.held, schedule.batch_size, seed=seed)
    held = _Part(lesson, lesson.held, ASKED_AT_ONCE) if bool(lesson.held.any()) else None
    optimizer = torch.optim.AdamW(net.rates(schedule.learning_rate), weight_decay=schedule.weight_decay)
    pace = torch.optim.lr_scheduler.LambdaLR(optimizer, _pace(schedule.max_epochs * learned.n_batches))
    history: list[dict[str, Any]] = []
    least, bound, kept, weights = math.inf, math.inf, 0, net.state_dict()
    for epoch in range(schedule.max_epochs):
        total, count, answers = 0.0, 0, []
        net.train()
        for done, batch in enumerate(learned.batches(), 1):
            optimizer.zero_grad(set_to_none=True)
            said = []
            for member in net.members:  # one after the other, so that the memory of one is enough
                answer = batch.answers(member)
                losses = lesson.losses(answer)
                losses.mean().backward()  # type: ignore[no-untyped-call]
                said.append(answer.outputs.detach())
                total, count = total + float(losses.detach().sum()), count + len(losses)
            optimizer.step()
            pace.step()
            answers.append(batch.said(torch.stack(said).mean(0)))
            bar.batch(epoch, done / learned.n_batches)
        if not math.isfinite(total):
            if epoch == 0:
                raise OptionError(
                    f"training diverged: the loss of epoch 0 is {total / count}.\nTake a smaller learning_rate."
                )
            break
        validation, validation_score, (badness, error) = (None, None, (0.0, 0.0)) if held is None else held.judged(net)
        history.append(
            {
                "epoch": epoch,
                "loss": total / count,
                "validation_loss": validation,
                lesson.score_name: lesson.scored(Answers.together(answers)),
                f"validation_{lesson.score_name}": validation_score,
            }
        )
        bar.epoch(history[-1])
        if after_epoch is not None:
            after_epoch(dict(history[-1]))
        if validation is not None and not math.isfinite(validation):
            badness = math.inf  # the weights are no numbers any more, whatever classes that says
        if badness < least:
            least, bound = badness, badness + error
        if epoch == 0 or badness <= bound:
            kept, weights = epoch, copy.deepcopy(net.state_dict())
        elif epoch - kept >= schedule.patience:
            break
    net.load_state_dict(weights)
    net.eval()
    return Outcome(history, kept)


def patience_of(given: int | None, max_epochs: int) -> int:
    """For how many epochs to wait: so many, or a third of all, and at least five."""
    return max(5, max_epochs // 3) if given is None else given


def _pace(n_steps: int) -> Callable[[int], float]:
    """The learning rate of every step, as a part of the greatest: up on a straight line, then down on a cosine."""
    rising = WARM_UP * n_steps

    def pace(step: int) -> float:
        if step < rising:
            return min((step + 1) / rising, 1.0)
        return (1 + math.cos(math.pi * min((step - rising) / (n_steps - rising), 1))) / 2

    return pace


class _Batch(NamedTuple):
    """Some graphs, encoded; which of their labels are wanted, and the targets and weights of those."""

    encoded: Any
    graphs: list[Graph]
    wanted: Tensor
    targets: Tensor
    weights: Tensor

    def answers(self, net: nn.Module) -> Answers:
        """What a network says for every label that is wanted."""
        return self.said(net(self.encoded, self.graphs)[self.wanted])

    def said(self, outputs: Tensor) -> Answers:
        """Outputs beside targets and weights."""
        return Answers(outputs, self.targets, self.weights)


class _Part:
    """Some of the labels of a lesson, batch by batch of their graphs."""

    def __init__(self, lesson: Lesson, wanted: Tensor, batch_size: int, *, seed: int | None = None) -> None:
        self.lesson, self.wanted = lesson, wanted
        before = np.concatenate([[0], np.cumsum(wanted.cpu().numpy())])
        self.places = np.flatnonzero(np.diff(before[lesson.starts]))
        self.loader = Loader(
            [lesson.graphs[place] for place in self.places.tolist()],
            batch_size=batch_size,
            encoding=lesson.encoding,
            layout=lesson.layout,
            node_channels=lesson.node_channels,
            shuffle=seed is not None,
            seed=seed or 0,
            max_entries=lesson.max_entries,
            cache_bytes=KEPT_BYTES,
            device=lesson.targets.device,
        )
        self.n_batches = len(self.loader)

    def batches(self) -> Iterator[_Batch]:
        """All of them, once."""
        for encoded, _, within in self.loader:
            places: list[int] = self.places[within.numpy()].tolist()
            labels = [np.arange(*self.lesson.starts[[place, place + 1]]) for place in places]
            rows = torch.from_numpy(np.concatenate(labels)).to(self.lesson.targets.device)
            graphs, wanted = [self.lesson.graphs[place] for place in places], self.wanted[rows]
            rows = rows[wanted]
            yield _Batch(encoded, graphs, wanted, self.lesson.targets[rows], self.lesson.weights[rows])

    @torch.no_grad()
    def judged(self, net: nn.Module) -> tuple[float, float | None, tuple[float, float]]:
        """The mean loss of all labels in evaluation mode, their score, and what they are judged by."""
        net.eval()
        answers = Answers.together(batch.answers(net) for batch in self.batches())
        loss = float(self.lesson.losses(answers).double().mean())
        return loss, self.lesson.scored(answers), self.lesson.judge(*answers)


def mean_and_error(values: Tensor) -> tuple[float, float]:
    """The mean of some numbers, and its standard error."""
    values = values.double()
    return float(values.mean()), float(values.std(correction=0)) / math.sqrt(len(values))
