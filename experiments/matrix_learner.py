"""The networks of Tables 1 and 2, their data and their training.

Inputs are scaled to mean zero and variance one, and outputs are scaled back. This is a fixed affine map on either side,
the same for every method, which a network with biases could represent.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from bellnet import EquivariantLinear, EquivariantNet, InvariantNet
from experiments.data import synthetic
from experiments.learner import Learner
from experiments.matrix_cell import MatrixCell

MEAN, DEVIATION = 5.0, 10 / 12**0.5
"""Of entries that are uniform in [0, 10]."""
SOURCES = {"bellnet": "n n", "hartford": "u i"}
EVALUATION_BATCH = 100


class Scaling(NamedTuple):
    """The network maps (input - offset) / scale to (target - out_offset) / out_scale."""

    offset: float
    scale: float
    out_offset: float
    out_scale: float


def scaling_of(cell: MatrixCell) -> Scaling:
    """The scaling of a task, which depends on the distribution of its inputs, not on the examples."""
    if cell.task == "singular":
        # Singular values: one near 1, the others uniform in [0, 0.5]. Only the direction of the output counts.
        return Scaling(0.0, (1 + cell.n / 12) ** 0.5 / cell.n, 0.0, 1.0)
    if cell.task == "trace":
        return Scaling(MEAN, DEVIATION, MEAN * cell.n, DEVIATION * cell.n**0.5)
    return Scaling(MEAN, DEVIATION, 0.0, DEVIATION)


class MatrixNet(nn.Module):
    """The paper's network for a cell, with its scaling."""

    def __init__(self, cell: MatrixCell) -> None:
        super().__init__()
        source = SOURCES[cell.method]
        n_axes = len(synthetic.get(cell.task).target)
        channels = [1, *[cell.channels] * cell.layers]
        self.scaling = scaling_of(cell)
        self.grows_from = cell.n if cell.per_node else None
        self.net: EquivariantNet | InvariantNet
        if n_axes:
            # The right singular vector has one entry for each column.
            target = " ".join(source.split()[-n_axes:])
            self.net = EquivariantNet(f"{source} -> {target}", [*channels, 1])
        else:
            self.net = InvariantNet(source, channels, 1, reduce=cell.readout)
        with torch.no_grad():
            for layer in self.net.blocks.modules():
                # The last bias is a constant on the whole tensor; those before it are on a diagonal only.
                if isinstance(layer, EquivariantLinear) and layer.bias is not None:
                    layer.bias[-1] += cell.first_bias

    def scaled(self, inputs: Tensor) -> Tensor:
        """The output before it is scaled back."""
        result: Tensor = self.net((inputs - self.scaling.offset) / self.scaling.scale)
        return result

    def scale_targets(self, targets: Tensor) -> Tensor:
        """Targets as the output before it is scaled back."""
        return (targets - self.scaling.out_offset) / self.scaling.out_scale

    def forward(self, inputs: Tensor) -> Tensor:
        """Predictions in the units of the task."""
        outputs = self.scaled(inputs) * self.scaling.out_scale + self.scaling.out_offset
        return outputs if self.grows_from is None else outputs * (inputs.shape[-2] / self.grows_from)


def training_data(cell: MatrixCell) -> dict[str, tuple[Tensor, Tensor]]:
    """Inputs and targets of the training and of the validation examples."""
    inputs, targets = synthetic.make(cell.task, cell.train, cell.n, seed=2 * cell.seed)
    end = cell.train - cell.validation
    return {"train": (inputs[:end], targets[:end]), "validation": (inputs[end:], targets[end:])}


def test_data(cell: MatrixCell, n: int) -> tuple[Tensor, Tensor]:
    """Inputs and targets of the test examples, with n nodes."""
    return synthetic.make(cell.task, cell.test, n, seed=test_seed(cell))


def test_seed(cell: MatrixCell) -> int:
    """The seed of the test examples, which no training example has."""
    return 2 * cell.seed + 1


