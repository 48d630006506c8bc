"""The paper's synthetic tasks: functions of matrices that networks are asked to learn.

Three equivariant tasks (the symmetric part, the diagonal, the maximal right singular vector) and an invariant one (the
trace). Inputs and targets are functions of a seed: nothing is stored.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from bellnet.errors import OptionError

STREAM_BLOCK = 100
"""Examples are drawn in blocks of this many, each from a seed of its own."""


@dataclass(frozen=True)
class Task:
    """A function of matrices to learn.

    Attributes:
        name: How it is called.
        target: The node set of every slot of the target.
        draw: Makes inputs (count, n, n, 1) from a generator.
        solve: The targets (count, one axis for each slot of the target, 1) of inputs.
        loss: What is minimised, for predictions and targets: the mean over the batch.
        error: What is reported, in the paper's units: the mean over the batch.
    """

    name: str
    target: tuple[str, ...]
    draw: Callable[[int, int, torch.Generator], Tensor]
    solve: Callable[[Tensor], Tensor]
    loss: Callable[[Tensor, Tensor], Tensor]
    error: Callable[[Tensor, Tensor], Tensor]


def make(task: str, count: int, n: int = 40, *, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Inputs (count, n, n, 1) and targets of a task, in memory.

    >>> inputs, targets = make("diagonal", 3, n=5)
    >>> inputs.shape, targets.shape
    (torch.Size([3, 5, 5, 1]), torch.Size([3, 5, 5, 1]))
    """
    the_task = get(task)
    _check(task, count, n)
    blocks = range(0, max(count, 1), STREAM_BLOCK)
    inputs = torch.cat([_block(the_task, n, seed, start // STREAM_BLOCK) for start in blocks])[:count]
    return inputs, the_task.solve(inputs)


def get(task: str) -> Task:
    """The task of that name."""
    if task not in TASKS:
        raise OptionError(f"There is no synthetic task {task!r}; there are {', '.join(map(repr, TASKS))}.")
    return TASKS[task]


def trivial_error(task: str, train: Tensor, test: Tensor) -> float:
    """The error on test targets of a predictor that always says the mean of the training targets, entry by entry.

    The sign of a singular vector is arbitrary, so its mean is zero and tells nothing: there the predictor says zero.
    """
    mean = torch.zeros_like(train[:1]) if get(task) is TASKS["singular"] else train.mean(0, keepdim=True)
    return float(mean_square_error(mean, test))


def _check(task: str, count: int, n: int) -> None:
    for name, value in (("count", count), ("n", n)):
        if type(value) is not int or value < 0:
            raise OptionError(f'synthetic "{task}": {name} must be a whole number from 0 up, not {value!r}.')


def _block(task: Task, n: int, seed: int, number: int) -> Tensor:
    generator = torch.Generator().manual_seed(seed * 1_000_003 + number)
    return task.draw(STREAM_BLOCK, n, generator)


def _uniform(count: int, n: int, generator: torch.Generator) -> Tensor:
    """Entries uniform in [0, 10]."""
    return 10 * torch.rand(count, n, n, 1, generator=generator)


def _with_gap(count: int, n: int, generator: torch.Generator) -> Tensor:
    """Singular values uniform in [0, 0.5], the largest moved up by 0.5; singular vectors of any direction."""
    values = 0.5 * torch.rand(count, n, generator=generator)
    values = values.sort(-1, descending=True).values
    values[:, :1] += 0.5
    left, right = (_rotation(count, n, generator) for _ in range(2))
    return (left @ (values.unsqueeze(-1) * right.mT)).unsqueeze(-1)


def _rotation(count: int, n: int, generator: torch.Generator) -> Tensor:
    """Orthogonal matrices, uniformly distributed: the factor of a normal matrix with the signs made unique."""
    orthogonal: Tensor
    orthogonal, triangular = torch.linalg.qr(torch.randn(count, n, n, generator=generator))
    signs: Tensor = triangular.diagonal(0, -2, -1).sign().unsqueeze(-2)
    return signs * orthogonal


def _symmetric_part(inputs: Tensor) -> Tensor:
    return (inputs + inputs.transpose(-2, -3)) / 2


def _only_diagonal(inputs: Tensor) -> Tensor:
    return inputs * torch.eye(inputs.shape[-2], dtype=inputs.dtype, device=inputs.device).unsqueeze(-1)


def _singular_vector(inputs: Tensor) -> Tensor:
    rows: Tensor = torch.linalg.svd(inputs.squeeze(-1), full_matrices=False).Vh
    return rows[..., :1, :].mT


def _trace(inputs: Tensor) -> Tensor:
    return inputs.diagonal(0, -3, -2).sum(-1)


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


TASKS: dict[str, Task] = {
    task.name: task
    for task in (
        Task("symmetric", ("n", "n"), _uniform, _symmetric_part, mean_square_error, mean_square_error),
        Task("diagonal", ("n", "n"), _uniform, _only_diagonal, mean_square_error, mean_square_error),
        Task("singular", ("n",), _with_gap, _singular_vector, cosine_loss, direction_error),
        Task("trace", (), _uniform, _trace, mean_square_error, mean_square_error),
    )
}
