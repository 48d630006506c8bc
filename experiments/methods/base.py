"""The methods of Table 3: each trains on some graphs of a data set, selects by others, and classifies the test set."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from experiments.cell import Record
from experiments.graph_data import GraphSet, Parts
from experiments.machine import require

Options = Mapping[str, Any]
PROTOCOLS = ("fixed", "nested")
AUTHORS = " (authors' set-up)"


@dataclass(frozen=True, eq=False)
class Task:
    """The data of a cell: a data set, the indices of the graphs of each part, and a seed."""

    graphs: GraphSet
    parts: Parts
    seed: int


class Method(ABC):
    """A way to classify graphs. It has no state; whatever can be chosen is an option, and so a part of a cell's key.

    Attributes:
        title: The title of its row of the table.
        packages: The packages it needs, all of which the extra `compare` installs.
        protocols: The protocols it has; the first one is the default.
        is_learned: Whether Lightning trains it. It is a `NetworkMethod` then.
        epochs_option: The option with the maximum number of epochs; None if there is none.
        auto_epochs: The maximum number of epochs where that option is "auto"; None if it cannot be.
    """

    title: str
    packages: tuple[str, ...] = ()
    protocols: tuple[str, ...] = ("nested",)
    is_learned = False
    epochs_option: str | None = None
    auto_epochs: int | None = None

    @abstractmethod
    def usual(self, name: str, options: Options | None = None) -> dict[str, Any]:
        """The usual options for a data set, with those of the given options that define another row."""

    def run(self, task: Task, options: Options, record: Record) -> dict[str, Any]:
        """Classify the test graphs: "accuracy", "validation" (by which it was selected), "seconds" of the processor."""
        raise NotImplementedError(f"{self.title} is trained by Lightning")

    def row(self, options: Options) -> str:
        """The title of the row for these options."""
        return self.title

    def max_epochs(self, options: Options) -> int:
        """The maximum number of epochs."""
        given = 1 if self.epochs_option is None else options[self.epochs_option]
        return self.auto_epochs if given == "auto" and self.auto_epochs is not None else int(given)

    def mistakes(self, options: Options) -> list[str]:
        """What is wrong with options."""
        found = []
        if self.epochs_option is not None:
            epochs = options.get(self.epochs_option)
            if not ((epochs == "auto" and self.auto_epochs is not None) or (type(epochs) is int and epochs >= 1)):
                found.append(f"the option {self.epochs_option} must be an integer from 1 up, not {epochs!r}")
            rate = options.get("learning_rate")
            if not (isinstance(rate, int | float) and 0 < rate < float("inf")):
                found.append(f"the option learning_rate must be a positive number, not {rate!r}")
        return found

    @property
    def is_available(self) -> bool:
        """Whether all packages are installed."""
        return all(find_spec(package) for package in self.packages)

    def check_extra(self, call: str) -> None:
        """Raise `MissingExtraError` if a package is missing."""
        require(*self.packages, extra="compare", call=call)


class NetworkMethod(Method):
    """A network that Lightning trains with Adam on the cross-entropy.

    Attributes:
        sums_loss: Whether the loss is summed over a batch instead of averaged.
        is_distributed: Whether several processes may train it together, which batch normalisation does not allow.
    """

    is_learned = True
    epochs_option = "epochs"
    sums_loss = False
    is_distributed = False

    @abstractmethod
    def make(self, task: Task, options: Options) -> nn.Module:
        """The network, from a batch to the logits of its graphs."""

    @abstractmethod
    def batches(
        self, task: Task, part: str, options: Options, generator: torch.Generator | None = None
    ) -> list[list[int]]:
        """The indices of the graphs of a part in batches, shuffled if there is a generator."""

    @abstractmethod
    def inputs(self, task: Task, indices: list[int], options: Options) -> Any:
        """Graphs as the network takes them."""

    @abstractmethod
    def learning_rate(self, options: Options, epoch: int) -> float:
        """The learning rate of an epoch."""

    def loss(self, net: nn.Module, inputs: Any, labels: Tensor) -> tuple[Tensor, Tensor]:
        """The loss of a batch, and the logits."""
        logits = net(inputs)
        return cross_entropy(logits, labels, reduction="sum" if self.sums_loss else "mean"), logits

    def optimizer(self, net: nn.Module, options: Options) -> torch.optim.Optimizer:
        return torch.optim.Adam(net.parameters(), lr=options["learning_rate"], weight_decay=options["weight_decay"])

    def score(self, epoch: Mapping[str, Any]) -> tuple[float, ...]:
        """What the selected epoch has most of: validation accuracy, then the negative validation loss."""
        return epoch["validation"], -epoch["validation_loss"]