def trivial_errors(cell: MatrixCell) -> dict[str, float]:
    """The error of predicting the mean of the training targets, by the number of nodes."""
    errors = {}
    for n in cell.sizes:
        targets = synthetic.make(cell.task, cell.train, n, seed=2 * cell.seed)[1]
        errors[str(n)] = synthetic.trivial_error(cell.task, targets, test_data(cell, n)[1])
    return errors


class MatrixLearner(Learner):
    """Trains on the loss of the task for scaled outputs; measures the error in the units of the task."""

    net: MatrixNet
    measured = ("validation",)
    figures = ("loss", "validation")

    def __init__(self, cell: MatrixCell) -> None:
        super().__init__()
        self.cell, self.seed = cell, cell.seed
        self.task = synthetic.get(cell.task)
        self.net = MatrixNet(cell)
        self.data = training_data(cell)

    def batches(self, part: str, generator: torch.Generator | None = None) -> list[list[int]]:
        count = len(self.data[part][0])
        size = EVALUATION_BATCH if generator is None else self.cell.batch_size
        order = torch.arange(count) if generator is None else torch.randperm(count, generator=generator)
        return [order[start : start + size].tolist() for start in range(0, count, size)]

    def examples(self, part: str, indices: list[int]) -> tuple[Any, Tensor]:
        inputs, targets = self.data[part]
        return inputs[indices], targets[indices]

    def loss(self, inputs: Any, targets: Tensor) -> tuple[Tensor, Mapping[str, Tensor]]:
        return self.task.loss(self.net.scaled(inputs), self.net.scale_targets(targets)), {}

    def measure(self, part: str, inputs: Any, targets: Tensor) -> Mapping[str, Tensor]:
        return {part: self.task.error(self.net(inputs), targets)}

    def score(self, epoch: Mapping[str, Any]) -> tuple[float, ...]:
        error = epoch["validation"]
        return (float("-inf") if error != error else -error,)

    def result(self) -> dict[str, Any]:
        """The error at every number of nodes, and the output for the first test matrix, in four digits."""
        cell = self.cell
        return {
            "errors": {str(n): self._mean_error(*test_data(cell, n)) for n in cell.sizes},
            "validation": min(epoch["validation"] for epoch in self.epochs),
            "output": _four_digits(self.net(test_data(cell, cell.n)[0][:1])[0].squeeze(-1).tolist()),
        }

    def _mean_error(self, inputs: Tensor, targets: Tensor) -> float:
        total = 0.0
        for start in range(0, len(inputs), EVALUATION_BATCH):
            some, wanted = (values[start : start + EVALUATION_BATCH] for values in (inputs, targets))
            total += float(self.task.error(self.net(some), wanted)) * len(some)
        return total / max(len(inputs), 1)

    def configure_optimizers(self) -> Any:
        """AdamW with a cosine schedule; weights decay, biases do not."""
        cell = self.cell
        named = list(self.net.named_parameters())
        groups: list[dict[str, Any]] = [
            {"params": [value for name, value in named if not name.endswith("bias")]},
            {"params": [value for name, value in named if name.endswith("bias")], "weight_decay": 0.0},
        ]
        optimizer = torch.optim.AdamW(groups, lr=cell.learning_rate, weight_decay=cell.weight_decay)
        steps = cell.epochs * -(-(cell.train - cell.validation) // cell.batch_size)
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(
            optimizer, steps, cell.learning_rate * cell.final_learning_rate
        )
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": schedule, "interval": "step"}}

    def on_before_optimizer_step(self, optimizer: torch.optim.Optimizer) -> None:
        """Lets the decay fall with the square of the learning rate, so that it vanishes first."""
        weights = optimizer.param_groups[0]
        weights["weight_decay"] = self.cell.weight_decay * (weights["lr"] / self.cell.learning_rate) ** 2


def _four_digits(values: Any) -> Any:
    return [_four_digits(value) for value in values] if isinstance(values, list) else float(f"{values:.4g}")
