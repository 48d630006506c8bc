"""The paper's synthetic tasks: the symmetric part, the diagonal, the maximal right singular vector, and the trace.

Inputs and targets are functions of a seed: nothing is stored.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from bellnet.errors import OptionError

BLOCK = 100
"""Examples are drawn in blocks of this size, each from a seed of its own."""


def mean_square_error(predictions: Tensor, targets: Tensor) -> Tensor:
    """The mean over all entries of the squared difference."""
    return (predictions - targets).square().mean()


def cosine_loss(predictions: Tensor, targets: Tensor) -> Tensor:
    """One minus the squared cosine between vectors (*batch, n, 1): zero if they are parallel, whatever the sign."""
    return (1 - _cosine(predictions, targets).square()).mean()


def direction_error(predictions: Tensor, targets: Tensor) -> Tensor:
    """The mean square error between unit vectors (*batch, n, 1) after choosing the better sign."""
    return ((2 - 2 * _cosine(predictions, targets).abs()) / targets.shape[-2]).mean()


def _cosine(predictions: Tensor, targets: Tensor) -> Tensor:
    return torch.nn.functional.cosine_similarity(predictions.squeeze(-1), targets.squeeze(-1), dim=-1)


def _uniform(count: int, n: int, generator: torch.Generator) -> Tensor:
    """Entries uniform in [0, 10]."""
    return 10 * torch.rand(count, n, n, 1, generator=generator)


def _with_gap(count: int, n: int, generator: torch.Generator) -> Tensor:
    """Singular values uniform in [0, 0.5], the largest increased by 0.5; singular vectors of any direction."""
    values = 0.5 * torch.rand(count, n, generator=generator)
    values = values.sort(-1, descending=True).values
    values[:, :1] += 0.5
    left, right = (_rotation(count, n, generator) for _ in range(2))
    return (left @ (values.unsqueeze(-1) * right.mT)).unsqueeze(-1)


def _rotation(count: int, n: int, generator: torch.Generator) -> Tensor:
    """Orthogonal matrices, uniformly distributed: the factor of a normal matrix with the signs made unique."""
    orthogonal, triangular = torch.linalg.qr(torch.randn(count, n, n, generator=generator))
    found: Tensor = triangular.diagonal(0, -2, -1).sign().unsqueeze(-2) * orthogonal
    return found


@dataclass(frozen=True)
class Task:
    """A function of matrices to learn.

    Attributes:
        target: The node set of every axis of the target.
        solve: The targets (count, one axis for each in `target`, 1) of inputs (count, n, n, 1).
        draw: Draws a number of inputs from a generator.
        loss: What is minimised, for predictions and targets: the mean over the batch.
        error: What is reported, in the paper's units: the mean over the batch.
    """

    target: tuple[str, ...]
    solve: Callable[[Tensor], Tensor]
    draw: Callable[[int, int, torch.Generator], Tensor] = _uniform
    loss: Callable[[Tensor, Tensor], Tensor] = mean_square_error
    error: Callable[[Tensor, Tensor], Tensor] = mean_square_error


def _singular_vector(inputs: Tensor) -> Tensor:
    rows: Tensor = torch.linalg.svd(inputs.squeeze(-1), full_matrices=False).Vh
    return rows[..., :1, :].mT


TASKS: dict[str, Task] = {
    "symmetric": Task(("n", "n"), lambda inputs: (inputs + inputs.transpose(-2, -3)) / 2),
    "diagonal": Task(("n", "n"), lambda inputs: inputs.diagonal(0, -3, -2).diag_embed(dim1=-3, dim2=-2)),
    "singular": Task(("n",), _singular_vector, _with_gap, cosine_loss, direction_error),
    "trace": Task((), lambda inputs: inputs.diagonal(0, -3, -2).sum(-1)),
}


def get(task: str) -> Task:
    """The task of that name."""
    if task not in TASKS:
        raise OptionError(f"There is no synthetic task {task!r}; there are {', '.join(map(repr, TASKS))}.")
    return TASKS[task]


def make(task: str, count: int, n: int = 40, *, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Inputs (count, n, n, 1) and targets of a task, in memory.

    >>> inputs, targets = make("diagonal", 3, n=5)
    >>> inputs.shape, targets.shape
    (torch.Size([3, 5, 5, 1]), torch.Size([3, 5, 5, 1]))
    """
    the_task = get(task)
    for name, value in (("count", count), ("n", n)):
        if type(value) is not int or value < 0:
            raise OptionError(f'synthetic "{task}": {name} must be an integer from 0 up, not {value!r}.')
    seeds = [seed * 1_000_003 + block for block in range(max(-(-count // BLOCK), 1))]
    blocks = [the_task.draw(BLOCK, n, torch.Generator().manual_seed(block)) for block in seeds]
    inputs = torch.cat(blocks)[:count]
    return inputs, the_task.solve(inputs)


def trivial_error(task: str, train: Tensor, test: Tensor) -> float:
    """The error on test targets of a predictor that returns the mean of the training targets, entry by entry.

    It returns zero for singular vectors, whose sign is arbitrary.
    """
    mean = torch.zeros_like(train[:1]) if task == "singular" else train.mean(0, keepdim=True)
    return float(mean_square_error(mean, test))
