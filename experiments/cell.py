"""What the machinery that runs, shows and records cells knows of them, whatever they are cells of."""

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, cast

from bellnet import data as sets
from bellnet.errors import OptionError

if TYPE_CHECKING:
    from experiments.learner import Learner


SEEDS = 2**32
Record = Callable[[dict[str, Any]], None]
"""Takes what an epoch gave."""


class Runnable(ABC):
    """A frozen dataclass with the settings of one run; it is run once, and its key names it in records and files.

    `Cell` is of matrices, `GraphCell` of graphs and the paper's network, `MethodCell` of graphs and any other method,
    `SearchCell` of one recipe of the search.

    Attributes:
        table: The table it belongs to.
        seed: Of everything random.
        epochs: Passes over the examples.
        is_learned: Whether Lightning trains it; what need not be trained is run first.
    """

    table: str
    seed: int
    epochs: int
    is_learned = True

    @property
    @abstractmethod
    def title(self) -> str:
        """The name that is displayed."""

    @property
    @abstractmethod
    def key_parts(self) -> tuple[object, ...]:
        """The readable parts of the key."""

    @abstractmethod
    def say(self, record: Mapping[str, Any]) -> str:
        """The record of an epoch, or the final one, in a word or two."""

    @property
    def key(self) -> str:
        """A name for files and records: readable, and different whenever any field is that counts in comparing cells.

        It is made of what differs from the defaults, so a field that is added later does not change it.
        """
        usual = {each.name: each.default for each in fields(cast(Any, self))}
        changed = {name: value for name, value in self.counted().items() if value != usual[name]}
        digest = hashlib.sha256(json.dumps(changed, sort_keys=True).encode()).hexdigest()[:10]
        return "-".join(map(str, (*self.key_parts, digest)))

    def compute(self, record: Record) -> dict[str, Any]:
        """The result of a cell that Lightning does not train. Such a cell that was stopped starts again."""
        raise NotImplementedError(f"{self.title} is trained by Lightning")

    def learner(self) -> "Learner":
        """The network, its data and its optimiser, new. This imports lightning."""
        raise NotImplementedError(f"{self.title} is not trained by Lightning")

    def counted(self) -> dict[str, Any]:
        """The fields that count in comparing cells, by name."""
        return {each.name: getattr(self, each.name) for each in fields(cast(Any, self)) if each.compare}

    def to_json(self) -> dict[str, Any]:
        """The same as JSON has them."""
        return {name: list(value) if isinstance(value, tuple) else value for name, value in self.counted().items()}

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> Self:
        """The cell that `to_json` has written."""
        return cls(**found)

    def parcel(self) -> "sets.tu.Parcel | None":
        """Its data set, for a machine that has no such folder; None if it makes its examples itself."""
        return None

    def sent(self, folder: Path | None) -> Self:
        """The same cell on another machine, where its data set is in that folder; None before that is known."""
        return self


def check_cell(
    cell: Any,
    *,
    choices: Mapping[str, Sequence[str]],
    least: Mapping[str, int],
    positive: Sequence[str] = (),
    more: Sequence[str] = (),
) -> None:
    """Raise `OptionError` with everything that is wrong with the fields of a cell.

    Args:
        cell: The cell. Other seeds are made from its seed, which must leave room below the largest that torch takes.
        choices: The fields that are one of some words.
        least: The integer fields, with the least that each can be.
        positive: The fields that are positive numbers.
        more: What else is wrong.
    """
    values = {each.name: getattr(cell, each.name) for each in fields(cell)}
    mistakes = [
        f"{name} must be one of {', '.join(map(repr, known))}, not {values[name]!r}"
        for name, known in choices.items()
        if values[name] not in known
    ]
    mistakes += [
        f"{name} must be an integer from {start} up, not {values[name]!r}"
        for name, start in least.items()
        if type(values[name]) is not int or values[name] < start
    ]
    if type(values["seed"]) is not int or not 0 <= values["seed"] < SEEDS:
        mistakes.append(f"seed must be an integer from 0 to {SEEDS - 1}, not {values['seed']!r}")
    mistakes += [
        f"{name} must be a positive number, not {values[name]!r}"
        for name in positive
        if not 0 < values[name] < float("inf")
    ]
    mistakes += more
    if mistakes:
        raise OptionError("This cell cannot be run:\n" + "\n".join(f"  - {mistake}" for mistake in mistakes))


class FromDataSet(Runnable):
    """A cell of a data set, which is elsewhere on another machine.

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
        found: Self = replace(cast(Any, self), data=folder)
        return found
