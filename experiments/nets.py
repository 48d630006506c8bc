"""The networks of a cell, and the fixed change of units around them.

Entries are uniform in [0, 10]; a network sees them with mean zero and variance one, and what it says is scaled back.
This is a fixed affine map on either side, the same for every method, and a network with biases could represent it; it
only spares the optimiser from finding it. A trace grows with the matrix, which means do not: where a cell says so, the
network's answer is multiplied by the number of nodes.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from bellnet import EquivariantLinear, EquivariantNet, InvariantNet
from experiments.config import Cell
from experiments.data import synthetic

MEAN, DEVIATION = 5.0, 10 / 12**0.5
SOURCES = {"ours": "n n", "hartford": "u i"}


@dataclass(frozen=True)
class Units:
    """The network sees (input - offset) / scale and says (target - out_offset) / out_scale."""

    offset: float
    scale: float
    out_offset: float
    out_scale: float


def units(cell: Cell) -> Units:
    """The units of a task; they depend on the distribution of its inputs, not on the examples."""
    if cell.task == "singular":
        # Singular values: one near 1, the others uniform in [0, 0.5]. Only the direction of the output counts.
        return Units(0.0, (1 + cell.n / 12) ** 0.5 / cell.n, 0.0, 1.0)
    if cell.task == "trace":
        return Units(MEAN, DEVIATION, MEAN * cell.n, DEVIATION * cell.n**0.5)
    return Units(MEAN, DEVIATION, 0.0, DEVIATION)


class CellNet(nn.Module):
    """The paper's network for a cell, in the units of the task."""

    def __init__(self, cell: Cell) -> None:
        super().__init__()
        source = SOURCES[cell.method]
        slots = len(synthetic.get(cell.task).target)
        channels = [1, *[cell.channels] * cell.layers]
        self.units = units(cell)
        self.grows_from = cell.n if cell.per_node else None
        self.net: EquivariantNet | InvariantNet
        if slots:
            # The right singular vector has one entry for each column.
            target = " ".join(source.split()[-slots:])
            self.net = EquivariantNet(f"{source} -> {target}", [*channels, 1])
        else:
            self.net = InvariantNet(source, channels, 1, reduce=cell.readout)
        self._begin(cell.first_bias)

    @torch.no_grad()
    def _begin(self, first_bias: float) -> None:
        for layer in self.net.blocks.modules():
            # The last bias is a constant on the whole tensor; those before it are on a diagonal only.
            if isinstance(layer, EquivariantLinear) and layer.bias is not None:
                layer.bias[-1] += first_bias

    def scaled(self, inputs: Tensor) -> Tensor:
        """What the network says, in its own units."""
        result: Tensor = self.net((inputs - self.units.offset) / self.units.scale)
        return result

    def to_units(self, targets: Tensor) -> Tensor:
        """Targets in the units of the network."""
        return (targets - self.units.out_offset) / self.units.out_scale

    def forward(self, inputs: Tensor) -> Tensor:
        """Predictions in the units of the task."""
        said = self.scaled(inputs) * self.units.out_scale + self.units.out_offset
        return said if self.grows_from is None else said * (inputs.shape[-2] / self.grows_from)


def examples(cell: Cell) -> tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]]:
    """What is learned from and what validates: the training side of the data, in two parts."""
    inputs, targets = synthetic.make(cell.task, cell.train, cell.n, seed=2 * cell.seed)
    kept = cell.train - cell.validation
    return (inputs[:kept], targets[:kept]), (inputs[kept:], targets[kept:])


def unseen(cell: Cell, n: int) -> tuple[Tensor, Tensor]:
    """What the error is measured on, with n nodes."""
    return synthetic.make(cell.task, cell.test, n, seed=seed_of_unseen(cell))


def seed_of_unseen(cell: Cell) -> int:
    """The seed of what the error is measured on. No training example has it."""
    return 2 * cell.seed + 1


@torch.no_grad()
def mean_error(cell: Cell, net: nn.Module, inputs: Tensor, targets: Tensor) -> float:
    """The error in the paper's units over all examples, some at a time."""
    error = synthetic.get(cell.task).error
    total = 0.0
    for start in range(0, len(inputs), 100):
        some, wanted = inputs[start : start + 100], targets[start : start + 100]
        total += float(error(net(some), wanted)) * len(some)
    return total / max(len(inputs), 1)


def trivial_errors(cell: Cell) -> dict[str, float]:
    """The error of saying the mean of the training targets, by the number of nodes."""
    errors = {}
    for n in cell.sizes:
        seen = synthetic.make(cell.task, cell.train, n, seed=2 * cell.seed)[1]
        errors[str(n)] = synthetic.trivial_error(cell.task, seen, unseen(cell, n)[1])
    return errors
