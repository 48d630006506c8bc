"""What the machinery that runs, shows and records cells knows of them, whatever they are cells of."""

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import Field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, Self

from bellnet import data as sets

if TYPE_CHECKING:
    from experiments.learner import Learner


SEEDS = 2**32
Record = Callable[[dict[str, Any]], None]
"""Takes what an epoch gave."""


class Runnable(Protocol):
    """A frozen value that says what to run. There are three kinds.

    `Cell` is of matrices, `GraphCell` of graphs and the paper's network, `MethodCell` of graphs and any other method.
    """

    @property
    def table(self) -> str:
        """The table it belongs to."""

    @property
    def key(self) -> str:
        """A name for files and records that never changes."""

    @property
    def title(self) -> str:
        """A name for people."""

    @property
    def seed(self) -> int:
        """Of everything random."""

    @property
    def epochs(self) -> int:
        """Passes over the examples."""

    @property
    def is_learned(self) -> bool:
        """Whether there is anything to train; what need not be trained is run first."""

    def to_json(self) -> dict[str, Any]:
        """The fields, as JSON has them."""

    def compute(self, record: Record) -> dict[str, Any] | None:
        """The result of a cell that needs no training by Lightning; None if it does.

        Such a cell that was stopped starts again.
        """

    def learner(self) -> "Learner":
        """The network, its data and its optimiser, new. This imports lightning."""

    def say(self, record: Mapping[str, Any]) -> str:
        """The record of an epoch, or the final one, in a word or two."""

    def parcel(self) -> "sets.tu.Parcel | None":
        """Its data set, for a machine that has no such folder; None if it makes its examples itself."""

    def sent(self, folder: Path | None) -> "Runnable":
        """The same cell on another machine, where its data set is in that folder; None before that is known."""


def seed_mistakes(seed: object) -> list[str]:
    """What is wrong with a seed. Others are made from it, so it must leave room below the largest that torch takes."""
    if type(seed) is int and 0 <= seed < SEEDS:
        return []
    return [f"seed must be a whole number from 0 to {SEEDS - 1}, not {seed!r}"]


def digest(values: Mapping[str, Any], fields: "tuple[Field[Any], ...]") -> str:
    """Ten letters and digits that differ whenever a field does.

    They are made of what differs from the defaults, so a field that is added later does not change them.
    """
    usual = {field.name: field.default for field in fields}
    chosen = {name: value for name, value in values.items() if value != usual[name]}
    return hashlib.sha256(json.dumps(chosen, sort_keys=True).encode()).hexdigest()[:10]


class FromDataSet:
    """A frozen dataclass with the name of a data set, and where that is: on another machine it is elsewhere.

    Attributes:
        name: The data set, as its files are called.
        data: Where it is, as in `bellnet.data.tu.load`.
    """

    name: str
    data: Path | None

    def parcel(self) -> sets.tu.Parcel:
        """Its data set, for a machine that has no such folder."""
        return sets.tu.pack(self.name, self.data)

    def sent(self, folder: Path | None) -> Self:
        """The same cell on another machine, where its data set is in that folder."""
        cell: Any = self
        found: Self = replace(cell, data=folder)
        return found
