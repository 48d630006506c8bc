"""What a method is: it learns from some graphs of a data set, chooses by others, and classifies the test graphs."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

from experiments.cell import Record
from experiments.graph_data import GraphSet, Parts
from experiments.machine import require

Options = Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class Task:
    """What a method is asked.

    Attributes:
        graphs: The data set.
        parts: The places of the graphs to learn from, to choose by, and to classify.
        seed: Of everything random.
    """

    graphs: GraphSet
    parts: Parts
    seed: int


class Method(ABC):
    """A way to classify graphs. It has no state; whatever can be chosen is an option, and so a part of a cell's key.

    Attributes:
        title: What rows of tables call it.
        packages: What it needs, all of which the extra `compare` brings.
        epochs_option: The option that says how many epochs there are; None if there are none.
        most_epochs: The most that there can be where that option says "auto"; None if it cannot.
        rate_option: The option that says how fast it learns; None if there is none.
    """

    title: str
    packages: tuple[str, ...]
    epochs_option: str | None = None
    most_epochs: int | None = None
    rate_option: str | None = None

    @abstractmethod
    def usual(self) -> dict[str, Any]:
        """The options with their usual values. Numbers, words, None, and lists of these."""

    @abstractmethod
    def run(self, task: Task, options: Options, record: Record) -> dict[str, Any]:
        """Classify the test graphs: "accuracy", "validation" (that by which was chosen), "seconds" of the processor."""

    def epochs(self, options: Options) -> int:
        """The most epochs that there can be."""
        given = 1 if self.epochs_option is None else options[self.epochs_option]
        return self.most_epochs if given == "auto" and self.most_epochs is not None else int(given)

    def takes_epochs(self, value: object) -> bool:
        """Whether the option for epochs can be this."""
        return (value == "auto" and self.most_epochs is not None) or (type(value) is int and value >= 1)

    @property
    def is_available(self) -> bool:
        """Whether all packages are installed."""
        return all(find_spec(package) for package in self.packages)

    def check_extra(self, call: str) -> None:
        """Raise `MissingExtraError` if a package is missing."""
        require(*self.packages, extra="compare", call=call)
